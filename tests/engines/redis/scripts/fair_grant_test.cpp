#include "fair_fixture.hpp"

namespace holdfast::engines::redis {
namespace {

/// A release gives the lock to the first in line.
class fair_grants : public fair_script_test {
protected:
    redis_reply wants_it(const std::string& owner, const terms& asked = {}) {
        return acquire(owner, line::wants_it, asked);
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
    redis({"HSET", wishes, bob, "30000 1 1 4711 " + token_counter()});

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
           "60000 1 " + text_of(now() + wait) + " " + question_ + " " + redisson_token(name)});

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

TEST_F(fair_grants, wishes_go_when_nobody_renews_them) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(busy(wants_it(bob)));
    expect_remaining(wishes, wait / 2, wait);
    release(bob);
    EXPECT_EQ(number({"EXISTS", wishes}), 0);
}

}  // namespace
}  // namespace holdfast::engines::redis
