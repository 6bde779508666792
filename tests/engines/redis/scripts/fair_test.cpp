#include "fair_fixture.hpp"

namespace holdfast::engines::redis {
namespace {

using fair_scripts = fair_script_test;

const std::string dave = "d4d4d4d4-0000-4000-8000-00000000000d:1";

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

/// A line that is never empty: nobody has counted anew for long.
TEST_F(fair_scripts, whoever_gets_the_lock_late_moves_the_others_up_by_what_was_left_of_its_time) {
    for (const auto how : {line::gets_in, line::wants_it}) {
        redis({"FLUSHALL"});
        auto bobs = listener(channel_base + ":" + bob);
        ASSERT_TRUE(granted(acquire(alice)));
        ASSERT_TRUE(busy(acquire(bob, how)));
        queue_up(java, now() + 6000 + 300'000);
        redis({"ZADD", timeouts, text_of(now() + 6000), bob});
        release(alice);
        if (how == line::gets_in) {
            ASSERT_TRUE(granted(acquire(bob)));
        }
        ASSERT_EQ(text({"HKEYS", name}), bob);
        expect_alive_for(java, 300'000);
    }
}

TEST_F(fair_scripts, a_waiter_that_asks_again_keeps_its_place_and_stays_alive) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(acquire(bob)));
    ASSERT_TRUE(busy(acquire(carol)));
    redis({"ZADD", timeouts, text_of(now() + 5000), bob, text_of(now() + 5000 + wait), carol});
    ASSERT_TRUE(busy(acquire(bob)));
    EXPECT_EQ(in_line(), bob + "\n" + carol);
    expect_alive_for(bob, wait);
    ASSERT_TRUE(busy(acquire(carol)));
    EXPECT_EQ(in_line(), bob + "\n" + carol);
    expect_alive_for(carol, 2 * wait);
}

/// Otherwise a thousand waiters that ask once a second keep the server busy.
TEST_F(fair_scripts, a_waiter_behind_others_that_asks_again_looks_at_nobody_but_the_first) {
    ASSERT_TRUE(granted(acquire(alice)));
    for (const auto& waiter : {bob, carol, dave}) {
        ASSERT_TRUE(busy(acquire(waiter, line::wants_it)));
    }
    const auto times = text({"ZRANGE", timeouts, "0", "-1", "WITHSCORES"});
    const auto note = text({"HGET", wishes, carol});
    redis({"CONFIG", "RESETSTAT"});
    question_ = "4712";

    ASSERT_TRUE(busy(acquire(carol, line::wants_it)));

    const auto calls = text({"INFO", "commandstats"});
    EXPECT_EQ(calls.find("cmdstat_lrange"), std::string::npos);
    EXPECT_EQ(calls.find("cmdstat_zadd"), std::string::npos);
    EXPECT_EQ(text({"ZRANGE", timeouts, "0", "-1", "WITHSCORES"}), times);
    EXPECT_EQ(in_line(), bob + "\n" + carol + "\n" + dave);
    EXPECT_NE(text({"HGET", wishes, carol}), note) << "it is alive, and this is its last question";
}

/// Otherwise a release in a line of thousands takes as many steps, and the server is busy with nothing
/// else.
TEST_F(fair_scripts, coming_going_and_releasing_cost_no_more_in_a_long_line) {
    auto bobs = listener(channel_base + ":" + bob);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(acquire(bob, line::wants_it)));
    ASSERT_TRUE(busy(acquire(carol, line::wants_it)));
    words in_queue{"RPUSH", queue};
    words in_time{"ZADD", timeouts};
    for (std::int64_t place = 0; place < 1000; ++place) {
        const auto waiter = java + text_of(place);
        in_queue.push_back(waiter);
        in_time.insert(in_time.end(), {text_of(now() + (3 + place) * wait), waiter});
    }
    redis(in_queue);
    redis(in_time);
    const auto steps_of = [&](const auto& act) {
        redis({"CONFIG", "RESETSTAT"});
        act();
        const auto calls = text({"INFO", "commandstats"});
        EXPECT_EQ(calls.find("cmdstat_lrange:calls=2"), std::string::npos);
        const auto found = calls.find("cmdstat_zadd:calls=");
        return found == std::string::npos ? 0 : std::stoi(calls.substr(found + 19));
    };
    EXPECT_LE(steps_of([&] { EXPECT_TRUE(busy(acquire(dave, line::wants_it))); }), 1);
    expect_alive_for(dave, 1003 * wait);
    EXPECT_LE(steps_of([&] { EXPECT_EQ(release(carol), gone); }), 64);
    expect_alive_for(java + "0", 2 * wait);
    expect_alive_for(java + "63", 65 * wait);
    expect_alive_for(java + "64", 67 * wait);
    EXPECT_LE(steps_of([&] { EXPECT_EQ(release(alice)[0], 1); }), 64);
    ASSERT_EQ(text({"HKEYS", name}), bob);
    expect_alive_for(java + "0", wait);
}

/// Those far behind kept times that are too long: whoever is served takes from the next what is too
/// much.
TEST_F(fair_scripts, a_time_that_is_too_long_is_right_when_its_turn_comes) {
    for (const auto how : {line::gets_in, line::wants_it}) {
        redis({"FLUSHALL"});
        auto bobs = listener(channel_base + ":" + bob);
        ASSERT_TRUE(granted(acquire(alice)));
        ASSERT_TRUE(busy(acquire(bob, how)));
        queue_up(java, now() + 900'000 + 300'000);
        redis({"ZADD", timeouts, text_of(now() + 900'000), bob});
        release(alice);
        if (how == line::gets_in) {
            ASSERT_TRUE(granted(acquire(bob)));
        }
        ASSERT_EQ(text({"HKEYS", name}), bob);
        expect_alive_for(java, 300'000);
    }
}

TEST_F(fair_scripts, a_waiter_behind_others_whose_time_is_short_has_more_and_so_have_those_behind) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(acquire(bob)));
    ASSERT_TRUE(busy(acquire(carol)));
    ASSERT_TRUE(busy(acquire(dave)));
    redis({"ZADD", timeouts, text_of(now() + wait / 4), carol, text_of(now() + wait / 2), dave});

    ASSERT_TRUE(busy(acquire(carol)));

    expect_alive_for(carol, 2 * wait);
    expect_alive_for(dave, 2 * wait + wait / 4);
}

TEST_F(fair_scripts, the_first_in_line_counts_its_time_anew_when_those_before_it_have_gone) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(acquire(bob)));
    ASSERT_TRUE(busy(acquire(carol)));
    ASSERT_TRUE(busy(acquire(dave)));
    redis({"ZADD", timeouts, text_of(now() - 1), bob});

    ASSERT_TRUE(busy(acquire(carol)));

    EXPECT_EQ(in_line(), carol + "\n" + dave);
    expect_alive_for(carol, wait);
    expect_alive_for(dave, 2 * wait);
}

TEST_F(fair_scripts, a_waiter_whose_place_was_lost_gets_in_line_again) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(acquire(bob)));
    ASSERT_TRUE(busy(acquire(carol)));
    redis({"LREM", queue, "1", carol});
    redis({"ZADD", timeouts, text_of(now() + wait), carol});

    ASSERT_TRUE(busy(acquire(carol)));

    EXPECT_EQ(in_line(), bob + "\n" + carol);
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

TEST_F(fair_scripts,
       a_java_program_that_does_not_listen_is_waited_for_no_longer_because_a_clock_was_set_back) {
    queue_up(java, now() + 600'000);
    redis({"HSET", wishes, java, "deaf " + text_of(now() + 300'000)});
    EXPECT_TRUE(busy(acquire(alice)));
    EXPECT_LE(std::stoll(text({"HGET", wishes, java}).substr(5)), now());
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
