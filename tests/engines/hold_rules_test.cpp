#include <common/hold_rules.hpp>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

TEST(hold_rules, remaining_time_is_rounded_up_so_that_a_retry_is_not_too_early) {
    const clock::time_point now{1s};
    EXPECT_EQ(remaining_time(now + 1ns, now), 1ms);
    EXPECT_EQ(remaining_time(now, now), 0ms);
    EXPECT_EQ(remaining_time(now - 1s, now), 0ms);
}

TEST(hold_rules, an_exclusive_hold_is_enough_for_an_owner_that_believes_it_shares) {
    EXPECT_TRUE(covers(claim_mode::exclusive, claim_mode::shared));
    EXPECT_FALSE(covers(claim_mode::shared, claim_mode::exclusive));
    EXPECT_FALSE(covers(claim_mode::exclusive, claim_mode::permit));
}

TEST(hold_rules, an_owner_cannot_change_how_many_permits_it_has) {
    const owner_id owner{1, 1, 1};
    const std::vector<hold_record> live{{.owner = owner,
                                         .mode = claim_mode::permit,
                                         .permits = 2,
                                         .limit = 5,
                                         .expires = clock::time_point{1h}}};
    const auto decision = decide_acquire(permits("pool", owner, 3, 5), live, clock::time_point{1s});
    EXPECT_EQ(decision.what, acquire_decision::action::refuse);
    EXPECT_EQ(decision.error.code, errc::invalid_argument);
}

}  // namespace

}  // namespace holdfast::engines::test
