#include "fair_fixture.hpp"

namespace holdfast::engines::redis {
namespace {

using fair_scripts = fair_script_test;

TEST_F(fair_scripts, a_free_lock_is_written_as_redisson_writes_it) {
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(text({"HGETALL", name}), alice + "\n1");
    expect_long_lease(name);
    EXPECT_EQ(number({"EXISTS", queue, timeouts}), 0);
    EXPECT_EQ(text({"HKEYS", holds}), alice);
}

TEST_F(fair_scripts, waiters_get_in_line_as_redisson_puts_them) {
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_TRUE(busy(acquire(bob)));
    EXPECT_TRUE(busy(acquire(carol)));
    EXPECT_EQ(in_line(), bob + "\n" + carol);
    EXPECT_EQ(text({"ZRANGE", timeouts, "0", "-1"}), bob + "\n" + carol);
    expect_alive_for(bob, wait);
    expect_alive_for(carol, 2 * wait);
}

TEST_F(fair_scripts, who_does_not_wait_leaves_no_trace) {
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_TRUE(busy(acquire(bob, line::stays_out)));
    EXPECT_EQ(number({"EXISTS", queue, timeouts}), 0);
}

TEST_F(fair_scripts, the_lock_goes_to_the_first_in_line) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(acquire(bob)));
    ASSERT_TRUE(busy(acquire(carol)));
    EXPECT_EQ(release(alice), (numbers{1, 2}));
    EXPECT_TRUE(busy(acquire(carol)));
    EXPECT_TRUE(busy(acquire(java, line::stays_out)));
    EXPECT_TRUE(granted(acquire(bob)));
    EXPECT_EQ(in_line(), carol);
    EXPECT_EQ(release(bob), (numbers{1, 1}));
    EXPECT_TRUE(granted(acquire(carol)));
    EXPECT_EQ(number({"EXISTS", queue, timeouts}), 0);
}

TEST_F(fair_scripts, whoever_gets_the_lock_moves_the_others_up) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(acquire(bob)));
    ASSERT_TRUE(busy(acquire(carol)));
    release(alice);
    ASSERT_TRUE(granted(acquire(bob)));
    expect_alive_for(carol, wait);
}

TEST_F(fair_scripts, a_waiter_that_asks_again_keeps_its_place_and_stays_alive) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(acquire(bob)));
    ASSERT_TRUE(busy(acquire(carol)));
    redis({"ZADD", timeouts, text_of(now() + 5000), bob});
    ASSERT_TRUE(busy(acquire(bob)));
    EXPECT_EQ(in_line(), bob + "\n" + carol);
    expect_alive_for(bob, wait);
    ASSERT_TRUE(busy(acquire(carol)));
    EXPECT_EQ(in_line(), bob + "\n" + carol);
    expect_alive_for(carol, 2 * wait);
}

TEST_F(fair_scripts, an_acquisition_sent_again_is_granted_with_the_same_tokens) {
    const auto first = acquire(alice, line::gets_in, {.ttl = 1000, .count = 4});
    const auto again = acquire(alice, line::gets_in, {.count = 4});
    EXPECT_EQ(numbers_in(again), numbers_in(first));
    expect_long_lease(name);
    acquire(alice, line::gets_in, {.ttl = 1000});
    expect_long_lease(name);
    EXPECT_EQ(text({"HGET", name, alice}), "1");
}

TEST_F(fair_scripts, a_dead_waiter_is_passed_over_when_its_time_is_over) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(acquire(bob, line::gets_in, {}, short_ttl)));
    ASSERT_TRUE(busy(acquire(carol)));
    release(alice);
    wait_until("carol to be let in", [&] { return acquire(carol).items.size() == 3; });
    EXPECT_EQ(number({"EXISTS", queue, timeouts}), 0);
}

TEST_F(fair_scripts, several_dead_waiters_are_passed_over_together) {
    redis({"PEXPIRE", name, "1"});
    for (int index = 0; index < 5; ++index) {
        queue_up("dead:" + text_of(index), now() - 1);
    }
    EXPECT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(number({"EXISTS", queue, timeouts}), 0);
}

TEST_F(fair_scripts, a_dead_waiter_behind_a_live_one_does_no_harm) {
    queue_up(bob, now() + 60'000);
    queue_up(carol, now() - 1);
    EXPECT_TRUE(busy(acquire(alice)));
    EXPECT_TRUE(granted(acquire(bob)));
    release(bob);
    EXPECT_TRUE(granted(acquire(alice)));
}

TEST_F(fair_scripts, a_waiter_without_a_time_does_not_block_the_line) {
    redis({"RPUSH", queue, bob});
    EXPECT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(number({"EXISTS", queue}), 0);
}

TEST_F(fair_scripts, a_time_without_a_place_in_line_is_forgotten) {
    redis({"ZADD", timeouts, text_of(now() + 60'000), bob});
    EXPECT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(number({"EXISTS", timeouts}), 0);
}

TEST_F(fair_scripts, a_java_program_first_in_line_is_let_in_first) {
    auto javas = listener(fair_channel(name, java));
    queue_up(java, now() + 300'000);
    const auto retry = retry_of(acquire(alice));
    EXPECT_GT(retry, 250'000);
    EXPECT_LE(retry, 300'000);
    EXPECT_EQ(in_line(), java + "\n" + alice);
    expect_alive_for(alice, 300'000 + wait);
    EXPECT_EQ(number({"EXISTS", name}), 0);
}

TEST_F(fair_scripts, java_programs_that_died_together_are_waited_for_together) {
    for (int index = 1; index <= 5; ++index) {
        queue_up("9f0c1e52-7d1b-4c54-9c0a-5f6e7d8c9b0a:" + text_of(index), now() + index * 300'000);
    }
    const auto patience = 10 * short_ttl;
    const auto asked = now();
    EXPECT_LE(retry_of(acquire(alice, line::gets_in, {}, patience)), patience);
    wait_until("alice to be let in",
               [&] { return acquire(alice, line::gets_in, {}, patience).items[0].integer == 1; });
    EXPECT_GE(now(), asked + patience) << "they may listen elsewhere, and had no time to come";
    EXPECT_EQ(number({"EXISTS", queue, timeouts, wishes}), 0);
}

TEST_F(fair_scripts, a_java_program_that_is_passed_over_is_told_and_gets_in_line_again) {
    auto elsewhere = listener("elsewhere");  // as if it listened to another server
    queue_up(java, now() + 300'000);
    wait_until("alice to be let in",
               [&] { return acquire(alice, line::gets_in, {}, short_ttl).items[0].integer == 1; });
    auto javas = listener(fair_channel(name, java));
    queue_up(java, now() + 300'000);
    release(alice);
    EXPECT_EQ(message(javas), "0");
    EXPECT_EQ(in_line(), java);
}

TEST_F(fair_scripts, a_java_program_that_listens_keeps_its_turn_however_long_it_takes) {
    auto javas = listener(fair_channel(name, java));
    queue_up(java, now() + 300'000);
    const auto enough = now() + 5 * short_ttl;
    while (now() < enough) {
        ASSERT_TRUE(busy(acquire(alice, line::gets_in, {}, short_ttl)));
    }
    EXPECT_EQ(in_line(), java + "\n" + alice);
}

TEST_F(fair_scripts, the_line_goes_by_itself_when_all_in_it_are_dead) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(acquire(bob)));
    EXPECT_GT(number({"PTTL", queue}), 0);
    EXPECT_GT(number({"PTTL", timeouts}), 0);
    EXPECT_LT(number({"PTTL", queue}), 100'000'000);
}

TEST_F(fair_scripts, a_java_program_that_got_the_lock_moved_us_up) {
    queue_up(java, now() + 300'000);
    ASSERT_TRUE(busy(acquire(alice)));
    // What Redisson does when its turn has come.
    redis({"HSET", name, java, "1"});
    redis({"PEXPIRE", name, "30000"});
    redis({"LPOP", queue});
    redis({"ZREM", timeouts, java});
    redis({"ZINCRBY", timeouts, "-300000", alice});
    const auto retry = retry_of(acquire(alice));
    EXPECT_GT(retry, 15'000);
    EXPECT_LE(retry, 30'000);
    EXPECT_EQ(in_line(), alice);
    expect_alive_for(alice, wait);
}

TEST_F(fair_scripts, one_who_finds_it_free_tells_the_first_in_line) {
    auto javas = listener(fair_channel(name, java));
    queue_up(java, now() + 60'000);
    EXPECT_TRUE(busy(acquire(alice)));
    EXPECT_EQ(message(javas), "0");
}

TEST_F(fair_scripts, busy_lasts_until_the_lease_or_the_first_waiters_time_ends) {
    ASSERT_TRUE(granted(acquire(alice)));
    auto retry = retry_of(acquire(bob));
    EXPECT_GT(retry, long_ttl / 2);
    EXPECT_LE(retry, long_ttl);
    retry = retry_of(acquire(carol));
    EXPECT_GT(retry, wait / 2);
    EXPECT_LE(retry, wait);
}

TEST_F(fair_scripts, busy_without_any_end_in_sight_is_unknown) {
    redis({"HSET", name, java, "1"});
    EXPECT_EQ(retry_of(acquire(alice)), 0);
}

TEST_F(fair_scripts, a_release_tells_the_first_in_line_and_nobody_else) {
    auto bobs = listener(fair_channel(name, bob));
    auto carols = listener(fair_channel(name, carol));
    ASSERT_TRUE(granted(acquire(alice)));
    acquire(bob);
    acquire(carol);
    release(alice);
    EXPECT_EQ(message(bobs), "0");
    redis({"PUBLISH", fair_channel(name, carol), "end"});
    EXPECT_EQ(message(carols), "end");
    EXPECT_EQ(number({"EXISTS", name, holds}), 0);
}

TEST_F(fair_scripts, a_release_passes_over_the_dead) {
    auto carols = listener(fair_channel(name, carol));
    ASSERT_TRUE(granted(acquire(alice)));
    queue_up(bob, now() - 1);
    queue_up(carol, now() + 60'000);
    EXPECT_EQ(release(alice), (numbers{1, 1}));
    EXPECT_EQ(message(carols), "0");
}

TEST_F(fair_scripts, only_the_owner_releases) {
    ASSERT_TRUE(granted(acquire(alice)));
    acquire(bob);
    EXPECT_EQ(release(carol), gone);
    EXPECT_EQ(text({"HKEYS", name}), alice);
    EXPECT_EQ(in_line(), bob);
}

TEST_F(fair_scripts, who_gives_up_leaves_the_line_and_the_others_move_up) {
    ASSERT_TRUE(granted(acquire(alice)));
    acquire(bob);
    acquire(carol);
    acquire(java);
    EXPECT_EQ(release(carol), gone);
    EXPECT_EQ(in_line(), bob + "\n" + java);
    EXPECT_EQ(alive_for(carol), -1);
    expect_alive_for(bob, wait);
    expect_alive_for(java, 2 * wait);
}

TEST_F(fair_scripts, when_the_first_gives_up_on_a_free_lock_the_next_is_told) {
    auto carols = listener(fair_channel(name, carol));
    queue_up(bob, now() + 60'000);
    queue_up(carol, now() + 120'000);
    EXPECT_EQ(release(bob), gone);
    EXPECT_EQ(message(carols), "0");
}

TEST_F(fair_scripts, a_release_after_the_lease_ended_tells_the_first_in_line) {
    auto bobs = listener(fair_channel(name, bob));
    ASSERT_TRUE(granted(acquire(alice)));
    acquire(bob);
    redis({"PEXPIRE", name, "1"});
    wait_until_gone(name);
    EXPECT_EQ(release(alice), gone);
    EXPECT_EQ(message(bobs), "0");
    EXPECT_EQ(in_line(), bob);
}

TEST_F(fair_scripts, moving_up_invents_no_times) {
    ASSERT_TRUE(granted(acquire(alice)));
    acquire(bob);
    redis({"RPUSH", queue, carol});
    EXPECT_EQ(release(bob), gone);
    EXPECT_EQ(alive_for(carol), -1);
}

TEST_F(fair_scripts, a_lingering_lock_keeps_the_line_waiting) {
    ASSERT_TRUE(granted(acquire(alice)));
    acquire(bob);
    EXPECT_EQ(release(alice, 5000), released);
    EXPECT_EQ(text({"HKEYS", name}), alice + ":lingering");
    EXPECT_TRUE(busy(acquire(bob)));
    EXPECT_EQ(release(alice, 5000), released);
    EXPECT_EQ(release(alice), gone);
    expect_remaining(name, 2000, 5000);
}

TEST_F(fair_scripts, other_kinds_under_the_name_are_refused_and_left_alone) {
    for (const auto& command :
         std::vector<words>{{"SET", name, "5"}, {"HSET", name, "mode", "write", bob + ":write", "1"}}) {
        redis({"DEL", name});
        redis(command);
        const auto before = contents();
        EXPECT_TRUE(wrong_kind(acquire(alice)));
        EXPECT_EQ(release(alice), gone);
        EXPECT_EQ(contents(), before);
    }
}

}  // namespace
}  // namespace holdfast::engines::redis
