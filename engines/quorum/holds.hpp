#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/engine.hpp>

/// What a quorum remembers of the owners that it asked the members for.
namespace holdfast::engines::quorums {

struct round;

/// Members know an owner by its number and by how often it has come back: what one of them does late,
/// on behalf of an attempt that was given up, must not touch the next attempt.
///
/// The lower bits are the owner's own number, which is what everybody outside gets to see.
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

struct hold {
    enum class state : std::uint8_t {
        idle,  ///< it has nothing, but asked before
        held,
        letting_go,
    } is{state::idle};
    std::uint32_t attempt{};
    claim_mode mode{};
    lock_kind kind{};
    fencing_token token{};
    std::uint32_t token_count{1};
    std::chrono::milliseconds ttl{};
    /// Changes whenever what members should know of it changes.
    std::uint64_t generation{};
    /// The request under way.
    std::shared_ptr<round> asking{};
    /// Requests of the same owner that came meanwhile.
    std::deque<std::function<void()>> next{};
    /// Requests to members that would make or change the claim, and are not answered.
    std::size_t unanswered{};
    /// Members that have it, as far as they said.
    std::vector<bool> known_to;
    /// Members that a late request for a share may reach at any time: their word about an exclusive
    /// claim is not to be trusted.
    std::vector<bool> unsteady;
    /// Members that a request beside the rounds is just being sent to.
    std::vector<std::uint32_t> being_repaired;
    std::uint32_t splits{};
    bool lead_next{};
    clock::time_point forget_at{clock::time_point::max()};

    explicit hold(std::size_t members)
        : known_to(members), unsteady(members), being_repaired(members) {}
};

/// So often are owners forgotten that will not come back.
inline constexpr std::uint32_t requests_between_sweeps = 1024;
/// So long are they remembered beyond the time in which they would have.
inline constexpr std::chrono::seconds memory_of_attempts{10};

using hold_key = std::pair<std::string, owner_id>;
using hold_table = std::map<hold_key, hold>;

/// A claim that a member did not confirm to be rid of. Its owner is never used again at a member: the
/// hold's attempt has moved on, and is remembered for as long as this is.
struct leftover {
    std::size_t member{};
    hold_key key;
    owner_id owner;
    claim_mode mode{};
    lock_kind kind{};
    clock::time_point until{};
};
/// How long a member may take to answer what nobody waits for.
inline constexpr std::chrono::seconds quiet_timeout{1};
/// More than this would only be there if a member is away for long, and end with their ttl.
inline constexpr std::size_t most_leftovers = 1024;
inline constexpr std::size_t leftovers_at_once = 32;
/// Between two rounds of telling members again.
inline constexpr std::chrono::milliseconds between_repeats{250};

}  // namespace holdfast::engines::quorums
