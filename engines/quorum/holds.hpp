#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <core/quorum.hpp>
#include <holdfast/engine.hpp>
#include <quorum/members.hpp>

namespace holdfast::engines::quorums {

/// Members know an owner by its number and its attempt. A late effect of an attempt that was given up
/// must not touch the next one.
///
/// The lower bits are the owner's own number. Everybody outside the quorum sees only these.
inline constexpr int sequence_bits = 40;
inline constexpr std::int64_t largest_sequence = (std::int64_t{1} << sequence_bits) - 1;

[[nodiscard]] inline owner_id member_owner(owner_id owner, std::uint32_t attempt) noexcept {
    constexpr std::uint32_t attempts = 1U << 22;
    owner.sequence |= static_cast<std::int64_t>(attempt % attempts) << sequence_bits;
    return owner;
}

[[nodiscard]] inline owner_id outer_owner(owner_id owner) noexcept {
    if (owner.sequence > 0) {
        owner.sequence &= largest_sequence;
    }
    return owner;
}

/// A lock's name and the owner as everybody outside knows it.
using hold_key = std::pair<std::string, owner_id>;

/// A claim as one member knows it.
struct member_claim {
    std::size_t member{};
    hold_key key;
    /// With its attempt.
    owner_id owner;
    claim_mode mode{};
    lock_kind kind{};
};

/// Keeps the reason that says most: a revocation, then anything at all.
inline void keep_reason(failure& kept, const failure& reason) {
    if (!kept || reason.code == errc::revoked) {
        kept = reason;
    }
}

/// Owners are remembered for so long after they may have come back for the last time.
inline constexpr std::chrono::seconds memory_of_attempts{10};

/// One owner that asked the members for a lock.
struct hold {
    enum class state : std::uint8_t {
        idle,  ///< it has nothing, but asked before
        held,
        releasing,
    } current{state::idle};
    owner_id owner;
    std::uint32_t attempt{};
    claim_mode mode{};
    lock_kind kind{};
    fencing_token token{};
    std::uint32_t token_count{1};
    std::chrono::milliseconds ttl{};
    /// Changes with everything that members should know of the hold.
    std::uint64_t generation{};
    /// The vote under way.
    std::shared_ptr<core::quorum_round> vote{};
    /// Requests of the same owner that came meanwhile.
    std::deque<std::function<void()>> next{};
    /// Requests to members that would make or change the claim, and are not answered.
    std::size_t unanswered{};
    /// Members that have said that they have it.
    std::vector<bool> known_to;
    /// Members that a late request for a share may reach at any time: their word about an exclusive
    /// claim is not to be trusted.
    std::vector<bool> unsteady;
    /// Members to which a request that is no vote is just being sent.
    std::vector<std::uint32_t> being_repaired;
    std::uint32_t splits{};
    bool lead_next{};
    clock::time_point forget_at{clock::time_point::max()};

    hold(owner_id outer, std::size_t members)
        : owner{outer}, known_to(members), unsteady(members), being_repaired(members) {}

    [[nodiscard]] bool held() const noexcept { return current == state::held; }
    [[nodiscard]] owner_id owner_at_members() const noexcept { return member_owner(owner, attempt); }
    /// As members know what it has, or had last: a renewal may ask why that is gone.
    [[nodiscard]] owner_id last_owner_at_members() const noexcept {
        return member_owner(owner, attempt - (current == state::idle && attempt > 0 ? 1 : 0));
    }
    void request_answered() noexcept { unanswered -= unanswered > 0 ? 1 : 0; }
    /// A holder that lost its lease may never come back to release it.
    void remember_for(std::chrono::milliseconds lease, clock::time_point now) {
        forget_at = now + lease + memory_of_attempts;
    }
};

/// The holds of a quorum. What is remembered of an owner keeps the late effects of its earlier requests
/// apart from its next ones.
///
/// Thread safety: none but `guard`. It guards the holds and everything that is decided about them; hold
/// it for all functions. It is never held while a member or a caller is called.
class hold_table {
public:
    explicit hold_table(const member_set& members) : members_{members} {}

    mutable std::mutex guard;

    /// Makes the hold if it is not there. Forgets others that have not come back.
    [[nodiscard]] hold& entry(const hold_key& key);
    /// Null if nothing is known of the owner.
    [[nodiscard]] hold* find(const hold_key& key);
    void erase(const hold_key& key) { holds_.erase(key); }
    [[nodiscard]] owner_id owner_at_members(const hold_key& key);
    /// A member that answers may not have the claim.
    [[nodiscard]] bool incomplete(const hold& hold) const;

    /// A request of this owner is about to be sent to a member. Until it is answered, or sent if it is
    /// a release, the owner must not ask again under the same id.
    void on_request(const hold_key& key);
    void on_release_sent(const hold_key& key);
    /// The answer to a request for a claim. True: the member granted a claim that its owner does not
    /// have any more, unless a vote is under way that asks for it.
    [[nodiscard]] bool on_reply(const member_claim& claim, const acquire_reply& reply);

    void raise_largest_token(std::uint64_t token) noexcept {
        largest_token_ = std::max(largest_token_, token);
    }
    [[nodiscard]] std::uint64_t largest_token() const noexcept { return largest_token_; }

private:
    const member_set& members_;
    std::map<hold_key, hold> holds_;
    std::uint64_t largest_token_{};
    std::uint32_t entries_until_sweep_{1024};
};

}  // namespace holdfast::engines::quorums
