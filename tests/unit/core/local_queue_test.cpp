#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <core/local_queue.hpp>
#include <core/script.hpp>

namespace {

using namespace script;
using holdfast::core::handover_limits;
using holdfast::core::local_queue;
using testing::ElementsAre;

local_queue queue_of(std::initializer_list<holdfast::core::waiter_id> waiters) {
    local_queue queue;
    for (const auto one : waiters) {
        queue.push(one);
    }
    return queue;
}

TEST(local_queue, serves_in_the_order_of_arrival) {
    auto queue = queue_of({3, 1, 2});

    EXPECT_EQ(queue.front(), 3U);
    EXPECT_EQ(queue.pop(), 3U);
    EXPECT_EQ(queue.pop(), 1U);
    EXPECT_EQ(queue.pop(), 2U);
    EXPECT_TRUE(queue.empty());
}

TEST(local_queue, one_that_leaves_does_not_change_the_order_of_the_others) {
    auto queue = queue_of({1, 2, 3});

    EXPECT_TRUE(queue.remove(2));

    EXPECT_THAT(queue.all(), ElementsAre(1, 3));
    EXPECT_EQ(queue.size(), 2U);
}

TEST(local_queue, one_that_is_not_there_cannot_leave) {
    auto queue = queue_of({1});

    EXPECT_FALSE(queue.remove(2));
    EXPECT_EQ(queue.size(), 1U);
}

TEST(local_queue, single_waiter_wants_a_single_token) {
    EXPECT_EQ(queue_of({1}).tokens_wanted({}), 1U);
}

TEST(local_queue, empty_queue_wants_a_single_token) {
    EXPECT_EQ(local_queue{}.tokens_wanted({}), 1U);
}

TEST(local_queue, wants_two_tokens_for_each_that_waits_behind_the_front) {
    EXPECT_EQ(queue_of({1, 2, 3}).tokens_wanted({}), 5U);
}

TEST(local_queue, wants_no_more_tokens_than_it_may_hand_over) {
    EXPECT_EQ(queue_of({1, 2, 3, 4}).tokens_wanted({.count = 3}), 4U);
}

TEST(local_queue, tokens_rise_strictly_within_a_block) {
    auto queue = queue_of({1, 2});
    queue.begin({10}, 3, at(0ms));

    EXPECT_EQ(queue.next_token().value, 10U);
    EXPECT_EQ(queue.next_token().value, 11U);
    EXPECT_EQ(queue.next_token().value, 12U);
}

TEST(local_queue, new_tenure_starts_with_its_own_block) {
    auto queue = queue_of({1, 2});
    queue.begin({10}, 1, at(0ms));
    (void)queue.next_token();
    EXPECT_FALSE(queue.may_hand_over({}, at(0ms)));

    queue.begin({20}, 2, at(0ms));

    EXPECT_EQ(queue.next_token().value, 20U);
    EXPECT_TRUE(queue.may_hand_over({}, at(0ms)));
}

TEST(local_queue, hands_over_while_there_are_tokens) {
    auto queue = queue_of({1});
    queue.begin({10}, 2, at(0ms));
    (void)queue.next_token();

    EXPECT_TRUE(queue.may_hand_over({}, at(0ms)));
}

TEST(local_queue, exhausted_block_goes_back_to_the_store) {
    auto queue = queue_of({1});
    queue.begin({10}, 2, at(0ms));
    (void)queue.next_token();
    (void)queue.next_token();

    EXPECT_FALSE(queue.may_hand_over({}, at(0ms)));
}

TEST(local_queue, hands_over_to_nobody_when_nobody_waits) {
    local_queue queue;
    queue.begin({10}, 9, at(0ms));
    (void)queue.next_token();

    EXPECT_FALSE(queue.may_hand_over({}, at(0ms)));
}

TEST(local_queue, hands_over_as_often_as_the_limit_says) {
    auto queue = queue_of({1});
    queue.begin({10}, 9, at(0ms));
    (void)queue.next_token();
    (void)queue.next_token();

    EXPECT_TRUE(queue.may_hand_over({.count = 2}, at(0ms)));
    (void)queue.next_token();
    EXPECT_FALSE(queue.may_hand_over({.count = 2}, at(0ms)));
}

TEST(local_queue, limit_of_none_never_hands_over) {
    auto queue = queue_of({1});
    queue.begin({10}, 9, at(0ms));
    (void)queue.next_token();

    EXPECT_FALSE(queue.may_hand_over({.count = 0}, at(0ms)));
}

TEST(local_queue, hands_over_until_its_time_is_up) {
    auto queue = queue_of({1});
    queue.begin({10}, 9, at(100ms));
    (void)queue.next_token();

    EXPECT_TRUE(queue.may_hand_over({.time = 50ms}, at(150ms - 1ns)));
    EXPECT_FALSE(queue.may_hand_over({.time = 50ms}, at(150ms)));
}

TEST(local_queue, nobody_is_woken_early_while_holds_are_long) {
    local_queue queue;
    queue.push(1);
    queue.push(2);
    queue.note_hold(1ms);
    EXPECT_FALSE(queue.soon_after_hand_over());
    EXPECT_FALSE(queue.soon_on_arrival());
}

TEST(local_queue, after_a_short_hold_the_next_in_line_is_woken_early) {
    local_queue queue;
    queue.note_hold(10us);
    EXPECT_FALSE(queue.soon_after_hand_over());
    queue.push(1);
    EXPECT_TRUE(queue.soon_on_arrival());
    queue.push(2);
    EXPECT_FALSE(queue.soon_on_arrival());
    EXPECT_EQ(queue.soon_after_hand_over(), 1U);
}

}  // namespace
