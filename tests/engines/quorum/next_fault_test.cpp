#include <quorum/merge.hpp>
#include <quorum/stage.hpp>

namespace holdfast::testing {
namespace {

/// What may fail after the first failure.
class quorum_next_fault : public quorum_test {};

TEST_F(quorum_next_fault, a_release_that_reached_one_member_of_three_is_unknown) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    faults[1]->cut_off();
    faults[2]->cut_off();
    const auto reply = store.release(release_of(owner(1)));
    EXPECT_EQ(reply.result, engines::release_reply::outcome::failed);
    EXPECT_EQ(reply.error.code, errc::outcome_unknown) << reply.error.detail;
}

TEST_F(quorum_next_fault, what_a_lost_vote_could_not_give_back_goes_with_the_next_request) {
    auto store = open();
    take(1);
    take(2);
    faults[0]->fail_next(call_kind::release, 1, {errc::store_unavailable, "for the test"});
    ASSERT_FALSE(granted(store.acquire(claim_of(owner(1)))));
    ASSERT_TRUE(eventually([&] { return faults[0]->calls(call_kind::release) == 1; }));
    const auto stale = holders_in(0);
    ASSERT_EQ(stale.size(), 1U) << "the store never saw it given back";
    ASSERT_FALSE(granted(store.acquire(claim_of(owner(1)))));
    EXPECT_TRUE(eventually([&] { return holders_in(0).empty(); }));
}

TEST_F(quorum_next_fault, a_holder_that_a_silent_member_may_know_is_shown) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    const auto held = holders_in(2);
    ASSERT_EQ(held.size(), 1U);
    ASSERT_TRUE(released(outsiders[2]->release(release_of(held[0].owner))));
    faults[1]->cut_off();
    EXPECT_EQ(store.inspect(lock_name).info.holders.size(), 1U) << "it may still have a majority";
}

TEST_F(quorum_next_fault, a_repair_that_arrives_after_the_release_is_given_back) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    const auto held = holders_in(2);
    ASSERT_EQ(held.size(), 1U);
    ASSERT_TRUE(released(outsiders[2]->release(release_of(held[0].owner))));
    faults[2]->delay_next(call_kind::acquire);
    EXPECT_TRUE(renewed(store.renew({renewal_of(owner(1))}).at(0)));
    ASSERT_TRUE(faults[2]->wait_until_held(1, 10s));
    EXPECT_TRUE(released(store.release(release_of(owner(1)))));
    faults[2]->let_go();
    EXPECT_TRUE(eventually([&] { return holders_in(2).empty(); }));
}

TEST(quorum_merge, a_lock_lasts_as_long_as_a_majority_keeps_it) {
    std::vector<std::optional<lock_info>> answers;
    for (const auto left : {1s, 9s, 5s}) {
        lock_info info;
        info.name = lock_name;
        holder_info holder;
        holder.owner = {1, 2, 3};
        holder.remaining = left;
        info.holders.push_back(holder);
        answers.emplace_back(info);
    }
    EXPECT_EQ(engines::quorums::merge(lock_name, answers).holders.at(0).remaining, 5s);
}

}  // namespace
}  // namespace holdfast::testing
