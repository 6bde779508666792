#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/export.hpp>
#include <holdfast/guard/fence.hpp>
#include <holdfast/guard/once.hpp>
#include <holdfast/guard/storage_lease.hpp>

struct redisContext;
struct redisReply;

/// The guards for what is kept in Redis, 6.2 or newer, on a blocking connection of the user's
/// (`redisContext*`, hiredis). Check and write are one script, so there is no transaction to begin.
///
/// In a cluster the connection must be to the node that has the key. What belongs to a key is kept in
/// the same slot.
///
/// Errors are `std::system_error`: `outcome_unknown` when the connection broke after the request was
/// sent, `store_unavailable` when it was not sent (no connection, or a broken one: see
/// `redisReconnect`) and for what the server refuses for the moment (READONLY, OOM, LOADING, MOVED, …),
/// `unauthorised`, `wrong_kind` when the key holds something else, `invalid_argument` for a connection
/// that is null, not a blocking one, or has replies that nobody has read, `store_error` for the rest.
///
/// Read all replies to commands of your own before you use the connection here. Where one turns out to
/// have been on its way the call ends with `outcome_unknown`, and the connection counts as broken
/// (`redisContext::err`): nobody knows any more which reply belongs to which command.
///
/// Thread safety: that of the connection, one thread at a time.
namespace holdfast::guard {
inline namespace v0 {

/// Remembers the largest token seen for each key, and refuses smaller ones; see `fence`.
///
/// The token of `key` is kept under `holdfast_fence:{key}`, or `holdfast_fence::key` if the key has a
/// `{tag}`, without expiry: one that was forgotten or evicted would let everybody in. Delete it
/// together with the key, and only when no lock on it is left.
class HOLDFAST_EXPORT redis_fence {
public:
    struct free_reply {
        void operator()(redisReply* reply) const noexcept;
    };
    using reply_handle = std::unique_ptr<redisReply, free_reply>;
    struct script_reply {
        admission verdict{admission::stale};
        /// admitted: an array, the second element of which is what the script returned.
        reply_handle reply{};
    };

    explicit redis_fence(redisContext* connection);

    /// SET.
    [[nodiscard]] admission set(std::string_view key, fencing_token token, std::string_view value);
    /// HSET, of all fields at once.
    [[nodiscard]] admission set_fields(
        std::string_view key, fencing_token token,
        std::span<const std::pair<std::string_view, std::string_view>> fields);
    /// Runs a Lua script of the user's, for which `keys` and `arguments` are KEYS and ARGV. The first
    /// key is the one that is fenced. A script that fails half-way is not undone: Redis undoes nothing.
    [[nodiscard]] script_reply run(std::string_view script, fencing_token token,
                                   std::span<const std::string_view> keys,
                                   std::span<const std::string_view> arguments);
    /// Before what is read and computed with: from now on smaller tokens are refused.
    [[nodiscard]] admission announce(std::string_view key, fencing_token token);
    /// The largest one seen; zero when there was none.
    [[nodiscard]] fencing_token newest(std::string_view key);

private:
    redisContext* connection_;
};

/// A hash with the field `lease_seq`; see `storage_lease`.
class HOLDFAST_EXPORT redis_storage_lease {
public:
    explicit redis_storage_lease(redisContext* connection);

    /// Zero when there is no such key or field. Read it before the fields it stands for.
    [[nodiscard]] lease_sequence read(std::string_view key);
    /// Writes the fields if the sequence is still `seen`, and moves it on.
    [[nodiscard]] contest write(std::string_view key, lease_sequence seen,
                                std::span<const std::pair<std::string_view, std::string_view>> fields);

private:
    redisContext* connection_;
};

/// See `once`. An operation is kept under `holdfast_once:{operation}`, and forgotten by Redis itself.
class HOLDFAST_EXPORT redis_once {
public:
    explicit redis_once(redisContext* connection, once_terms terms = {});

    [[nodiscard]] once_reply claim(std::string_view operation);
    [[nodiscard]] completion complete(const once_ticket& ticket, std::string_view outcome);
    [[nodiscard]] completion extend(const once_ticket& ticket);
    completion abandon(const once_ticket& ticket);

private:
    redisContext* connection_;
    once_terms terms_;
};

}  // namespace v0
}  // namespace holdfast::guard
