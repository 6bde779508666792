#include "stage.hpp"

/// holdfast::multi_lock beside RedissonMultiLock and RLock on the same names.
namespace holdfast::interop {

namespace {

class multi_interop : public interop_stage {
protected:
    void SetUp() override {
        interop_stage::SetUp();
        both_.emplace(*client_, std::vector<std::string>{name_ + ":2", name_});
    }

    std::optional<multi_lock> both_;
};

TEST_P(multi_interop, cpp_keeps_java_out) {
    auto held = both_->acquire();
    EXPECT_EQ(java("other", "multi try", 100, long_lease), "false");
    EXPECT_EQ(java("other", "plain try"), "false");
    EXPECT_EQ(held.release().worst(), release_outcome::released);
    EXPECT_EQ(java("other", "multi try", long_wait, long_lease), "true");
}

TEST_P(multi_interop, java_keeps_cpp_out) {
    java("holder", "multi lock", long_lease);
    EXPECT_FALSE(both_->try_acquire());
    EXPECT_FALSE(mutex(*client_, name_).try_acquire());
    java("holder", "multi unlock");
    EXPECT_TRUE(both_->try_acquire_for(promptly));
}

TEST_P(multi_interop, cpp_is_told_when_java_unlocks_one_of_them) {
    java("holder", "plain lock", long_lease);
    auto waiter = in_background([&] { return both_->try_acquire_for(patience).has_value(); });
    ASSERT_TRUE(listens_quietly(lock_channel()));
    EXPECT_FALSE(is_done(waiter));
    java("holder", "plain unlock");
    ASSERT_TRUE(gets_done(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_P(multi_interop, both_sides_count_together) {
    EXPECT_EQ(count_together("multi", [&] { return both_->acquire(); }),
              std::to_string(2 * threads_per_side * counts_per_thread));
}

HOLDFAST_WITH_EVERY_REDISSON(multi_interop);

}  // namespace

}  // namespace holdfast::interop
