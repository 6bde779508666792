#pragma once

#include <quorum/members.hpp>

namespace holdfast::engines::quorums {

/// The findings of all members, with what they mean for a quorum.
void examine_all(member_set& members, const call& limits, completion<examine_reply> done);

}  // namespace holdfast::engines::quorums
