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
/// Self-batching: a caller that may block writes and reads by itself if no other thread does, without a
/// thread switch. Requests that come meanwhile are batched. Their callers sleep until their answer is
/// there, or until it is their turn to read. A background thread reads for callers that must not block,
/// connects, and reconnects with growing, jittered pauses.
///
///     idle ──▶ connecting ──▶ ready ──▶ (connection lost) ──▶ pausing ──▶ connecting
///
/// While connecting, requests wait: up to a limit, and to their deadlines. While pausing, they are
/// refused at once with the last error.
///
/// Every request ends by its deadline. A request that was written and not answered in time ends with
/// `errc::outcome_unknown`; its late answer is dropped, and never taken for another request's. A
/// request that was not written ends with `errc::store_unavailable`. The connection counts as lost when
/// its oldest answer is overdue for as long as the request was given (at least 1 s, at most 5 s).
/// Requests that were written on a lost connection, even in part, end with `outcome_unknown`. They take
/// effect before everything that is sent over the next connection, or never: the server is made to
/// close the old connection first, if the user may do that.
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
    /// How many replies the commands of a request have.
    struct expected {
        std::size_t wanted{};
        /// How many come before those, and are ignored.
        std::size_t ignored{};
    };
    /// Appends one or more commands to `out`, and says how many replies they have. Called once, when
    /// the connection is ready to send them, with a lock held: it must be quick and call nothing else.
    using encode = std::function<expected(std::string& out, const server_facts& server)>;
    using done = std::function<void(result)>;

    struct events {
        /// Called after every successful handshake, before any request is sent, with one reply for each
        /// command of the greeting. A failure closes the connection and counts as a failed attempt. May
        /// be empty.
        std::function<failure(const std::vector<value>& replies)> check_greeting;
        /// The connection was lost or could not be made. May be empty.
        std::function<void(const failure& reason)> lost;
    };

    /// `greeting`: commands sent after AUTH, SELECT and TIME on every new connection.
    connection(node_address where, connection_settings settings,
               std::vector<std::vector<std::string>> greeting, events told);
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection();

    /// Connects now, if it is not connected. Nothing, or the reason of the failure.
    [[nodiscard]] failure connect(clock::time_point deadline);
    /// With `caller::may_block` it returns when `finished` has run.
    void send(encode encoder, call terms, done finished);
    /// Drops the connection as if it had broken, and connects anew at once when needed.
    void reset(const failure& reason);

    [[nodiscard]] const node_address& where() const noexcept;
    /// Commands sent, for tests and benchmarks.
    [[nodiscard]] std::uint64_t commands_sent() const noexcept;

private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace holdfast::engines::redis
