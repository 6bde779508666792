#pragma once

#include <quorum/parts.hpp>

namespace holdfast::engines::quorums {

/// Renews leases on all members. A member that has lost a claim which a majority still has gets it
/// again; what no majority has is released.
void renew_by_vote(quorum_parts& parts, std::vector<renew_request> batch, const call& limits,
                   completion<std::vector<renew_reply>> done);

}  // namespace holdfast::engines::quorums
