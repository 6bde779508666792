#include "lock_give_fixture.hpp"

namespace holdfast::engines::redis {
namespace {

/// A Java program listens to the lock's channel and leaves no wish.
class lock_turns : public lock_gifts {
protected:
    void SetUp() override {
        lock_gifts::SetUp();
        message_ = "000";
    }
    [[nodiscard]] static redis_client java_waits() { return listener(lock_channel(name)); }
    void java_takes_it() {
        ASSERT_EQ(number({"EXISTS", name}), 0);
        redis({"HSET", name, java, "1"});
        redis({"PEXPIRE", name, "30000"});
    }
    void java_releases_it() {
        redis({"DEL", name});
        redis({"PUBLISH", lock_channel(name), "0"});
    }
    /// Without the length of a turn that is longer than usual.
    [[nodiscard]] std::string whose_turn() {
        const auto state = text({"GET", lock_turn(name)});
        return state.substr(0, state.find(' '));
    }
    /// For how long there is no other turn, by the length that the next one has.
    [[nodiscard]] std::int64_t pause() { return number({"PTTL", lock_turn(name)}) - 60'000; }
    /// How long the turn that has just begun lasts.
    [[nodiscard]] std::int64_t left_of_turn() { return numbers_in(acquire(alice)).at(1); }
    void end_pause() { redis({"PEXPIRE", lock_turn(name), "60000"}); }
    void let_it_pass() {
        wait_until("the end of a turn", [&] { return wish(bob).items[0].integer == 1; });
        release(bob);
    }
};

TEST_F(lock_turns, a_release_is_the_turn_of_a_java_program_that_waits) {
    auto javas = java_waits();
    ASSERT_TRUE(granted(acquire(alice)));

    EXPECT_EQ(release(alice), (numbers{1, 1}));

    EXPECT_EQ(message(javas), "000");
    for (const auto& answer : {acquire(alice), wish(bob)}) {
        const auto refused = numbers_in(answer);
        ASSERT_EQ(refused.size(), 3U);
        EXPECT_EQ(refused[0], 0);
        EXPECT_GT(refused[1], 0);
        EXPECT_LE(refused[1], 200);
        EXPECT_EQ(refused[2], 3);
    }
    EXPECT_EQ(number({"EXISTS", name}), 0);
    EXPECT_GT(number({"PTTL", lock_turn(name)}), 0);
}

TEST_F(lock_turns, one_from_before_the_servers_clock_was_set_back_counts_no_more) {
    for (const auto* state : {"3", "missed", "seen"}) {
        redis({"SET", lock_turn(name), state, "PX", "600000"});
        ASSERT_TRUE(granted(wish(bob))) << state;
        EXPECT_EQ(whose_turn(), "") << state;
        release(bob);
    }
}

TEST_F(lock_turns, it_is_over_when_the_java_program_has_released_it) {
    auto javas = java_waits();
    ASSERT_TRUE(granted(acquire(alice)));
    release(alice);
    java_takes_it();
    java_releases_it();
    EXPECT_TRUE(busy(wish(bob))) << "one who has not heard of it";
    turn_ = "4";
    EXPECT_TRUE(busy(wish(bob))) << "that was another turn";
    turn_ = "3";
    EXPECT_TRUE(granted(wish(bob)));
    EXPECT_EQ(whose_turn(), "seen");
}

TEST_F(lock_turns, it_is_over_when_somebody_sees_that_the_java_program_has_the_lock) {
    auto javas = java_waits();
    ASSERT_TRUE(granted(acquire(alice)));
    release(alice);
    java_takes_it();
    EXPECT_TRUE(busy(acquire(bob)));
    EXPECT_EQ(whose_turn(), "seen");
    java_releases_it();
    EXPECT_TRUE(granted(acquire(bob)));
}

TEST_F(lock_turns, it_is_over_when_nobody_comes_and_there_is_no_other_for_a_while) {
    auto javas = java_waits();
    ASSERT_TRUE(granted(acquire(alice)));
    release(alice);
    wait_until("the end of a turn", [&] { return wish(bob).items[0].integer == 1; });
    EXPECT_EQ(whose_turn(), "missed");
    EXPECT_GT(pause(), 2000) << "nobody was ever seen to come";
    release(bob);
    EXPECT_TRUE(granted(acquire(carol)));
    EXPECT_EQ(whose_turn(), "missed");
    release(carol);
    redis({"DEL", lock_turn(name)});
    ASSERT_TRUE(granted(acquire(alice)));
    release(alice);
    EXPECT_EQ(whose_turn(), "3");
}

TEST_F(lock_turns, a_java_program_that_came_before_has_another_turn_soon_after_one_that_it_missed) {
    auto javas = java_waits();
    ASSERT_TRUE(granted(acquire(alice)));
    release(alice);
    java_takes_it();
    EXPECT_TRUE(busy(acquire(bob)));
    java_releases_it();
    ASSERT_TRUE(granted(acquire(bob)));
    release(bob);
    EXPECT_EQ(whose_turn(), "03");
    EXPECT_EQ(numbers_in(acquire(alice)).at(2), 3);
    wait_until("the end of a turn", [&] { return wish(bob).items[0].integer == 1; });
    EXPECT_EQ(whose_turn(), "missed");
    EXPECT_LE(pause(), 1000);
}

TEST_F(lock_turns, a_java_program_that_missed_its_turn_and_has_the_lock_is_there) {
    auto javas = java_waits();
    ASSERT_TRUE(granted(acquire(alice)));
    release(alice);
    wait_until("the end of a turn", [&] { return wish(bob).items[0].integer == 1; });
    release(bob);
    ASSERT_EQ(whose_turn(), "missed");
    java_takes_it();
    EXPECT_TRUE(busy(acquire(carol)));
    EXPECT_EQ(whose_turn(), "seen");
}

/// A Java program may be far away, or slow.
TEST_F(lock_turns, a_turn_that_was_missed_makes_the_next_one_longer_up_to_two_seconds) {
    auto javas = java_waits();
    ASSERT_TRUE(granted(acquire(alice)));
    release(alice);
    std::int64_t length = 200;
    for (const auto next : {400, 800, 1600, 2000, 2000}) {
        let_it_pass();
        EXPECT_LE(pause(), 40 * length);
        EXPECT_GT(pause(), 20 * length) << "one who never comes costs no more than before";
        end_pause();
        ASSERT_TRUE(granted(acquire(alice)));
        release(alice);
        EXPECT_GT(left_of_turn(), length * 9 / 10);
        EXPECT_LE(left_of_turn(), next);
        length = next;
    }
}

TEST_F(lock_turns, a_turn_that_was_used_keeps_its_length) {
    auto javas = java_waits();
    ASSERT_TRUE(granted(acquire(alice)));
    release(alice);
    let_it_pass();
    end_pause();
    for (int round = 0; round < 3; ++round) {
        ASSERT_TRUE(granted(wish(bob)));
        release(bob);
        EXPECT_GT(left_of_turn(), 200);
        EXPECT_LE(left_of_turn(), 400);
        java_takes_it();
        EXPECT_TRUE(busy(acquire(carol)));
        EXPECT_EQ(whose_turn(), "seen");
        java_releases_it();
    }
}

TEST_F(lock_turns, there_is_none_where_only_ours_listen) {
    auto ours = listener_of_ours(name);
    auto more = listener_of_ours(name);
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(release(alice), (numbers{1, 2}));
    EXPECT_EQ(message(ours), "000");
    EXPECT_EQ(whose_turn(), "");
    EXPECT_TRUE(granted(acquire(bob)));
}

TEST_F(lock_turns, a_java_program_has_a_place_among_those_who_wait) {
    auto alices = grants_of(alice);
    auto bobs = grants_of(bob);
    auto carols = grants_of(carol);
    auto javas = java_waits();
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    ASSERT_TRUE(busy(wish(carol)));
    EXPECT_EQ(release(alice), released);
    EXPECT_EQ(text({"HKEYS", name}), bob);
    ASSERT_TRUE(busy(wish(alice)));

    EXPECT_EQ(release(bob), (numbers{1, 1}));
    EXPECT_EQ(message(javas), "000");
    EXPECT_EQ(whose_turn(), "3");
    EXPECT_EQ(number({"LLEN", wishes}), 2) << "carol and alice keep theirs";
    EXPECT_GT(number({"PTTL", wishes}), 0);
    java_takes_it();
    ASSERT_TRUE(busy(wish(carol)));
    java_releases_it();
    ASSERT_TRUE(granted(wish(carol)));
    EXPECT_EQ(release(carol), released);
    EXPECT_TRUE(text({"LINDEX", wishes, "0"}).starts_with("others")) << "and the next is Java's";
}

/// Ours are quicker when a Java program releases it, so they get every other turn.
TEST_F(lock_turns, where_java_has_as_many_processes_as_ours_every_release_of_ours_is_theirs) {
    auto bobs = grants_of(bob);
    auto one = java_waits();
    auto two = java_waits();
    auto ours = listener_of_ours(name);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    EXPECT_EQ(release(alice), (numbers{1, 3}));
    EXPECT_EQ(message(two), "000");
    EXPECT_EQ(whose_turn(), "3");
    EXPECT_EQ(number({"EXISTS", name}), 0);
}

TEST_F(lock_turns, a_place_is_given_up_when_no_java_program_waits_any_more) {
    auto bobs = grants_of(bob);
    auto carols = grants_of(carol);
    {
        auto javas = java_waits();
        ASSERT_TRUE(granted(acquire(alice)));
        ASSERT_TRUE(busy(wish(bob)));
        release(alice);
    }
    wait_until("the end of a connection", [&] {
        return redis({"PUBSUB", "NUMSUB", lock_channel(name)}).items.at(1).integer == 0;
    });
    ASSERT_TRUE(busy(wish(carol)));
    EXPECT_EQ(release(bob), released);
    EXPECT_EQ(text({"HKEYS", name}), carol);
    EXPECT_EQ(whose_turn(), "");
}

TEST_F(lock_turns, a_process_does_not_keep_the_lock_among_its_threads_while_a_java_program_waits) {
    auto bobs = grants_of(bob);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob, {.count = 5})));
    auto javas = java_waits();
    release(alice);
    EXPECT_EQ(message(bobs), granted_text(bob, last_token()));
    redis({"DEL", name});
    EXPECT_EQ(numbers_in(wish(carol, {.count = 5})).at(2), 1);
}

/// It has the lock, or is about to wait again.
TEST_F(lock_turns, nor_a_moment_after_a_java_program_had_it) {
    auto bobs = grants_of(bob);
    redis({"SET", lock_turn(name), "seen", "PX", "1000"});
    ASSERT_EQ(numbers_in(wish(alice, {.count = 5})).at(2), 1);
    ASSERT_TRUE(busy(wish(bob, {.count = 5})));
    release(alice);
    EXPECT_EQ(message(bobs), granted_text(bob, last_token()));
}

TEST_F(lock_turns, several_locks_together_are_not_taken_either) {
    auto javas = java_waits();
    ASSERT_TRUE(granted(acquire(alice)));
    release(alice);
    const auto together = [&] {
        return run(scripts::lock_acquire_all(), {name, holds, token_counter(), lock_turn(name)},
                   {"0", since, bob, text_of(long_ttl), "1", "0"});
    };
    const auto refused = numbers_in(together());
    EXPECT_EQ(refused[0], 0);
    EXPECT_LE(refused[2], 200);
    wait_until("the end of a turn", [&] { return together().items[0].integer == 1; });
}

}  // namespace
}  // namespace holdfast::engines::redis
