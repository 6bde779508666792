#pragma once

#include <quorum/parts.hpp>

namespace holdfast::engines::quorums {

/// Releases a lock on all members. Answers when a majority is free of it; the others are told again
/// when they answer.
void release_by_vote(quorum_parts& parts, release_request request, const call& limits,
                     completion<release_reply> done);

}  // namespace holdfast::engines::quorums
