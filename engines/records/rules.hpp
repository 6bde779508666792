#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/export.hpp>

/// Who may have what, given who has it now: the rules of the contract as pure functions on the state of
/// one name. For engines that read this state, decide, and write it in one step: `memory:`, `local:`,
/// and all stores of `holdfast/records.hpp`.
///
/// Times are the store's. Holds and latches that have ended at `now` must have been dropped
/// (`drop_ended`). Requests have passed `check_request`.
namespace holdfast::engines::records {

struct hold {
    owner_id owner;
    claim_mode mode{};
    std::uint32_t permits{1};
    /// The permit limit of a semaphore, 0 for a lock.
    std::uint32_t limit{};
    fencing_token first_token{};
    std::uint32_t token_count{1};
    std::chrono::system_clock::time_point since{};
    clock::time_point expires{};
    /// Released by its owner, and kept only until it expires.
    bool lingering{};

    friend bool operator==(const hold&, const hold&) = default;
};

struct latch_state {
    /// 0: it has opened.
    std::uint32_t count{};
    clock::time_point expires{};
    latch_life life{};

    friend bool operator==(const latch_state&, const latch_state&) = default;
};

/// All that a store knows of one name.
struct record {
    std::vector<hold> holds;
    std::optional<latch_state> latch;
    std::optional<revocation_info> revocation;
    /// The latch requests that have been counted, oldest first. They outlive the latch: a request that
    /// is sent again after the latch opened, and was set anew, must not count in its next life.
    std::vector<owner_id> counted;

    [[nodiscard]] bool empty() const noexcept {
        return holds.empty() && !latch && !revocation && counted.empty();
    }
};

/// When a request takes effect. `wall` is what `inspect` shows.
struct moment {
    clock::time_point now;
    std::chrono::system_clock::time_point wall{};
};

/// An answer, and what became of the record.
template <class Reply>
struct outcome {
    Reply reply;
    bool changed{};
    /// The name may have become free, or its latch has opened.
    bool freed{};
};

///              │ grant       asked again     downgrade       upgrade                 busy
///     writes   │ a new hold  a later expiry  mode and later  mode, new tokens,       nothing
///              │             if it is later  expiry          later expiry
struct acquire_outcome : outcome<acquire_reply> {
    /// Changed: the owner's hold, and whether it is a new one, the last.
    std::size_t own{};
    bool added{};
};

void drop_ended(std::vector<hold>& holds, clock::time_point now);
void drop_ended(record& state, clock::time_point now);

/// Tokens come from `last_token`, which is the name's or the whole store's.
[[nodiscard]] acquire_outcome acquire(std::vector<hold>& holds, const acquire_request& request,
                                      const moment& at, std::uint64_t& last_token);
/// The answer to a request that would change nothing: busy or refused. Nothing if it would.
[[nodiscard]] std::optional<acquire_reply> refusal_of(const acquire_request& request,
                                                      std::span<const hold> holds,
                                                      clock::time_point now);
[[nodiscard]] outcome<renew_reply> renew(record& state, const renew_request& request,
                                         clock::time_point now);
/// Leaves `others_waiting` zero: the state does not say who waits.
[[nodiscard]] outcome<release_reply> release(record& state, const release_request& request,
                                             clock::time_point now);
[[nodiscard]] outcome<revoke_reply> revoke(record& state, const revoke_request& request,
                                           const moment& at);
[[nodiscard]] outcome<latch_reply> latch(record& state, const latch_request& request,
                                         clock::time_point now);
/// Without cards and waiters.
[[nodiscard]] lock_info inspect(const record& state, std::string_view name, clock::time_point now);

/// Rounded up, so that a retry after this long is not a moment too early.
[[nodiscard]] std::chrono::milliseconds remaining_time(clock::time_point expires,
                                                       clock::time_point now) noexcept;
/// The owner's loss in words, for an owner that `last` names; nothing for others.
[[nodiscard]] HOLDFAST_EXPORT failure loss_of(const owner_id& owner, const revocation_info* last);
[[nodiscard]] holder_info describe(const hold& one, clock::time_point now);

}  // namespace holdfast::engines::records
