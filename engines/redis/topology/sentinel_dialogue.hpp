#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/error.hpp>
#include <redis/net/settings.hpp>
#include <redis/resp/value.hpp>
#include <redis/topology/sentinel_agreement.hpp>
#include <redis/topology/sentinel_checkup.hpp>

namespace holdfast::engines::redis {

/// What is said on one connection to a sentinel; no sockets, no clock.
///
/// A connection that is subscribed may ask nothing, so it listens, and stops listening for as long as
/// a question takes, all in one write:
///
///     AUTH   GET-MASTER-ADDR-BY-NAME   MASTER   SUBSCRIBE +switch-master          opening
///     UNSUBSCRIBE   GET-MASTER-ADDR-BY-NAME   MASTER   SUBSCRIBE +switch-master   asking again
///     UNSUBSCRIBE   GET-MASTER-ADDR-BY-NAME   MASTER   CKQUORUM   SUBSCRIBE …     a checkup
///
/// Only a sentinel that we may listen to has a say: it would tell of a new master too late.
class sentinel_dialogue {
public:
    sentinel_dialogue(std::string service, credentials login);

    /// The bytes to send on a new connection, and to ask once more. An answer to the last question
    /// must have come before the next is asked.
    [[nodiscard]] std::string opening();
    [[nodiscard]] std::string question();
    /// The question, and how the group of sentinels is.
    [[nodiscard]] std::string checkup();
    /// Whether everything that was asked is answered.
    [[nodiscard]] bool settled() const noexcept { return expected_.empty(); }

    struct news {
        /// The sentinel's view, if this was the last part of an answer or told of a new master.
        std::optional<sentinel_view> view;
        /// It told of a new master by itself. Ask again: the number in `view` is a guess.
        bool switched{};
        /// What it says to a checkup.
        std::optional<sentinel_checkup> checkup;
        /// The connection is of no use.
        failure error;
    };
    [[nodiscard]] news take(const value& answer);

private:
    enum class part : std::uint8_t { login, silence, address, details, quorum, listening };
    enum class wish : std::uint8_t { master, checkup };

    void append_question(std::string& out, wish purpose);
    [[nodiscard]] std::string ask_again(wish purpose);
    [[nodiscard]] news take_message(const value& message);
    [[nodiscard]] news take_address(const value& answer);
    void take_details(const value& answer);
    [[nodiscard]] news take_listening(const value& answer);

    std::string service_;
    credentials login_;
    std::deque<part> expected_;
    sentinel_view view_;
    std::optional<std::uint32_t> others_{};
};

}  // namespace holdfast::engines::redis
