#pragma once

#include <quorum/members.hpp>

namespace holdfast::engines::quorums {

/// Lists the locks that a majority holds: the names that one member knows, then those that only the
/// next ones know. The lists of a majority name everything that a majority holds. So a member that
/// cannot list is left out, and what it knows is listed with the others.
void list_all(member_set& members, list_request request, const call& limits,
              completion<list_reply> done);

}  // namespace holdfast::engines::quorums
