#include "stage.hpp"

/// holdfast::latch beside Redisson's RCountDownLatch.
namespace holdfast::interop {

namespace {

class latch_interop : public interop_stage {
protected:
    void SetUp() override {
        interop_stage::SetUp();
        latch_.emplace(*client_, name_);
    }

    [[nodiscard]] std::string channel() const { return braced("redisson_countdownlatch__channel__"); }
    [[nodiscard]] std::future<bool> cpp_waits() {
        return in_background([this] { return latch_->wait_for(patience); });
    }

    std::optional<latch> latch_;
};

TEST_P(latch_interop, cpp_is_told_when_java_counts_to_zero) {
    java("counter", "latch set", 2);
    auto waiter = cpp_waits();
    ASSERT_TRUE(listens_quietly(channel()));

    java("counter", "latch down");
    EXPECT_FALSE(is_done(waiter));
    EXPECT_EQ(latch_->count(), 1U);
    java("counter", "latch down");

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_P(latch_interop, java_is_told_when_cpp_counts_to_zero) {
    ASSERT_TRUE(latch_->try_set(2));
    auto waiter = java_begins("waiter", "latch await", long_wait);
    ASSERT_TRUE(java_sleeps("waiter"));

    latch_->count_down();
    EXPECT_FALSE(is_done(waiter));
    EXPECT_EQ(java("other", "latch count"), "1");
    latch_->count_down();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), "true");
}

TEST_P(latch_interop, both_sides_count_one_latch_and_wait_for_it) {
    ASSERT_TRUE(latch_->try_set(4));
    auto java_waiter = java_begins("waiter", "latch await", long_wait);
    auto cpp_waiter = cpp_waits();
    ASSERT_TRUE(java_sleeps("waiter"));
    ASSERT_TRUE(listens_quietly(channel(), 2));

    java("counter", "latch down");
    latch_->count_down(2);
    EXPECT_FALSE(is_done(java_waiter) || is_done(cpp_waiter));
    java("counter", "latch down");

    ASSERT_TRUE(gets_done(java_waiter));
    EXPECT_EQ(java_waiter.get(), "true");
    ASSERT_TRUE(gets_done(cpp_waiter));
    EXPECT_TRUE(cpp_waiter.get());
    EXPECT_EQ(redis_->number({"EXISTS", name_}), 0);
}

TEST_P(latch_interop, a_latch_that_counts_is_not_set_again_by_the_other_side) {
    java("setter", "latch set", 3);
    EXPECT_FALSE(latch_->try_set(5));
    EXPECT_EQ(latch_->count(), 3U);
    latch_->count_down(3);
    ASSERT_TRUE(latch_->try_set(5));

    EXPECT_EQ(java("setter", "latch set", 7), "false");
    EXPECT_EQ(java("setter", "latch count"), "5");
}

TEST_P(latch_interop, waiting_for_a_latch_of_the_other_side_ends_in_time) {
    ASSERT_TRUE(latch_->try_set(1));

    EXPECT_EQ(java("waiter", "latch await", 50), "false");
    EXPECT_FALSE(latch_->wait_for(std::chrono::milliseconds{50}));
}

HOLDFAST_WITH_EVERY_REDISSON(latch_interop);

}  // namespace

}  // namespace holdfast::interop
