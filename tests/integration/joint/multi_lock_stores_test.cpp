#include <holdfast/multi_lock.hpp>
#include <holdfast/quorum.hpp>

#include "stores.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

/// Stores on one server that look alike in their addresses.
class multi_lock_stores : public ::testing::Test {
protected:
    multi_lock_stores() { shared_redis().cli({"FLUSHALL"}); }

    [[nodiscard]] static std::string server(const std::string& rest = {}) {
        return "redis://127.0.0.1:" + std::to_string(shared_redis().port()) + rest;
    }
    /// One name in both stores, with both locks held by somebody else in turn.
    static void check_that_both_are_taken(client& first, client& second) {
        multi_lock both{{{first, "x"}, {second, "x"}}};
        ASSERT_EQ(both.size(), 2U);
        for (client* each : {&first, &second}) {
            mutex one{*each, "x"};
            const std::lock_guard busy{one};
            EXPECT_FALSE(both.try_lock());
        }
        const auto held = both.try_acquire_for(5s);
        ASSERT_TRUE(held);
        EXPECT_EQ(first.inspect("x").holders.size(), 1U);
        EXPECT_EQ(second.inspect("x").holders.size(), 1U);
    }
};

TEST_F(multi_lock_stores, two_prefixes_are_two_stores) {
    client first{server("?prefix=a:")};
    client second{server("?prefix=b:")};
    check_that_both_are_taken(first, second);
    client whole{server()};
    check_that_both_are_taken(whole, second);
}

TEST_F(multi_lock_stores, two_databases_are_two_stores) {
    client first{server()};
    client second{server("/1")};
    check_that_both_are_taken(first, second);
}

TEST_F(multi_lock_stores, quorums_of_two_prefixes_are_two_stores) {
    client first{quorum{{server("?prefix=a:")}}};
    client second{quorum{{server("?prefix=b:")}}};
    check_that_both_are_taken(first, second);
}

TEST_F(multi_lock_stores, one_store_by_another_user_or_with_other_timeouts_is_the_same) {
    client first{server()};
    client second{server("/0?connect_timeout=900")};
    client third{server("?user=default&fenced=redisson")};
    multi_lock one{{{first, "x"}, {second, "x"}, {third, "x"}}};
    EXPECT_EQ(one.size(), 1U);
    EXPECT_TRUE(one.try_acquire_for(5s));
}

TEST_F(multi_lock_stores, the_order_is_that_of_the_stores_whatever_the_order_of_arguments) {
    client first{server("?prefix=a:")};
    client second{server("?prefix=b:")};
    multi_lock forth{{{first, "z"}, {second, "y"}}};
    multi_lock back{{{second, "y"}, {first, "z"}}};
    EXPECT_EQ(forth.names(), back.names());
    EXPECT_EQ(forth.names(), (std::vector<std::string>{"z", "y"}));
}

}  // namespace

}  // namespace holdfast::testing
