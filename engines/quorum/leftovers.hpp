#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <vector>

#include <quorum/holds.hpp>
#include <threading/primitives.hpp>

namespace holdfast::engines::quorums {

/// How long a member may take to answer a request that nobody waits for.
inline constexpr std::chrono::seconds quiet_timeout{1};
/// More would be there only if a member is away for long, and end with their ttl.
inline constexpr std::size_t most_leftovers = 1024;

/// Releases that nobody waits for, and the claims that members did not confirm to be rid of. Members
/// are told of these again with later requests, by a thread if there is one, and at the end.
///
/// The owner of a leftover is never used again at a member: the hold's attempt has moved on, and is
/// remembered for as long as the leftover is.
///
/// Thread safety: all functions, from any thread. `keep`, `take` and `announce_release` need the guard
/// of the holds.
class leftover_list {
public:
    leftover_list(member_set& members, hold_table& holds) : members_{members}, holds_{holds} {}

    /// From now on a thread tells members again. Called once, before any request.
    void repeat_by_thread() { repeats_ = true; }
    /// Tells the members for the last time.
    void end();

    /// Releases a claim at its member. Without an answer it becomes a leftover.
    void release(const member_claim& claim);
    void release_all(const std::vector<member_claim>& claims);
    /// The owner must not ask again before this release is sent, or the release would take what it is
    /// granted. Announce it under the guard, send it without.
    void announce_release(const member_claim& claim) { holds_.on_request(claim.key); }
    void release_announced(const member_claim& claim);

    [[nodiscard]] bool full() const noexcept { return leftovers_.size() >= most_leftovers; }
    /// A member did not confirm that it is rid of the claim.
    void keep(member_claim claim, clock::time_point until, hold& hold);
    /// What a request gives back: all of its own owner's, and what is left on members that answer.
    /// Without a request: all. At most some at a time.
    [[nodiscard]] std::vector<member_claim> take(const hold_key* asking);

private:
    struct leftover {
        member_claim claim;
        clock::time_point until;
    };

    void start_repeating() noexcept;
    void tell_again(const std::stop_token& stop);

    member_set& members_;
    hold_table& holds_;
    std::vector<leftover> leftovers_;
    bool repeats_{};
    std::condition_variable_any added_;
    threading::jthread repeater_;
};

}  // namespace holdfast::engines::quorums
