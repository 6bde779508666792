#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include <redis/net/request.hpp>
#include <redis/resp/value.hpp>

namespace holdfast::engines::redis {

/// The requests of one physical connection, in order: collected for the next write, sent, answered.
/// Does no I/O.
///
/// Thread safety: none; the connection's lock guards it.
class pipeline {
public:
    /// Whether a request reached the socket, even if only in part.
    enum class reach : std::uint8_t { unsent, sent };

    /// Requests are collected until there are as many as are under way, or until answers come. Many
    /// threads then share a system call, and the server works on one half of them while the callers see
    /// to the other. But no request is collected for longer than this: a distant server is not waited
    /// for.
    static constexpr std::chrono::microseconds longest_collection{100};

    explicit pipeline(server_facts facts) : facts_{facts} {}

    /// False: the request has no commands, and is over.
    [[nodiscard]] bool append(request& added);
    [[nodiscard]] std::size_t size() const noexcept { return pending_.size(); }
    [[nodiscard]] bool idle() const noexcept { return pending_.empty(); }
    [[nodiscard]] bool collected() const noexcept { return !collected_.empty(); }
    [[nodiscard]] std::uint64_t commands() const noexcept { return commands_; }
    [[nodiscard]] clock::time_point last_write() const noexcept { return last_write_; }

    /// Whether something should be written now.
    [[nodiscard]] bool due(clock::time_point now) const noexcept;
    /// Replaces `bytes` by what is collected. It counts as sent from now on.
    void take_for_writing(std::string& bytes, clock::time_point now);
    /// The last `count` bytes of what was taken did not reach the socket.
    void not_sent(std::size_t count) noexcept { taken_ -= count; }
    [[nodiscard]] bool unsent(const request& asked) const noexcept;

    /// Gives the answers to the requests, in order. `ended` hears of requests that have all of theirs.
    /// Fails when there are more answers than requests.
    [[nodiscard]] failure accept(std::vector<value>& answers,
                                 const std::function<void(request&)>& ended);

    /// Forgets a request whose deadline has passed. If it was sent, its answer will be dropped.
    [[nodiscard]] reach abandon(const request& late);
    /// Forgets all requests for which `is_late` says true.
    void abandon_all(const std::function<bool(const request&)>& is_late,
                     const std::function<void(request&, reach)>& ended);
    /// Whether the oldest answer is so late that the connection counts as dead.
    [[nodiscard]] bool hopeless(clock::time_point now) const noexcept;
    /// The request of a blocked caller whose answer comes last, if any: its caller reads for all.
    [[nodiscard]] request* next_reader() const noexcept;
    void each(const std::function<void(request&, reach)>& visit) const;

private:
    struct entry {
        /// Null: the answer will be dropped.
        request* asked{};
        std::size_t replies_left{};
        /// The last ones. Those before them are ignored.
        std::size_t replies_wanted{};
        /// The position of its commands in the stream of all that was ever written.
        std::uint64_t begins{};
        std::size_t size{};
        clock::time_point hopeless_at{};
    };

    [[nodiscard]] std::size_t under_way() const noexcept {
        return pending_.size() - collected_requests_;
    }
    void drop_unsent(const std::function<bool(const entry&)>& unwanted);

    server_facts facts_;
    std::string collected_;
    /// The position in the stream where `collected_` begins.
    std::uint64_t taken_{};
    std::deque<entry> pending_;
    std::size_t collected_requests_{};
    clock::time_point last_write_{};
    std::uint64_t commands_{};
};

}  // namespace holdfast::engines::redis
