#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/engine.hpp>
#include <redis/resp/value.hpp>
#include <redis/script_call.hpp>

/// From the contract's requests to runs of scripts, and back from the server's answers. Pure functions.
namespace holdfast::engines::redis {

/// What is the same for all requests of a client.
struct dialect {
    /// Put before every name, as a Redisson NameMapper would.
    std::string prefix;
    bool clustered{};
    /// Tokens come from Redisson's own counter for fenced locks.
    bool redisson_tokens{};
    /// "publish" or "spublish".
    std::string publish;

    [[nodiscard]] std::string key_of(std::string_view name) const { return prefix + std::string{name}; }
};

/// How long a waiter in a fair line counts as alive after it last asked. Asks come at least every
/// 1.25 s.
inline constexpr std::chrono::milliseconds fair_patience{5000};

/// How long a plain lock may be given to one that waits, after it last asked. Shorter than the line's:
/// if it has stopped meanwhile, everybody waits for its ttl.
inline constexpr std::chrono::milliseconds request_patience{2000};

/// `key` is `dialect::key_of` of the request's name, here and below. `question` is the number
/// to which a message refers that grants the lock to a waiter in line; zero: no such message is wanted.
/// `turn`: the result of `turns::claim` for a plain lock.
[[nodiscard]] script_call acquire_call(const acquire_request& request, const std::string& key,
                                       const dialect& store, std::int64_t question = 0, int turn = 0);
[[nodiscard]] acquire_reply acquire_answer(const value& reply, const acquire_request& request);
/// The number of the turn of others that keeps a plain lock from us; 0: none does.
[[nodiscard]] int turn_in_the_way(const value& reply) noexcept;
/// Whether one that was put in line would have heard of its turn.
[[nodiscard]] bool says_listening(const value& reply) noexcept;

/// `keys` are those of the requests, in the same order.
[[nodiscard]] script_call acquire_all_call(const std::vector<acquire_request>& all,
                                           const std::vector<std::string>& keys, const dialect& store);
[[nodiscard]] acquire_all_reply acquire_all_answer(const value& reply, std::size_t count);

/// What a waiter is told when the lock was handed over to it. Other messages only say
/// that it is its turn.
struct turn_message {
    std::int64_t question{};
    fencing_token first_token{};
    std::uint32_t token_count{};
    /// The owner that waited, as text.
    std::string_view owner;
    /// The lock that was granted. Names that differ may share a channel of Redisson's.
    std::string_view key;
};
[[nodiscard]] std::optional<turn_message> read_turn(std::string_view message);

[[nodiscard]] script_call release_call(const release_request& request, const std::string& key,
                                       const dialect& store);
[[nodiscard]] release_reply release_answer(const value& reply);
/// Why the waiters could not be told of a release; empty if they were.
[[nodiscard]] failure telling_trouble(const value& reply, const dialect& store);

/// One run for several renewals that the same script serves.
enum class renewal_script : std::uint8_t { lock, reader, permit };
[[nodiscard]] renewal_script script_for(const renew_request& request) noexcept;
void add_renewal(script_call& to, const renew_request& request, const std::string& key);
/// After all other keys, one that never exists. In a slot that is on its way some of a lock's keys are
/// on another server, and nobody may be taken for dead because his are: scripts with several keys do
/// not run there at all. (Only in a cluster; not for renewals, once for all of a run.)
void add_absent(script_call& to, const std::string& key, const dialect& store);
[[nodiscard]] script_call renewal_call(renewal_script which);
[[nodiscard]] renew_reply renewal_answer(const value& item, const owner_id& owner);

[[nodiscard]] script_call latch_call(const latch_request& request, const std::string& key,
                                     const dialect& store);
[[nodiscard]] latch_reply latch_answer(const value& reply);

[[nodiscard]] script_call revoke_call(const revoke_request& request, const std::string& key,
                                      const dialect& store, std::chrono::system_clock::time_point at);
[[nodiscard]] revoke_reply revoke_answer(const value& reply);

[[nodiscard]] script_call inspect_call(const std::string& key, const dialect& store);
[[nodiscard]] inspect_reply inspect_answer(const value& reply, std::string_view name);

/// Where a kind of lock tells that it may have become free.
/// Whether locks of this kind have the layout of Redisson's RReadWriteLock.
[[nodiscard]] bool is_read_write(lock_kind kind) noexcept;
[[nodiscard]] std::string channel_of(lock_kind kind, const std::string& key);

/// The sixteen bytes of each permit, one after the other, made of the owner's id.
[[nodiscard]] std::string permit_ids(const owner_id& owner, std::uint32_t permits);

}  // namespace holdfast::engines::redis
