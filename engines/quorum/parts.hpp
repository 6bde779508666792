#pragma once

#include <quorum/holds.hpp>
#include <quorum/leftovers.hpp>
#include <quorum/members.hpp>
#include <quorum/repairs.hpp>

namespace holdfast::engines::quorums {

/// What all requests to one quorum share. It outlives their answers.
struct quorum_parts {
    member_set members;
    hold_table holds{members};
    leftover_list leftovers{members, holds};
    quorums::repairs repairs{members, holds, leftovers};
};

}  // namespace holdfast::engines::quorums
