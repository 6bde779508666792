#include <records/rules.hpp>

#include <support.hpp>

namespace holdfast::engines::test {

namespace {

TEST(record_rules, remaining_time_is_rounded_up_so_that_a_retry_is_not_too_early) {
    const clock::time_point now{1s};
    EXPECT_EQ(records::remaining_time(now + 1ns, now), 1ms);
    EXPECT_EQ(records::remaining_time(now, now), 0ms);
    EXPECT_EQ(records::remaining_time(now - 1s, now), 0ms);
}

TEST(record_rules, an_exclusive_hold_is_enough_for_an_owner_that_believes_it_shares) {
    const owner_id owner{1, 1, 1};
    const clock::time_point now{1s};
    records::record state;
    std::uint64_t last_token = 0;
    ASSERT_TRUE(records::acquire(state.holds, exclusive("stock", owner), {now}, last_token).changed);
    EXPECT_TRUE(records::renew(state, {"stock", claim_mode::shared, owner, 1s}, now).changed);
    EXPECT_FALSE(records::renew(state, {"stock", claim_mode::permit, owner, 1s}, now).changed);
    ASSERT_TRUE(records::acquire(state.holds, shared("stock", owner), {now}, last_token).freed);
    EXPECT_FALSE(records::renew(state, {"stock", claim_mode::exclusive, owner, 1s}, now).changed);
}

TEST(record_rules, an_owner_cannot_change_how_many_permits_it_has) {
    const owner_id owner{1, 1, 1};
    const std::vector<records::hold> live{{.owner = owner,
                                           .mode = claim_mode::permit,
                                           .permits = 2,
                                           .limit = 5,
                                           .expires = clock::time_point{1h}}};
    const auto refusal = records::refusal_of(permits("pool", owner, 3, 5), live, clock::time_point{1s});
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->error.code, errc::invalid_argument);
}

}  // namespace

}  // namespace holdfast::engines::test
