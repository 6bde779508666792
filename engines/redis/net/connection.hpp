#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>
#include <redis/net/settings.hpp>
#include <redis/resp/value.hpp>

namespace holdfast::engines::redis {

/// What is known about the server at the other end of one physical connection.
struct server_facts {
    /// Its clock when the connection was made, microseconds since 1970 (TIME).
    std::int64_t time{};
    /// Our own clock just after.
    clock::time_point read_at{};
    /// Counts the connections made; changes with every reconnect.
    std::uint64_t generation{};

    /// The server's clock, up to a second ago. A counter of tokens that is below it is moved on. That
    /// the connection is old says nothing: a server of a cluster may have been another's replica
    /// meanwhile, and lost what that one granted, without closing a connection.
    [[nodiscard]] std::int64_t token_floor() const noexcept {
        const auto passed = std::chrono::duration_cast<std::chrono::seconds>(clock::now() - read_at);
        return time + std::chrono::microseconds{passed}.count();
    }
};

/// The one connection through which all threads send commands to a server.
///
/// Self-batching: a caller that may block and finds nobody driving writes and reads by itself, without
/// a thread switch; those who come meanwhile are batched behind it and sleep until their answer is
/// there, or until it is their turn to drive. A thread in the background drives for those who must not
/// block, connects, and reconnects with growing, jittered pauses.
///
///     idle ──▶ connecting ──▶ ready ──▶ (connection lost) ──▶ pausing ──▶ connecting
///
/// While connecting, requests wait (up to a bound, and to their deadlines); while pausing they are
/// refused at once with what went wrong last.
///
/// Every request ends by its deadline. One that was written and not answered in time ends with
/// `errc::outcome_unknown`; its late answer is dropped, in order, and never taken for another's. One
/// that was not written ends with `errc::store_unavailable`. A connection whose oldest answer is
/// overdue for as long again as was allowed for it (at least 1 s, at most 5 s) counts as lost. When the
/// connection is lost, requests that were written (even in part) end with `outcome_unknown`. They have
/// taken effect before anything that is sent over the next connection does, or never will: the server
/// is made to close the old one first, if the user may do that.
///
/// Thread safety: all functions may be called from any thread. Completions run exactly once, with no
/// lock held, and must not throw; from inside one (or an event) every `send` counts as one that must
/// not block. The destructor ends what is pending with `errc::shut_down` and returns when no completion
/// is running.
class connection {
public:
    struct result {
        /// As many as `encode` said, unless there is an error. A server's error reply is a value here.
        std::vector<value> replies;
        failure error;
    };
    /// How many replies commands have.
    struct expected {
        std::size_t wanted{};
        /// So many come before those, and are nobody's business.
        std::size_t ignored{};
    };
    /// Appends one or more commands to what is sent together, and says how many replies they have.
    /// Called once, when the connection is ready to send them, with a lock held: it must be quick and
    /// call nobody.
    using encode = std::function<expected(std::string& out, const server_facts& server)>;
    using done = std::function<void(result)>;

    struct events {
        /// After every successful handshake, before any request is sent; its commands' replies (one
        /// each for `greeting`) are passed in. A failure closes the connection and counts as a failed
        /// attempt. May be empty.
        std::function<failure(const std::vector<value>& replies)> check_greeting;
        /// The connection was lost or could not be made. May be empty.
        std::function<void(const failure& why)> lost;
    };

    /// `greeting`: commands sent after AUTH, SELECT and TIME on every new connection.
    connection(node_address where, connection_settings how,
               std::vector<std::vector<std::string>> greeting, events told);
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection();

    /// Connects now, if it is not connected, and says what came of it. For opening a client.
    [[nodiscard]] failure connect(clock::time_point deadline);
    /// With `caller::may_block` it returns when `finished` has run.
    void send(encode what, call how, done finished);
    /// Drops the connection as if it had broken, and connects anew at once when needed.
    void reset(const failure& why);

    [[nodiscard]] const node_address& where() const noexcept;
    /// Commands sent, for tests and benchmarks.
    [[nodiscard]] std::uint64_t commands_sent() const noexcept;

private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace holdfast::engines::redis
