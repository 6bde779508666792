#pragma once

#include <quorum/members.hpp>

namespace holdfast::engines::quorums {

/// Revokes a hold on all members.
void revoke_by_vote(member_set& members, revoke_request request, const call& limits,
                    completion<revoke_reply> done);

}  // namespace holdfast::engines::quorums
