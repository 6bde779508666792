#pragma once

#include <cstddef>
#include <cstdint>

#include <quorum/leftovers.hpp>

namespace holdfast::engines::quorums {

/// Requests for claims that are no votes: they give single members what a majority has decided.
///
/// The hold says that such a request is being sent. So a conversion does not trust the member
/// meanwhile, and a release follows the request.
///
/// Thread safety: all functions, from any thread; without the guard of the holds.
class repairs {
public:
    repairs(member_set& members, hold_table& holds, leftover_list& leftovers)
        : members_{members}, holds_{holds}, leftovers_{leftovers} {}

    /// Gives a claim again to a member that lost it, unless the hold has changed since `generation`.
    void restore(std::size_t member, const hold_key& key, std::uint64_t generation, claim_mode mode);
    /// Puts a member that may have granted this upgrade back to the share.
    void restore_share(std::size_t member, const hold_key& key, acquire_request upgrade);

private:
    void announce(hold& hold, std::size_t member, acquire_request& request) const;
    void ask(std::size_t member, const hold_key& key, const acquire_request& request);
    void answered(const member_claim& claim, const acquire_reply& reply);

    member_set& members_;
    hold_table& holds_;
    leftover_list& leftovers_;
};

}  // namespace holdfast::engines::quorums
