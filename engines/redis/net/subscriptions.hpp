#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <holdfast/error.hpp>
#include <redis/net/subscriber.hpp>
#include <redis/resp/value.hpp>

namespace holdfast::engines::redis {

/// The book that a subscriber keeps: which channels are wanted, what the server has been told of them,
/// and what its answers mean. Answers come in the order of the commands, with messages in between.
///
///     wanted ──(command sent)──▶ asked ──(confirmed)──▶ active ──(not wanted, command sent,
///     confirmed)──▶ forgotten
///
/// Does no I/O. Thread safety: none; the subscriber's lock guards it.
class subscriptions {
public:
    struct news {
        /// refused: the user may not listen; the message says it in the server's words.
        enum class kind : std::uint8_t { heard, subscribed, moved_away, refused } type{};
        std::string channel;
        std::string message;
    };

    /// True when the server must be told soon.
    [[nodiscard]] bool want(const std::string& name, channel_style style);
    /// The server is told when there is something to tell it anyway.
    void unwant(const std::string& name);
    [[nodiscard]] bool active(const std::string& name) const;
    [[nodiscard]] bool wanted(const std::string& name) const;
    [[nodiscard]] bool empty() const noexcept { return channels_.empty(); }
    /// Whether an answer has made it necessary to ask again.
    [[nodiscard]] bool must_ask_again() const noexcept { return !alone_.empty(); }

    /// There is a new connection, on which nothing was said yet.
    void start_anew();
    /// There is no connection.
    void disconnected();
    /// Appends the commands that tell the server of what has changed.
    void append_changes(std::string& out);
    void append_ping(std::string& out);
    /// What an answer means. Fails when the connection cannot be used any more.
    [[nodiscard]] failure take(const value& answer, std::vector<news>& into);

private:
    enum class verb : std::uint8_t { subscribe, unsubscribe, ping };

    struct channel {
        channel_style style{};
        bool is_wanted{};
        /// Told so far, confirmed or not.
        bool asked{};
        /// Answers under way.
        int unanswered{};
        bool is_active{};
        /// Among those that have changed.
        bool is_listed{};
    };
    /// One command; one answer for each of its channels is still to come.
    struct command {
        verb action{};
        channel_style style{};
        std::deque<std::string> channels;
    };

    void list_as_changed(const std::string& name, channel& entry);
    void append_batch(std::string& out, verb action, channel_style style,
                      std::deque<std::string> names);
    [[nodiscard]] bool expected(verb action, const std::string& name);
    void confirmed(verb action, const std::string& name, std::vector<news>& into);
    [[nodiscard]] failure refused(const value& error, std::vector<news>& into);

    std::unordered_map<std::string, channel> channels_;
    std::vector<std::string> changed_;
    /// Must each be asked for in a command of their own, because one together was refused.
    std::vector<std::string> alone_;
    std::deque<command> under_way_;
};

}  // namespace holdfast::engines::redis
