#include <mutex>

#include "stores.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

TEST(stable_hash, is_fnv_1a) {
    EXPECT_EQ(stable_hash(""), 0xcbf29ce484222325U);
    EXPECT_EQ(stable_hash("a"), 0xaf63dc4c8601ec8cU);
    EXPECT_EQ(stable_hash("foobar"), 0x85944171f73967e8U);
    EXPECT_EQ(stable_hash("\xff"), 0xaf64724c8602eb6eU);
}

class striped : public stage {
protected:
    striped_mutex stripes_{client_, "stock", 16};
};

TEST_F(striped, a_key_has_the_same_stripe_everywhere) {
    EXPECT_EQ(stripes_.stripe_of("sku:101"), stable_hash("sku:101") % 16);
    EXPECT_EQ(stripes_.of("a").name(), "stock:12");
    EXPECT_EQ(stripes_.of("foobar").name(), "stock:8");
    EXPECT_EQ(&stripes_.of("a"), &stripes_.of("a"));
}

TEST_F(striped, keys_are_spread_over_all_stripes) {
    std::vector<int> used(stripes_.stripes());
    for (int key = 0; key < 1600; ++key) {
        ++used[stripes_.stripe_of("sku:" + std::to_string(key))];
    }
    EXPECT_GT(*std::min_element(used.begin(), used.end()), 50);
    EXPECT_LT(*std::max_element(used.begin(), used.end()), 150);
}

TEST_F(striped, a_key_is_locked_for_everybody) {
    striped_mutex elsewhere{other_, "stock", 16};
    const std::lock_guard held{stripes_.of("sku:101")};
    EXPECT_FALSE(elsewhere.of("sku:101").try_lock());
    EXPECT_FALSE(holders(stripes_.of("sku:101").name()).empty());
}

TEST_F(striped, several_keys_are_locked_together_each_stripe_once) {
    auto both = stripes_.of_keys({"foobar", "a", "foobar"});
    EXPECT_EQ(both.names(), (std::vector<std::string>{"stock:12", "stock:8"}));
    const std::lock_guard held{both};
    EXPECT_FALSE(mutex(other_, "stock:8").try_lock());
    EXPECT_FALSE(mutex(other_, "stock:12").try_lock());
}

TEST_F(striped, all_of_them_are_locked_by_one_deadline) {
    auto all = stripes_.all();
    EXPECT_EQ(all.size(), 16U);
    {
        mutex busy{other_, "stock:7"};
        const std::lock_guard in_the_way{busy};
        EXPECT_FALSE(all.try_lock_for(20ms));
    }
    EXPECT_TRUE(all.try_lock_for(patience));
    EXPECT_FALSE(mutex(other_, "stock:3").try_lock());
    all.unlock();
}

TEST_F(striped, there_must_be_stripes) {
    EXPECT_EQ(error_of([&] { return striped_mutex(client_, "stock", 0).stripes(); }),
              errc::invalid_argument);
}

}  // namespace

}  // namespace holdfast::testing
