#include "fair_fixture.hpp"

namespace holdfast::engines::redis {
namespace {

/// A release gives the lock to the first in line.
class fair_grants : public fair_script_test {
protected:
    redis_reply wants_it(const std::string& owner, const terms& asked = {}) {
        return acquire(owner, line::wants_it, asked);
    }
    void wait_until_deaf(const std::string& owner) {
        wait_until("the end of a connection", [&] {
            return redis({"PUBSUB", "NUMSUB", fair_channel(name, owner)}).items.at(1).integer == 0;
        });
    }
    std::int64_t last_token() { return std::stoll(text({"GET", token_counter()})); }
    std::string granted_text(const std::string& owner, std::int64_t first, std::int64_t count = 1) {
        return "granted " + question_ + " " + text_of(first) + " " + text_of(count) + " " + owner +
               " " + name;
    }
};

TEST_F(fair_grants, the_first_in_line_is_given_the_lock_and_told_its_tokens) {
    auto bobs = listener(fair_channel(name, bob));
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wants_it(bob, {.count = 3})));

    EXPECT_EQ(release(alice), released);

    EXPECT_EQ(message(bobs), granted_text(bob, last_token() - 2, 3));
    EXPECT_EQ(text({"HGETALL", name}), bob + "\n1");
    expect_long_lease(name);
    EXPECT_EQ(text({"HKEYS", holds}), bob);
    EXPECT_EQ(number({"EXISTS", queue, timeouts, wishes}), 0);
}

TEST_F(fair_grants, one_that_asks_all_the_same_gets_the_same_tokens) {
    auto bobs = listener(fair_channel(name, bob));
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wants_it(bob)));
    release(alice);
    const auto told = message(bobs);

    EXPECT_EQ(told, granted_text(bob, token_of(wants_it(bob))));
    EXPECT_EQ(number({"EXISTS", queue, timeouts, wishes}), 0);
}

TEST_F(fair_grants, those_behind_move_up) {
    auto bobs = listener(fair_channel(name, bob));
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wants_it(bob)));
    ASSERT_TRUE(busy(acquire(carol)));

    EXPECT_EQ(release(alice), (numbers{1, 1}));

    EXPECT_EQ(in_line(), carol);
    expect_alive_for(carol, wait);
    EXPECT_EQ(alive_for(bob), -1);
}

TEST_F(fair_grants, something_that_is_no_line_keeps_nobody_from_releasing) {
    ASSERT_TRUE(granted(acquire(alice)));
    redis({"SET", queue, "not ours"});
    EXPECT_EQ(release(alice), released);
    EXPECT_EQ(number({"EXISTS", name, holds}), 0);
}

TEST_F(fair_grants, a_release_sent_again_changes_nothing) {
    auto bobs = listener(fair_channel(name, bob));
    auto carols = listener(fair_channel(name, carol));
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wants_it(bob)));
    ASSERT_TRUE(busy(wants_it(carol)));
    release(alice);
    const auto before = contents();

    EXPECT_EQ(release(alice), gone);

    EXPECT_EQ(contents(), before);
    EXPECT_EQ(text({"HKEYS", name}), bob);
}

TEST_F(fair_grants, one_that_gives_up_passes_on_what_it_was_granted) {
    auto bobs = listener(fair_channel(name, bob));
    auto carols = listener(fair_channel(name, carol));
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wants_it(bob)));
    ASSERT_TRUE(busy(wants_it(carol)));
    release(alice);

    EXPECT_EQ(release(bob), released);

    EXPECT_EQ(message(carols), granted_text(carol, last_token()));
    EXPECT_EQ(text({"HKEYS", name}), carol);
}

TEST_F(fair_grants, when_the_first_gives_up_on_a_free_lock_the_next_is_told) {
    auto carols = listener(fair_channel(name, carol));
    queue_up(bob, now() + 60'000);
    ASSERT_TRUE(busy(wants_it(carol)));

    EXPECT_EQ(release(bob), gone);

    EXPECT_EQ(message(carols), "0");
    EXPECT_EQ(in_line(), carol);
    EXPECT_TRUE(granted(wants_it(carol)));
}

TEST_F(fair_grants, one_that_must_wait_is_told_whether_it_listens) {
    ASSERT_TRUE(granted(acquire(alice)));
    const auto deaf = numbers_in(wants_it(bob));
    auto bobs = listener(fair_channel(name, bob));
    const auto hearing = numbers_in(wants_it(bob));

    ASSERT_EQ(deaf.size(), 3);
    EXPECT_EQ(deaf[2], 0);
    ASSERT_EQ(hearing.size(), 3);
    EXPECT_EQ(hearing[2], 1);
    EXPECT_EQ(numbers_in(acquire(carol)).size(), 2) << "who is only told has to ask anyway";
}

TEST_F(fair_grants, one_that_does_not_listen_is_not_given_it) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wants_it(bob)));

    EXPECT_EQ(release(alice), (numbers{1, 1}));

    EXPECT_EQ(number({"EXISTS", name}), 0);
    EXPECT_EQ(in_line(), bob);
    EXPECT_TRUE(granted(wants_it(bob)));
}

TEST_F(fair_grants, one_that_has_not_asked_for_long_is_passed_over) {
    auto bobs = listener(fair_channel(name, bob));
    auto carols = listener(fair_channel(name, carol));
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wants_it(bob)));
    ASSERT_TRUE(busy(wants_it(carol)));
    // As if he had asked long before.
    redis({"ZADD", timeouts, "1", bob});
    redis({"HSET", wishes, bob, "30000 1 1 1 4711 " + token_counter()});

    EXPECT_EQ(release(alice), (numbers{1, 1}));

    EXPECT_EQ(message(carols), "0");
    EXPECT_EQ(in_line(), carol);
    EXPECT_EQ(number({"EXISTS", name}), 0);
    EXPECT_TRUE(granted(wants_it(carol)));
}

TEST_F(fair_grants, a_java_program_is_only_told_and_nobody_overtakes_it) {
    auto javas = listener(fair_channel(name, java));
    auto bobs = listener(fair_channel(name, bob));
    ASSERT_TRUE(granted(acquire(alice)));
    queue_up(java, now() + 60'000);
    ASSERT_TRUE(busy(wants_it(bob)));

    EXPECT_EQ(release(alice), (numbers{1, 2}));

    EXPECT_EQ(message(javas), "0");
    EXPECT_EQ(in_line(), java + "\n" + bob);
    EXPECT_EQ(number({"EXISTS", name}), 0);
}

TEST_F(fair_grants, one_that_takes_tokens_from_another_counter_asks_itself) {
    auto bobs = listener(fair_channel(name, bob));
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wants_it(bob)));
    redis({"HSET", wishes, bob,
           "60000 1 " + text_of(now() + wait) + " 1 " + question_ + " " + redisson_token(name)});

    EXPECT_EQ(release(alice), (numbers{1, 1}));

    EXPECT_EQ(message(bobs), "0");
}

TEST_F(fair_grants, the_message_names_the_last_question) {
    auto bobs = listener(fair_channel(name, bob));
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wants_it(bob)));
    question_ = "4712";
    ASSERT_TRUE(busy(wants_it(bob)));

    release(alice);

    EXPECT_EQ(message(bobs), granted_text(bob, last_token()));
}

/// A process with several waiting threads was killed.
TEST_F(fair_grants, those_whose_connection_is_closed_are_passed_over_at_once) {
    constexpr int threads = 24;
    const auto thread = [](int which) {
        return "d4d4d4d4-0000-4000-8000-00000000000d:" + text_of(which);
    };
    ASSERT_TRUE(granted(acquire(alice)));
    {
        auto process = listener(fair_channel(name, thread(0)));
        for (int which = 0; which < threads; ++which) {
            process.command({"SUBSCRIBE", fair_channel(name, thread(which))});
            ASSERT_TRUE(busy(wants_it(thread(which))));
        }
    }
    wait_until_deaf(thread(0));
    auto carols = listener(fair_channel(name, carol));
    ASSERT_TRUE(busy(wants_it(carol)));

    release(alice);

    EXPECT_EQ(message(carols), "0");
    EXPECT_TRUE(granted(wants_it(carol)));
}

TEST_F(fair_grants, a_java_program_behind_those_whose_connection_is_closed_is_told_and_first) {
    ASSERT_TRUE(granted(acquire(alice)));
    {
        auto bobs = listener(fair_channel(name, bob));
        ASSERT_TRUE(busy(wants_it(bob)));
    }
    wait_until_deaf(bob);
    auto javas = listener(fair_channel(name, java));
    queue_up(java, now() + 300'000);

    release(alice);

    EXPECT_EQ(message(javas), "0");
    EXPECT_EQ(in_line(), java + "\n" + bob);
}

TEST_F(fair_grants, one_whose_connection_comes_back_has_kept_its_place) {
    auto carols = listener(fair_channel(name, carol));
    ASSERT_TRUE(granted(acquire(alice)));
    {
        auto bobs = listener(fair_channel(name, bob));
        ASSERT_TRUE(busy(wants_it(bob)));
    }
    wait_until_deaf(bob);
    ASSERT_TRUE(busy(wants_it(carol)));
    ASSERT_TRUE(busy(acquire(java)));
    release(alice);
    ASSERT_TRUE(granted(wants_it(carol)));

    auto bobs = listener(fair_channel(name, bob));
    ASSERT_TRUE(busy(wants_it(bob)));
    EXPECT_EQ(in_line(), bob + "\n" + java);
    release(carol);
    EXPECT_EQ(message(bobs), granted_text(bob, last_token()));
}

TEST_F(fair_grants, one_that_asks_while_its_connection_is_closed_is_let_in) {
    ASSERT_TRUE(granted(acquire(alice)));
    {
        auto bobs = listener(fair_channel(name, bob));
        ASSERT_TRUE(busy(wants_it(bob)));
    }
    wait_until_deaf(bob);
    release(alice);
    EXPECT_TRUE(granted(wants_it(bob)));
}

/// In a cluster it may listen to another server, and in a moment it will listen here.
TEST_F(fair_grants, one_that_was_never_heard_to_listen_keeps_its_turn) {
    auto carols = listener(fair_channel(name, carol));
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wants_it(bob)));
    ASSERT_TRUE(busy(wants_it(carol)));
    release(alice);
    EXPECT_TRUE(busy(wants_it(carol)));
    EXPECT_TRUE(granted(wants_it(bob)));
}

/// It was killed after it had asked and before it listened.
TEST_F(fair_grants, one_that_died_before_it_listened_is_not_waited_for_and_keeps_its_place) {
    auto carols = listener(fair_channel(name, carol));
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wants_it(bob)));
    ASSERT_TRUE(busy(wants_it(carol)));
    const auto began = now();
    release(alice);

    EXPECT_LE(wants_it(carol).items.at(1).integer, 500) << "so carol asks again in time";
    wait_until("carol to be let in", [&] { return wants_it(carol).items[0].integer == 1; });

    EXPECT_GE(now() - began, 300);
    EXPECT_LT(now() - began, 2'000);
    EXPECT_EQ(in_line(), bob);
}

TEST_F(fair_grants, one_that_cannot_listen_and_has_asked_again_is_waited_for) {
    auto carols = listener(fair_channel(name, carol));
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wants_it(bob)));
    ASSERT_TRUE(busy(wants_it(bob)));
    ASSERT_TRUE(busy(wants_it(carol)));
    const auto began = now();
    release(alice);
    wait_until("some time to pass", [&] { return now() - began > 700; });
    EXPECT_TRUE(busy(wants_it(carol)));
    EXPECT_TRUE(granted(wants_it(bob)));
}

TEST_F(fair_grants, those_of_ours_that_stopped_together_go_together) {
    ASSERT_TRUE(granted(acquire(alice)));
    for (int which = 1; which <= 20; ++which) {
        // They are not known to listen, so it takes their patience.
        ASSERT_TRUE(busy(acquire("d4d4d4d4-0000-4000-8000-00000000000d:" + text_of(which),
                                 line::wants_it, {}, 10 * short_ttl)));
    }
    const auto last = now();
    release(alice, 0, 10 * short_ttl);
    wait_until("carol to be let in", [&] { return wants_it(carol).items[0].integer == 1; });
    EXPECT_LT(now() - last, 10 * short_ttl * 10) << "not one after the other";
}

/// A process with hundreds of waiting threads connects anew.
TEST_F(fair_grants, hundreds_whose_connection_is_closed_for_a_moment_keep_their_places) {
    constexpr int threads = 600;
    ASSERT_TRUE(granted(acquire(alice)));
    words places{"RPUSH", queue};
    words times{"ZADD", timeouts};
    words notes{"HSET", wishes};
    const auto alive = now() + 60'000;
    for (int which = 0; which < threads; ++which) {
        const auto owner = "d4d4d4d4-0000-4000-8000-00000000000d:" + text_of(which);
        places.push_back(owner);
        times.insert(times.end(), {text_of(alive + which), owner});
        notes.insert(notes.end(), {owner, "60000 1 " + text_of(alive) + " 1 4711 " + token_counter()});
    }
    redis(places);
    redis(times);
    redis(notes);
    const auto before = in_line();

    release(alice);
    EXPECT_EQ(in_line(), before) << "nobody is there, and nobody loses anything";

    auto carols = listener(fair_channel(name, carol));
    ASSERT_TRUE(granted(wants_it(carol)));
    EXPECT_EQ(in_line(), before);
    auto bobs = listener(fair_channel(name, bob));
    ASSERT_TRUE(busy(wants_it(bob)));
    release(carol);
    EXPECT_EQ(message(bobs), "0");
    EXPECT_EQ(in_line(), bob + "\n" + before);
}

TEST_F(fair_grants, a_run_looks_at_some_of_many_dead_and_the_next_goes_on) {
    constexpr int dead = 3000;
    ASSERT_TRUE(granted(acquire(alice)));
    words places{"RPUSH", queue};
    words times{"ZADD", timeouts};
    words notes{"HSET", wishes};
    const auto alive = now() + 60'000;
    for (int which = 0; which < dead; ++which) {
        const auto owner = "d4d4d4d4-0000-4000-8000-00000000000d:" + text_of(which);
        places.push_back(owner);
        times.insert(times.end(), {text_of(alive + which), owner});
        notes.insert(notes.end(), {owner, "60000 1 " + text_of(alive) + " 1 4711 " + token_counter()});
    }
    redis(places);
    redis(times);
    redis(notes);
    release(alice);
    EXPECT_GT(number({"LLEN", queue}), 0) << "all in one run";
    int runs = 0;
    wait_until("carol to be let in", [&] {
        ++runs;
        return acquire(carol).items[0].integer == 1;
    });
    EXPECT_LE(runs, 4);
}

TEST_F(fair_grants, wishes_go_when_nobody_renews_them) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wants_it(bob)));
    expect_remaining(wishes, wait / 2, wait);
    release(bob);
    EXPECT_EQ(number({"EXISTS", wishes}), 0);
}

}  // namespace
}  // namespace holdfast::engines::redis
