#pragma once

#include "../actor.hpp"
#include "../story.hpp"

/// Both sides of every scenario, in the order of the path in docs/learn.
namespace lab::scenarios {

ending v0_naive(story& told);
ending v0_holdfast(story& told);
void v0_naive_seller(script& lines);
void v0_holdfast_seller(script& lines);

ending v1_naive(story& told);
ending v1_holdfast(story& told);
void v1_naive_waiter(script& lines);
void v1_holdfast_waiter(script& lines);

ending v2_naive(story& told);
ending v2_holdfast(story& told);
void v2_naive_holder(script& lines);
/// Takes the lock with holdfast (MORE: the ttl in ms), says so, waits to be killed.
void holdfast_holder(script& lines);

ending torn_naive(story& told);
ending torn_holdfast(story& told);
void torn_naive_holder(script& lines);

ending v3_naive(story& told);
ending v3_holdfast(story& told);

ending v4_naive(story& told);
ending v4_holdfast(story& told);

ending v5_naive(story& told);
ending v5_holdfast(story& told);

ending v6_naive(story& told);
ending v6_holdfast(story& told);

ending v7_naive(story& told);
ending v7_holdfast(story& told);

ending wake_up_naive(story& told);
ending wake_up_holdfast(story& told);

ending replica_naive(story& told);
ending replica_holdfast(story& told);

ending wait_naive(story& told);
ending wait_holdfast(story& told);

ending eviction_naive(story& told);
ending eviction_holdfast(story& told);

ending late_write_naive(story& told);
ending late_write_holdfast(story& told);

ending two_masters_naive(story& told);
ending two_masters_holdfast(story& told);

ending restart_naive(story& told);
ending restart_holdfast(story& told);

ending pause_naive(story& told);
ending pause_holdfast(story& told);
void pause_naive_writer(script& lines);
void pause_holdfast_writer(script& lines);

}  // namespace lab::scenarios
