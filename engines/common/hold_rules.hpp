#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <holdfast/engine.hpp>
#include <holdfast/export.hpp>

/// Who may have what, given who has it now: the rules of `acquire_request` as pure functions, for the
/// engines that read a name's holds, decide, and write in one step.
namespace holdfast::engines {

struct hold_record {
    owner_id owner;
    claim_mode mode{};
    std::uint32_t permits{1};
    /// The permit limit of a semaphore, 0 for a lock.
    std::uint32_t limit{};
    fencing_token first_token{};
    std::uint32_t token_count{1};
    std::chrono::system_clock::time_point since{};
    clock::time_point expires{};
    /// Let go by its owner, and kept only until it expires.
    bool lingering{};
};

///              │ grant       extend          downgrade       upgrade                 busy
///     writes   │ a new hold  a later expiry  mode and later  mode, new tokens,       nothing
///              │             if it is later  expiry          later expiry
struct acquire_decision {
    enum class action : std::uint8_t { grant, extend, downgrade, upgrade, busy, refuse } what{};
    /// extend, downgrade, upgrade: which of the holds is the owner's.
    std::size_t mine{};
    /// busy: until the first of those in the way would expire.
    std::chrono::milliseconds retry_after{};
    /// refuse: why.
    failure error{};
};

/// `live` are the holds of `request.name` that have not expired at `now`. The request has passed
/// `check_request`.
[[nodiscard]] acquire_decision decide_acquire(const acquire_request& request,
                                              std::span<const hold_record> live, clock::time_point now);

/// Whether a hold in mode `held` is all that an owner who thinks it has `wanted` relies on.
[[nodiscard]] bool covers(claim_mode held, claim_mode wanted) noexcept;

/// Rounded up, so that a retry after this long is not a moment too early.
[[nodiscard]] std::chrono::milliseconds remaining_time(clock::time_point expires,
                                                       clock::time_point now) noexcept;

/// The owner's loss in words, for an owner that `last` names; nothing for others.
[[nodiscard]] HOLDFAST_EXPORT failure loss_of(const owner_id& owner, const revocation_info* last);

[[nodiscard]] holder_info describe(const hold_record& hold, clock::time_point now);

}  // namespace holdfast::engines
