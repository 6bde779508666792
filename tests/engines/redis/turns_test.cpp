#include <gtest/gtest.h>

#include <redis/turns.hpp>

namespace holdfast::engines::redis {
namespace {

class redis_turns : public testing::Test {
protected:
    void SetUp() override { known_.watch("stock"); }

    [[nodiscard]] int claim() const { return known_.claim("stock"); }

    turns known_;
};

TEST_F(redis_turns, at_first_none_is_known) {
    EXPECT_EQ(claim(), 0);
    known_.heard("stock", "0");
    EXPECT_EQ(claim(), 0);
}

TEST_F(redis_turns, several_zeros_announce_one_and_a_single_zero_ends_it) {
    known_.heard("stock", "00000");
    EXPECT_EQ(claim(), 0);
    known_.heard("stock", "0");
    EXPECT_EQ(claim(), 5);
    known_.heard("stock", "000");
    EXPECT_EQ(claim(), 0);
}

TEST_F(redis_turns, one_that_was_refused_knows_it_too) {
    known_.refused("stock", 4);
    EXPECT_EQ(claim(), 0);
    known_.heard("stock", "0");
    EXPECT_EQ(claim(), 4);
    known_.refused("stock", 6);
    EXPECT_EQ(claim(), 0);
    known_.heard("stock", "0");
    EXPECT_EQ(claim(), 6);
}

/// The release was heard of while the question was under way.
TEST_F(redis_turns, a_refusal_does_not_revive_a_turn_that_is_over) {
    known_.heard("stock", "0000");
    known_.heard("stock", "0");
    known_.refused("stock", 4);
    EXPECT_EQ(claim(), 4);
}

TEST_F(redis_turns, other_messages_say_nothing_of_turns) {
    known_.heard("stock", "000");
    for (const auto* message : {"", "-1", "granted 1 2 3"}) {
        known_.heard("stock", message);
        EXPECT_EQ(claim(), 0);
    }
    known_.heard("stock", "0");
    EXPECT_EQ(claim(), 3);
}

/// Read/write locks and semaphores tell other numbers than zero.
TEST_F(redis_turns, a_number_with_zeros_announces_one_and_a_number_without_ends_it) {
    known_.heard("stock", "001");
    EXPECT_EQ(claim(), 0);
    known_.heard("stock", "1");
    EXPECT_EQ(claim(), 3);
    known_.heard("stock", "00012");
    EXPECT_EQ(claim(), 0);
    known_.heard("stock", "10");
    EXPECT_EQ(claim(), 5);
}

TEST_F(redis_turns, locks_that_are_not_watched_are_forgotten) {
    known_.heard("stock", "000");
    known_.heard("slots", "000");
    known_.refused("slots", 3);
    EXPECT_EQ(known_.claim("slots"), 0);
    known_.forget("stock");
    EXPECT_EQ(claim(), 0);
    known_.heard("stock", "000");
    EXPECT_EQ(claim(), 0);
}

}  // namespace
}  // namespace holdfast::engines::redis
