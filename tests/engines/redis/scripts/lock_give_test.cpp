#include "lock_give_fixture.hpp"

namespace holdfast::engines::redis {
namespace {

TEST_F(lock_gifts, one_that_waits_is_given_the_lock_and_told_its_tokens) {
    auto bobs = grants_of(bob);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob, {.count = 3})));

    EXPECT_EQ(release(alice), released);

    EXPECT_EQ(message(bobs), granted_text(bob, last_token() - 2, 3));
    EXPECT_EQ(text({"HGETALL", name}), bob + "\n1");
    expect_long_lease(name);
    EXPECT_EQ(text({"HGETALL", holds}), bob + "\n" + text_of(last_token() - 2) + " 3 " + since);
    expect_lives_as_long(holds, name);
    EXPECT_EQ(number({"EXISTS", wishes}), 0);
}

TEST_F(lock_gifts, nobody_else_is_told) {
    auto bobs = grants_of(bob);
    auto everybody = listener_of_ours(name);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    EXPECT_EQ(release(alice), released);

    EXPECT_EQ(release(bob), (numbers{1, 1}));
    expect_free_for_all(everybody);  // of this one, the first message
}

TEST_F(lock_gifts, one_that_asks_all_the_same_gets_the_same_tokens) {
    auto bobs = grants_of(bob);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    release(alice);

    EXPECT_EQ(message(bobs), granted_text(bob, token_of(wish(bob))));
    EXPECT_EQ(number({"EXISTS", wishes}), 0);
}

/// Java released it, or nobody did. Whoever had it last is the first to hear of it.
TEST_F(lock_gifts, one_that_finds_it_free_leaves_it_to_the_one_that_came_first) {
    auto bobs = grants_of(bob);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    redis({"DEL", name});

    EXPECT_TRUE(busy(wish(alice)));

    EXPECT_EQ(text({"HKEYS", name}), bob);
    EXPECT_EQ(message(bobs), granted_text(bob, last_token()));
    EXPECT_EQ(number({"LLEN", wishes}), 1);
    EXPECT_TRUE(text({"LINDEX", wishes, "0"}).starts_with(alice));
    EXPECT_TRUE(granted(wish(bob)));
}

TEST_F(lock_gifts, one_that_finds_it_free_has_it_if_nobody_who_listens_came_before) {
    auto carols = grants_of(carol);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob))) << "its process is dead";
    ASSERT_TRUE(busy(wish(carol)));
    redis({"DEL", name});

    EXPECT_TRUE(granted(wish(carol)));
}

TEST_F(lock_gifts, one_that_came_first_but_not_lately_is_not_given_the_lock_by_one_that_finds_it_free) {
    auto bobs = grants_of(bob);
    redis({"RPUSH", wishes, bob + " 30000 1 " + text_of(now() - 1) + " 4711 " + token_counter()});

    EXPECT_TRUE(granted(wish(alice)));
}

TEST_F(lock_gifts, tokens_keep_growing) {
    auto bobs = grants_of(bob);
    const auto before = token_of(acquire(alice));
    ASSERT_TRUE(busy(wish(bob)));
    release(alice);
    const auto given = token_of(acquire(bob));
    EXPECT_GT(given, before);
    release(bob);
    EXPECT_GT(token_of(acquire(carol)), given);
}

/// The waiter may have wished before the data was lost; the one that releases is connected since.
TEST_F(lock_gifts, a_counter_that_was_lost_starts_above_the_floor_of_the_one_that_releases) {
    auto everybody = listener_of_ours(name);
    auto bobs = grants_of(bob);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    redis({"SET", token_counter(), "1600"});  // an old copy of it
    const auto answer = release(alice, 0, "publish", 1'700'000'000'000'000);
    if (answer == released) {  // else it was one of those at which everybody has a chance
        EXPECT_EQ(text({"HKEYS", name}), bob);
    }
    EXPECT_GT(last_token(), 1'700'000'000'000'000);
}

TEST_F(lock_gifts, one_that_does_not_listen_any_more_is_passed_over) {
    auto everybody = listener_of_ours(name);
    ASSERT_TRUE(granted(acquire(alice)));
    wish_and_die(bob);
    const auto before = last_token();

    EXPECT_EQ(release(alice), (numbers{1, 1}));
    expect_free_for_all(everybody);
    EXPECT_EQ(number({"EXISTS", wishes}), 0);
    EXPECT_EQ(last_token(), before);
}

/// The server has no room for the connection on which it would hear. It asks about once a second, and
/// would find the lock taken each time.
TEST_F(lock_gifts, one_that_could_not_listen_is_given_the_lock_until_it_asks_when_that_is_soon) {
    ASSERT_TRUE(granted(acquire(alice)));
    constexpr std::int64_t for_ms = 4000;
    const auto asked_at = now();
    ASSERT_TRUE(busy(wish(bob, {}, "4711", for_ms)));
    wait_until("the lock is given to one that cannot listen", [&] {
        EXPECT_EQ(release(alice), released);
        return busy(acquire(alice));
    });
    EXPECT_GE(now(), asked_at + for_ms / 4) << "others had it meanwhile";
    ASSERT_EQ(text({"HKEYS", name}), bob);
    EXPECT_LE(number({"PTTL", name}), for_ms) << "it may be dead";
    EXPECT_EQ(number({"EXISTS", wishes}), 0);

    const auto first = last_token();
    EXPECT_EQ(token_of(wish(bob)), first);
    expect_long_lease(name);
}

TEST_F(lock_gifts, one_that_could_not_listen_does_not_keep_others_from_being_given_the_lock) {
    ASSERT_TRUE(granted(acquire(alice)));
    auto carols = grants_of(carol);
    ASSERT_TRUE(busy(wish(bob)));
    ASSERT_TRUE(busy(wish(carol)));
    EXPECT_EQ(release(alice), released);
    EXPECT_EQ(text({"HKEYS", name}), carol);
    EXPECT_TRUE(text({"LINDEX", wishes, "0"}).starts_with(bob));
    EXPECT_EQ(number({"LLEN", wishes}), 1);
    EXPECT_GT(number({"PTTL", wishes}), 0);
}

TEST_F(lock_gifts, one_that_could_not_listen_is_told_as_soon_as_it_does) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    auto bobs = grants_of(bob);
    EXPECT_EQ(release(alice), released);
    EXPECT_EQ(message(bobs), granted_text(bob, last_token()));
}

TEST_F(lock_gifts, a_wish_goes_when_nobody_renews_it) {
    auto bobs = grants_of(bob);
    auto everybody = listener_of_ours(name);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob, {}, "4711", short_ttl)));
    wait_until_gone(wishes);
    EXPECT_EQ(release(alice), (numbers{1, 1}));
    expect_free_for_all(everybody);
}

/// Others who wait keep the list alive, and go.
TEST_F(lock_gifts, a_wish_that_is_over_is_not_served_because_the_list_lives_on) {
    auto bobs = grants_of(bob);
    auto everybody = listener_of_ours(name);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob, {}, "4711", short_ttl)));
    const auto over = now() + short_ttl;
    ASSERT_TRUE(busy(wish(carol)));
    EXPECT_EQ(release(carol), gone);
    EXPECT_EQ(number({"LLEN", wishes}), 1);
    wait_until("the end of a wish", [&] { return now() > over; });
    EXPECT_EQ(release(alice), (numbers{1, 1}));
    expect_free_for_all(everybody);
}

TEST_F(lock_gifts, asking_again_renews_the_wish) {
    auto bobs = grants_of(bob);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob, {}, "4710", lasts / 10)));
    ASSERT_TRUE(busy(wish(bob)));
    expect_remaining(wishes, lasts / 2, lasts);
    release(alice);
    EXPECT_EQ(message(bobs), granted_text(bob, last_token()));
}

TEST_F(lock_gifts, those_who_wait_are_given_it_in_the_order_in_which_they_came) {
    auto bobs = grants_of(bob);
    auto carols = grants_of(carol);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    ASSERT_TRUE(busy(wish(carol)));
    EXPECT_EQ(release(alice), released);
    EXPECT_EQ(text({"HKEYS", name}), bob);
    EXPECT_EQ(release(bob), released);
    EXPECT_EQ(text({"HKEYS", name}), carol);
    EXPECT_EQ(message(carols), granted_text(carol, last_token()));
    EXPECT_EQ(number({"EXISTS", wishes}), 0);
}

TEST_F(lock_gifts, one_that_asks_again_keeps_its_place) {
    auto bobs = grants_of(bob);
    auto carols = grants_of(carol);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob, {}, "4710")));
    ASSERT_TRUE(busy(wish(carol)));
    ASSERT_TRUE(busy(wish(bob)));
    EXPECT_EQ(number({"LLEN", wishes}), 2);
    release(alice);
    EXPECT_EQ(message(bobs), granted_text(bob, last_token()));
}

TEST_F(lock_gifts, there_is_room_for_256_and_the_last_place_goes_to_whoever_asks_last) {
    const auto number = [](int which) {
        return "d4d4d4d4-0000-4000-8000-00000000000d:" + text_of(which);
    };
    auto theirs = grants_of(number(0));
    ASSERT_TRUE(granted(acquire(alice)));
    for (int which = 0; which < 256; ++which) {
        ASSERT_TRUE(busy(wish(number(which))));
    }
    EXPECT_TRUE(busy(wish(bob)));
    EXPECT_EQ(script_test::number({"LLEN", wishes}), 256);
    EXPECT_TRUE(text({"LINDEX", wishes, "-1"}).starts_with(bob));
    EXPECT_TRUE(busy(wish(number(255)))) << "the one that had it asks again";
    EXPECT_TRUE(text({"LINDEX", wishes, "-1"}).starts_with(number(255) + ' '));
    EXPECT_EQ(release(alice), released);
    EXPECT_TRUE(busy(wish(bob)));
    EXPECT_EQ(script_test::number({"LLEN", wishes}), 256);
    EXPECT_TRUE(text({"LINDEX", wishes, "-2"}).starts_with(number(255) + ' ')) << "it has moved up";
    EXPECT_TRUE(text({"LINDEX", wishes, "-1"}).starts_with(bob));
}

TEST_F(lock_gifts, one_that_is_dead_is_in_nobody_s_way) {
    auto carols = grants_of(carol);
    ASSERT_TRUE(granted(acquire(alice)));
    wish_and_die(bob);
    ASSERT_TRUE(busy(wish(carol)));
    EXPECT_EQ(release(alice), released);
    EXPECT_EQ(text({"HKEYS", name}), carol);
    EXPECT_EQ(number({"EXISTS", wishes}), 0);
}

TEST_F(lock_gifts, one_that_asks_no_more_is_in_nobody_s_way) {
    auto bobs = grants_of(bob);
    auto carols = grants_of(carol);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob, {}, "4711", short_ttl)));
    const auto over = now() + short_ttl;
    ASSERT_TRUE(busy(wish(carol)));
    wait_until("the end of a wish", [&] { return now() > over; });
    EXPECT_EQ(release(alice), released);
    EXPECT_EQ(text({"HKEYS", name}), carol);
}

TEST_F(lock_gifts, without_a_wish_nothing_is_written) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(acquire(bob)));
    EXPECT_EQ(number({"EXISTS", wishes}), 0);
}

TEST_F(lock_gifts, one_that_gives_up_takes_back_its_wish) {
    auto bobs = grants_of(bob);
    auto everybody = listener_of_ours(name);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    EXPECT_EQ(release(bob), gone);
    EXPECT_EQ(number({"EXISTS", wishes}), 0);
    EXPECT_EQ(text({"HKEYS", name}), alice);
    EXPECT_EQ(release(alice), (numbers{1, 1}));
    expect_free_for_all(everybody);
}

TEST_F(lock_gifts, one_that_gives_up_too_late_releases_what_it_was_given) {
    auto bobs = grants_of(bob);
    auto everybody = listener_of_ours(name);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    release(alice);
    EXPECT_EQ(release(bob), (numbers{1, 1}));
    expect_free_for_all(everybody);
}

TEST_F(lock_gifts, giving_up_leaves_another_s_wish_alone) {
    auto carols = grants_of(carol);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(carol)));
    EXPECT_EQ(release(bob), gone);
    release(alice);
    EXPECT_EQ(text({"HKEYS", name}), carol);
}

TEST_F(lock_gifts, what_was_granted_is_not_wished_for_any_more) {
    auto bobs = grants_of(bob);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    redis({"DEL", name});  // as if it had expired
    ASSERT_TRUE(granted(wish(bob)));
    EXPECT_EQ(number({"EXISTS", wishes}), 0);
}

TEST_F(lock_gifts, nobody_gives_it_to_itself) {
    auto bobs = grants_of(bob);
    auto everybody = listener_of_ours(name);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    redis({"DEL", name});
    ASSERT_TRUE(granted(acquire(bob)));
    EXPECT_EQ(release(bob), (numbers{1, 1}));
    expect_free_for_all(everybody);
    EXPECT_EQ(number({"EXISTS", wishes}), 0);
}

TEST_F(lock_gifts, a_release_sent_again_changes_nothing) {
    auto bobs = grants_of(bob);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    EXPECT_EQ(release(alice), released);
    const auto before = contents();
    EXPECT_EQ(release(alice), gone);
    EXPECT_EQ(contents(), before);
}

TEST_F(lock_gifts, one_that_counts_its_tokens_elsewhere_is_only_told) {
    auto bobs = grants_of(bob);
    auto everybody = listener_of_ours(name);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob, {}, "4711", lasts, redisson_token(name))));
    EXPECT_EQ(release(alice), (numbers{1, 1}));
    expect_free_for_all(everybody);
}

TEST_F(lock_gifts, a_lock_that_lingers_is_given_to_nobody) {
    auto bobs = grants_of(bob);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    EXPECT_EQ(release(alice, 5000), released);
    EXPECT_EQ(text({"HKEYS", name}), alice + ":lingering");
}

TEST_F(lock_gifts, a_java_program_that_holds_it_releases_it_for_all) {
    redis({"HSET", name, java, "1"});
    ASSERT_TRUE(busy(wish(bob)));
    EXPECT_EQ(text({"HGETALL", name}), java + "\n1");
}

TEST_F(lock_gifts, every_release_gives_the_lock_to_the_first_that_waits) {
    auto bobs = grants_of(bob);
    auto carols = grants_of(carol);
    auto everybody = listener_of_ours(name);
    auto holder = bob;
    auto other = carol;
    ASSERT_TRUE(granted(acquire(holder)));
    for (int round = 0; round < 64; ++round) {
        ASSERT_TRUE(busy(wish(other)));
        ASSERT_EQ(release(holder), released);
        std::swap(holder, other);
    }
}

TEST_F(lock_gifts, a_sharded_channel_tells_as_well) {
    auto bobs = server().connect();
    bobs.command({"SSUBSCRIBE", grant_channel(name, client_of(bob))});
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    EXPECT_EQ(release(alice, 0, "spublish"), released);
    EXPECT_EQ(message(bobs), granted_text(bob, last_token()));
}

/// Redisson gives both names the same channel.
TEST_F(lock_gifts, a_wish_for_a_name_in_braces_is_not_one_for_the_name) {
    const std::string braced = "{" + name + "}";
    auto bobs = grants_of(bob);
    auto bobs_braced = listener(grant_channel(braced, client_of(bob)));
    auto everybody = listener_of_ours(name);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(granted(run(scripts::lock_acquire(),
                            {braced, holds_key(braced), token_counter(), lock_turn(braced)},
                            {carol, text_of(long_ttl), "1", "0", since})));
    ASSERT_TRUE(
        busy(run(scripts::lock_acquire(),
                 {braced, holds_key(braced), token_counter(), lock_turn(braced), lock_wishes(braced)},
                 {bob, text_of(long_ttl), "1", "0", since, "0", "0", "4711", text_of(lasts), "publish",
                  lock_channel(braced), listeners_channel(braced), grant_channels(braced)})));

    EXPECT_EQ(release(alice), (numbers{1, 1}));

    expect_free_for_all(everybody);
    EXPECT_EQ(text({"HKEYS", braced}), carol);
    EXPECT_EQ(numbers_in(run(scripts::lock_release(), lock_release_keys(braced),
                             lock_release_arguments(carol, 0, "publish", braced))),
              released);
    EXPECT_TRUE(message(bobs_braced).ends_with(" " + bob + " " + braced));
    EXPECT_EQ(text({"HKEYS", braced}), bob);
    EXPECT_EQ(number({"EXISTS", name}), 0);
}

TEST_F(lock_gifts, without_memory_a_wish_is_forgotten_and_a_release_works) {
    auto bobs = grants_of(bob);
    ASSERT_TRUE(granted(acquire(alice)));
    run_out_of_memory();
    EXPECT_TRUE(busy(wish(bob)));
    redis({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_EQ(number({"EXISTS", wishes}), 0);
    ASSERT_TRUE(busy(wish(bob)));
    run_out_of_memory();
    EXPECT_EQ(release(alice), released);
    EXPECT_EQ(text({"HKEYS", name}), bob);
}

TEST_F(lock_gifts, something_else_under_the_name_of_the_wish_is_in_nobody_s_way) {
    ASSERT_TRUE(granted(acquire(alice)));
    redis({"SET", wishes, "not ours"});
    EXPECT_TRUE(busy(wish(bob)));
    EXPECT_EQ(release(bob), gone);
    EXPECT_EQ(release(alice), released);
    EXPECT_EQ(number({"EXISTS", name, holds}), 0);
}

TEST_F(lock_gifts, a_wish_that_makes_no_sense_is_dropped) {
    ASSERT_TRUE(granted(acquire(alice)));
    redis({"RPUSH", wishes, "not ours", "neither"});
    EXPECT_EQ(release(alice), released);
    EXPECT_EQ(number({"EXISTS", name, holds, wishes}), 0);
}

TEST_F(lock_gifts, a_list_longer_than_ours_ever_is_belongs_to_somebody_else_and_stays_as_it_is) {
    redis({"EVAL", "for i = 1, 257 do redis.call('RPUSH', KEYS[1], i) end", "1", wishes});
    const auto before = text({"DUMP", wishes});
    auto everybody = listener_of_ours(name);
    auto bobs = grants_of(bob);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wish(bob)));
    EXPECT_EQ(release(alice), (numbers{1, 1}));
    expect_free_for_all(everybody);
    EXPECT_TRUE(granted(wish(bob)));
    EXPECT_EQ(release(carol), gone);
    EXPECT_EQ(text({"DUMP", wishes}), before);
    EXPECT_EQ(number({"PTTL", wishes}), -1);
}

TEST_F(lock_gifts, a_full_list_of_wishes_is_ours) {
    redis({"EVAL", "for i = 1, 256 do redis.call('RPUSH', KEYS[1], 'dead') end", "1", wishes});
    ASSERT_TRUE(granted(acquire(alice)));
    auto bobs = grants_of(bob);
    ASSERT_TRUE(busy(wish(bob)));
    EXPECT_EQ(number({"LLEN", wishes}), 256);
    EXPECT_EQ(release(alice), released);
    EXPECT_EQ(message(bobs), granted_text(bob, last_token()));
}

}  // namespace
}  // namespace holdfast::engines::redis
