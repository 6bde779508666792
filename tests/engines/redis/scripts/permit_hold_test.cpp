#include "permit_fixture.hpp"

namespace holdfast::engines::redis {
namespace {

class permit_hold_scripts : public permit_scripts {};

TEST_F(permit_hold_scripts, a_release_gives_all_permits_back_and_says_how_many_are_free) {
    auto waiter = listener(channel);
    ASSERT_TRUE(granted(acquire(alice, {.permits = 2})));
    EXPECT_EQ(release(alice, 2), (numbers{1, 1}));
    EXPECT_EQ(message(waiter), "3");
    EXPECT_EQ(free_permits(), "3");
    EXPECT_EQ(number({"EXISTS", timeouts}), 0);
}

TEST_F(permit_hold_scripts, the_limit_is_all_that_is_remembered_of_an_idle_semaphore) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_EQ(release(alice), released);
    EXPECT_EQ(text({"HGETALL", holds}), "limit\n3 ours");
}

TEST_F(permit_hold_scripts, only_the_owner_releases_and_only_once) {
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(release(bob), gone);
    EXPECT_EQ(free_permits(), "2");
    EXPECT_EQ(release(alice), released);
    EXPECT_EQ(release(alice), gone);
    EXPECT_EQ(free_permits(), "3");
}

TEST_F(permit_hold_scripts, releasing_permits_that_expired_is_gone_and_takes_them_back) {
    auto waiter = listener(channel);
    ASSERT_TRUE(granted(acquire(alice, {.permits = 2})));
    ASSERT_TRUE(granted(acquire(bob)));
    expire(ids(alice, 2).substr(0, 16));
    expire(ids(alice, 2).substr(16));
    EXPECT_EQ(release(alice, 2), gone);
    EXPECT_EQ(message(waiter), "2");
    EXPECT_EQ(free_permits(), "2");
    EXPECT_EQ(number({"HEXISTS", holds, alice}), 0);
}

TEST_F(permit_hold_scripts, a_deleted_counter_is_not_made_up_by_a_release) {
    auto waiter = listener(channel);
    ASSERT_TRUE(granted(acquire(alice, {.permits = 2})));
    redis({"DEL", name});
    EXPECT_EQ(release(alice, 2), (numbers{1, 1}));
    EXPECT_EQ(message(waiter), "2");
    EXPECT_EQ(number({"EXISTS", name, timeouts}), 0);
}

TEST_F(permit_hold_scripts, a_release_leaves_a_java_programs_permits_alone) {
    redis({"SET", name, "2"});
    redis({"ZADD", timeouts, never, java_id('1')});
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_EQ(release(alice), released);
    EXPECT_EQ(text({"ZRANGE", timeouts, "0", "-1"}), java_id('1'));
    EXPECT_EQ(free_permits(), "2");
}

TEST_F(permit_hold_scripts, lingering_permits_are_nobodys_and_stay_taken) {
    const auto token = token_of(acquire(alice, {.permits = 2, .limit = 2}));
    EXPECT_EQ(release(alice, 2, 5000), released);
    EXPECT_EQ(text({"HGET", holds, alice}),
              text_of(token) + " 1 " + since + " lingering 2 " + ids(alice, 2));
    expect_ends_in(ids(alice, 2).substr(0, 16), 2000, 5000);
    expect_ends_in(ids(alice, 2).substr(16), 2000, 5000);
    EXPECT_EQ(renew(alice, long_ttl, 2), "0");
    EXPECT_EQ(release(alice, 2), gone);
    EXPECT_EQ(release(alice, 2, 5000), released);
    const auto retry = retry_of(acquire(alice, {.permits = 2, .limit = 2}));
    EXPECT_GT(retry, 0);
    EXPECT_LE(retry, 5000);
    EXPECT_TRUE(busy(acquire(bob, {.limit = 2})));
    expect_ends_in(ids(alice, 2).substr(0, 16), 1, 5000);
}

TEST_F(permit_hold_scripts, a_linger_ends) {
    ASSERT_TRUE(granted(acquire(alice, {.limit = 1})));
    EXPECT_EQ(release(alice, 1, short_ttl), released);
    wait_until("bob to be let in", [&] { return acquire(bob, {.limit = 1}).items.size() == 3; });
    EXPECT_EQ(number({"HEXISTS", holds, alice}), 0);
}

TEST_F(permit_hold_scripts, a_linger_is_marked_even_when_the_hold_was_forgotten) {
    ASSERT_TRUE(granted(acquire(alice)));
    redis({"DEL", holds});
    EXPECT_EQ(release(alice, 1, 5000), released);
    EXPECT_EQ(text({"HGET", holds, alice}), "0 0 0 lingering 1 " + ids(alice));
    EXPECT_EQ(renew(alice), "0");
    EXPECT_EQ(release(alice), gone);
}

TEST_F(permit_hold_scripts, a_renewal_extends_all_permits_and_never_shortens) {
    ASSERT_TRUE(granted(acquire(alice, {.ttl = 1000, .permits = 2})));
    EXPECT_EQ(renew(alice, long_ttl, 2), "1");
    expect_ends_in(ids(alice, 2).substr(0, 16), long_ttl / 2, long_ttl);
    expect_ends_in(ids(alice, 2).substr(16), long_ttl / 2, long_ttl);
    EXPECT_EQ(renew(alice, 1000, 2), "1");
    expect_ends_in(ids(alice, 2).substr(0, 16), long_ttl / 2, long_ttl);
}

TEST_F(permit_hold_scripts, a_renewal_creates_nothing) {
    EXPECT_EQ(renew(alice), "0");
    EXPECT_EQ(number({"DBSIZE"}), 0);
}

TEST_F(permit_hold_scripts, permits_that_expired_are_not_brought_back) {
    ASSERT_TRUE(granted(acquire(alice, {.permits = 2})));
    expire(ids(alice, 2).substr(16));
    EXPECT_EQ(renew(alice, long_ttl, 2), "0");
    EXPECT_LT(ends_in(ids(alice, 2).substr(16)), 0);
}

TEST_F(permit_hold_scripts, without_ids_all_that_the_owner_has_is_meant) {
    ASSERT_TRUE(granted(acquire(alice, {.ttl = 1000, .permits = 2})));
    ASSERT_TRUE(granted(acquire(bob, {.ttl = 1000})));
    EXPECT_EQ(renew(alice, long_ttl, 0), "1");
    expect_ends_in(ids(alice, 2).substr(0, 16), long_ttl / 2, long_ttl);
    expect_ends_in(ids(alice, 2).substr(16), long_ttl / 2, long_ttl);
    EXPECT_EQ(release(alice, 0), released);
    EXPECT_EQ(free_permits(), "2");
    EXPECT_EQ(text({"ZRANGE", timeouts, "0", "-1"}), ids(bob));
}

TEST_F(permit_hold_scripts, without_ids_an_owner_that_nobody_knows_has_nothing) {
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(renew(bob, long_ttl, 0), "0");
    EXPECT_EQ(release(bob, 0), gone);
    EXPECT_EQ(release(alice, 0), released);
    EXPECT_EQ(renew(alice, long_ttl, 0), "0");
    EXPECT_EQ(release(alice, 0), gone);
    EXPECT_EQ(free_permits(), "3");
}

TEST_F(permit_hold_scripts, without_ids_lingering_permits_stay_nobodys) {
    ASSERT_TRUE(granted(acquire(alice, {.permits = 2})));
    EXPECT_EQ(release(alice, 0, 5000), released);
    expect_ends_in(ids(alice, 2).substr(16), 2000, 5000);
    EXPECT_EQ(renew(alice, long_ttl, 0), "0");
    EXPECT_EQ(release(alice, 0), gone);
    EXPECT_EQ(free_permits(), "1");
}

TEST_F(permit_hold_scripts, only_the_owners_permits_are_renewed) {
    ASSERT_TRUE(granted(acquire(alice, {.ttl = 1000})));
    EXPECT_EQ(renew(bob), "0");
    expect_ends_in(ids(alice), -1000, 1000);
}

TEST_F(permit_hold_scripts, a_revoked_owner_hears_why) {
    const auto record = alice + " 17 1700000000000 bob stuck";
    redis({"SET", revocation, record});
    EXPECT_EQ(renew(alice), record);
    EXPECT_EQ(renew(bob), "0");
}

TEST_F(permit_hold_scripts, trouble_with_one_of_a_batch_does_not_touch_the_others) {
    ASSERT_TRUE(granted(acquire(alice, {.ttl = 1000})));
    redis({"SET", "text", "x"});
    const auto ttl = text_of(long_ttl);
    const auto reply = run(scripts::permit_renew(),
                           {"text", "text", "r1", timeouts, holds, revocation, "none", "h3", "r3"},
                           {alice, ttl, ids(alice), alice, ttl, ids(alice), alice, ttl, ids(alice)});
    EXPECT_EQ(reply.as_text(), "0\n1\n0");
    expect_ends_in(ids(alice), long_ttl / 2, long_ttl);
}

}  // namespace
}  // namespace holdfast::engines::redis
