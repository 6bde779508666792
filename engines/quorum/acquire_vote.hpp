#pragma once

#include <quorum/parts.hpp>

namespace holdfast::engines::quorums {

/// Asks all members for a lock, in one round of `core::quorum_round`. The caller's owner has one round
/// at a time: further requests wait for its end.
void acquire_by_vote(quorum_parts& parts, acquire_request request, call limits,
                     completion<acquire_reply> done);

}  // namespace holdfast::engines::quorums
