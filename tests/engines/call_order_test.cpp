#include <common/call_order.hpp>

#include <thread>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

TEST(call_order, requests_of_one_line_follow_each_other_in_the_order_of_their_entry) {
    call_order order;
    const auto first = order.enter(call_order::line{7});
    const auto second = order.enter(call_order::line{7});
    EXPECT_TRUE(order.wait(first, clock::now()));
    EXPECT_FALSE(order.wait(second, clock::now()));
    order.leave(first);
    EXPECT_TRUE(order.wait(second, clock::now()));
}

TEST(call_order, requests_of_other_lines_do_not_wait) {
    call_order order;
    static_cast<void>(order.enter(call_order::line{7}));
    EXPECT_TRUE(order.wait(order.enter(call_order::line{8}), clock::now()));
    EXPECT_TRUE(order.wait(order.enter(std::vector<call_order::line>{}), clock::now()));
}

TEST(call_order, a_request_of_several_lines_waits_for_all_of_them) {
    call_order order;
    const auto first = order.enter(call_order::line{7});
    const auto both = order.enter(std::vector<call_order::line>{8, 7, 8});
    EXPECT_FALSE(order.wait(both, clock::now()));
    EXPECT_FALSE(order.wait(order.enter(call_order::line{8}), clock::now()));
    order.leave(first);
    EXPECT_TRUE(order.wait(both, clock::now()));
}

TEST(call_order, one_that_gave_up_is_not_waited_for) {
    call_order order;
    const auto first = order.enter(call_order::line{7});
    const auto second = order.enter(call_order::line{7});
    const auto third = order.enter(call_order::line{7});
    order.leave(second);
    std::jthread later{[&] { order.leave(first); }};
    EXPECT_TRUE(order.wait(third, clock::now() + patience));
}

}  // namespace

}  // namespace holdfast::engines::test
