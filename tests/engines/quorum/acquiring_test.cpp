#include <gmock/gmock.h>

#include <quorum/stage.hpp>

namespace holdfast::testing {
namespace {

using ::testing::HasSubstr;

class quorum_acquiring : public quorum_test {};

TEST_F(quorum_acquiring, works_with_one_member_of_three_away) {
    auto store = open();
    faults[1]->cut_off();
    const auto reply = store.acquire(claim_of(owner(1)));
    ASSERT_TRUE(granted(reply));
    EXPECT_TRUE(renewed(store.renew({renewal_of(owner(1))}).at(0)));
    EXPECT_EQ(store.inspect(lock_name).info.holders.size(), 1U);
    EXPECT_TRUE(released(store.release(release_of(owner(1)))));
    EXPECT_TRUE(holders_in(0).empty());
    EXPECT_TRUE(holders_in(2).empty());
}

TEST_F(quorum_acquiring, without_a_quorum_says_so_at_once_and_leaves_nothing) {
    auto store = open();
    faults[1]->cut_off();
    faults[2]->cut_off();
    const auto reply = store.acquire(claim_of(owner(1)));
    EXPECT_TRUE(refused(reply, errc::store_unavailable));
    EXPECT_THAT(reply.error.detail, HasSubstr("no quorum: 1 of 3 members answered, 2 needed"));
    EXPECT_THAT(reply.error.detail, HasSubstr(addresses[1]));
    EXPECT_TRUE(holders_in(0).empty());
}

TEST_F(quorum_acquiring, is_of_unknown_outcome_when_the_members_may_have_acted) {
    auto store = open();
    for (const auto& each : faults) {
        each->lose_replies_of_next(call_kind::acquire);
    }
    EXPECT_TRUE(refused(store.acquire(claim_of(owner(1))), errc::outcome_unknown));
    EXPECT_TRUE(holders_in(0).empty()) << "released where nobody answered, too";
    EXPECT_TRUE(holders_in(1).empty());
}

TEST_F(quorum_acquiring, gives_back_a_grant_that_comes_after_the_round_is_lost) {
    auto store = open();
    take(1);
    take(2);
    faults[0]->delay_next(call_kind::acquire);
    EXPECT_TRUE(busy(store.acquire(claim_of(owner(1)))));
    faults[0]->let_go();
    EXPECT_TRUE(eventually([&] { return holders_in(0).empty(); }));
}

TEST_F(quorum_acquiring, gives_back_a_grant_that_comes_after_its_owner_has_let_go) {
    auto store = open();
    faults[2]->delay_next(call_kind::acquire);
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    EXPECT_TRUE(released(store.release(release_of(owner(1)))));
    faults[2]->let_go();
    EXPECT_TRUE(eventually([&] { return members_that_have_it() == 0; }));
}

/// The release may still reach the members that have not answered it.
TEST_F(quorum_acquiring, is_not_touched_by_a_release_of_the_same_owner_that_is_still_under_way) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    faults[1]->delay_next(call_kind::release);
    faults[2]->delay_next(call_kind::release);
    std::atomic<bool> answered{false};
    store.raw().release(release_of(owner(1)),
                        {.deadline = clock::now() + 10s, .from = engines::caller::must_not_block},
                        [&](const auto&) { answered = true; });
    const auto early = store.acquire(claim_of(owner(1)));
    faults[1]->let_go();
    faults[2]->let_go();
    EXPECT_TRUE(eventually([&] { return answered.load(); }));
    EXPECT_TRUE(!granted(early) || members_that_have_it() >= 2) << "it was granted, and is gone";
    EXPECT_TRUE(eventually([&] { return granted(store.acquire(claim_of(owner(1)))); }));
    EXPECT_GE(members_that_have_it(), 2U);
}

/// A late grant is given back, and that may come even later.
TEST_F(quorum_acquiring, is_not_touched_by_what_a_late_grant_of_the_same_owner_brings_about) {
    auto store = open();
    faults[2]->delay_next(call_kind::acquire);
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    EXPECT_TRUE(released(store.release(release_of(owner(1)))));
    faults[2]->delay_next(call_kind::release);
    faults[2]->let_go();
    ASSERT_TRUE(faults[2]->wait_until_held(1, patience)) << "the give-back of the late grant";
    faults[1]->fail_next(call_kind::acquire, 1, {errc::store_unavailable, "planted"});
    const auto again = store.acquire(claim_of(owner(1)));
    faults[2]->let_go();
    EXPECT_TRUE(!granted(again) || members_that_have_it() >= 2) << "it was granted, and is gone";
}

TEST_F(quorum_acquiring, is_not_touched_by_the_late_release_of_an_attempt_before_it) {
    auto store = open();
    take(1);
    take(2);
    faults[0]->delay_next(call_kind::release);
    EXPECT_TRUE(busy(store.acquire(claim_of(owner(1))))) << "one member was won, and is given back";
    give_back(1);
    for (int round = 0; round < 3; ++round) {
        EXPECT_FALSE(granted(store.acquire(claim_of(owner(1)))))
            << "what is about to be released is not to be counted on";
    }
    faults[0]->let_go();
    ASSERT_TRUE(eventually([&] { return granted(store.acquire(claim_of(owner(1)))); }));
    EXPECT_EQ(holders_in(0).size(), 1U);
    EXPECT_EQ(holders_in(1).size(), 1U);
    const auto holders = store.inspect(lock_name).info.holders;
    ASSERT_EQ(holders.size(), 1U);
    EXPECT_EQ(holders[0].owner, owner(1)) << "whatever members know it by";
    EXPECT_TRUE(released(store.release(release_of(owner(1)))));
    EXPECT_TRUE(holders_in(0).empty());
    EXPECT_TRUE(holders_in(1).empty());
}

TEST_F(quorum_acquiring, does_not_wait_a_second_time_for_a_member_that_did_not_answer) {
    auto store = open({.member_timeout = 300ms});
    take(1);
    faults[2]->go_silent();
    const auto before = holdfast::clock::now();
    EXPECT_TRUE(busy(store.acquire(claim_of(owner(1)))));
    const auto between = holdfast::clock::now();
    EXPECT_TRUE(busy(store.acquire(claim_of(owner(2)))));
    const auto after = holdfast::clock::now();
    EXPECT_GE(between - before, 290ms);
    EXPECT_LT(after - between, 290ms);
}

TEST_F(quorum_acquiring, does_not_wait_at_all_for_a_member_that_is_not_needed) {
    auto store = open({.member_timeout = 5s});
    faults[2]->go_silent();
    const auto before = holdfast::clock::now();
    EXPECT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    EXPECT_LT(holdfast::clock::now() - before, 4s);
}

TEST_F(quorum_acquiring, gives_tokens_that_rise_whichever_majority_grants) {
    auto store = open();
    // One member has counted far ahead of the others.
    auto ahead = claim_of(stranger(1));
    ahead.token_floor = {std::uint64_t{1} << 60};
    ASSERT_TRUE(granted(outsiders[0]->acquire(ahead)));
    give_back(0);

    faults[2]->cut_off();
    const auto first = store.acquire(claim_of(owner(1)));
    ASSERT_TRUE(granted(first));
    EXPECT_GT(first.first_token, ahead.token_floor);
    EXPECT_EQ(holders_in(1).at(0).token, first.first_token) << "written back before it was granted";
    ASSERT_TRUE(released(store.release(release_of(owner(1)))));

    auto another = open();
    faults[2]->heal();
    faults[0]->cut_off();
    const auto second = another.acquire(claim_of(owner(2)));
    ASSERT_TRUE(granted(second));
    EXPECT_GT(second.first_token, first.first_token);
}

TEST_F(quorum_acquiring, asks_members_once_when_their_counters_are_behind_the_clock) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    for (const auto& each : faults) {
        EXPECT_EQ(each->calls(call_kind::acquire), 1U);
    }
    EXPECT_EQ(holders_in(0).at(0).token, holders_in(2).at(0).token);
}

TEST_F(quorum_acquiring, waits_longer_the_more_often_the_vote_was_split) {
    auto store = open({.member_timeout = 5s, .environment = {.random = [] { return 0.5; }}});
    take(1, 1);
    take(2, 2);
    const auto pause = [&] { return store.acquire(claim_of(owner(1))).retry_after; };
    EXPECT_EQ(pause(), 5ms);
    EXPECT_EQ(pause(), 9ms);
    EXPECT_EQ(pause(), 17ms);
}

TEST_F(quorum_acquiring, asks_one_member_alone_after_a_split_vote) {
    auto store = open();
    take(1, 1);
    take(2, 2);
    ASSERT_TRUE(busy(store.acquire(claim_of(owner(1)))));
    take(0, 3);
    const auto before = faults[1]->calls(call_kind::acquire) + faults[2]->calls(call_kind::acquire);
    EXPECT_TRUE(busy(store.acquire(claim_of(owner(1)))));
    EXPECT_EQ(faults[1]->calls(call_kind::acquire) + faults[2]->calls(call_kind::acquire), before);
}

TEST_F(quorum_acquiring, asks_the_first_member_that_answers_after_a_split_vote) {
    faults[0]->cut_off();
    auto store = open();
    take(2, 2);
    ASSERT_TRUE(busy(store.acquire(claim_of(owner(1)))));
    take(1, 1);
    const auto before = faults[2]->calls(call_kind::acquire);
    EXPECT_TRUE(busy(store.acquire(claim_of(owner(1)))));
    EXPECT_EQ(faults[2]->calls(call_kind::acquire), before);
}

TEST_F(quorum_acquiring, remembers_split_votes_when_the_one_member_turns_it_away) {
    auto store = open({.member_timeout = 5s, .environment = {.random = [] { return 0.5; }}});
    take(1, 1);
    take(2, 2);
    const auto pause = [&] { return store.acquire(claim_of(owner(1))).retry_after; };
    EXPECT_EQ(pause(), 5ms);
    take(0, 3);
    EXPECT_EQ(pause(), 9ms) << "turned away";
    give_back(0, 3);
    EXPECT_EQ(pause(), 9ms) << "split again";
}

TEST_F(quorum_acquiring, goes_on_although_contenders_split_the_vote_of_two_members) {
    faults[2]->cut_off();
    constexpr int contenders = 3;
    constexpr int rounds = 20;
    auto store = open();
    std::atomic<int> holders{0};
    std::atomic<int> overlaps{0};
    std::atomic<int> grants{0};
    {
        std::vector<std::jthread> threads;
        for (int who = 0; who < contenders; ++who) {
            threads.emplace_back([&, who] {
                for (int round = 0; round < rounds; ++round) {
                    const auto mine = owner(100 * (who + 1) + round);
                    if (!eventually([&] { return granted(store.acquire(claim_of(mine))); })) {
                        return;
                    }
                    overlaps += holders.fetch_add(1);
                    ++grants;
                    holders.fetch_sub(1);
                    static_cast<void>(store.release(release_of(mine)));
                }
            });
        }
    }
    EXPECT_EQ(grants, contenders * rounds);
    EXPECT_EQ(overlaps, 0);
}

TEST_F(quorum_acquiring, does_not_count_a_member_that_has_just_restarted) {
    const auto young = holdfast::clock::now() - 3s;
    std::vector<std::unique_ptr<engines::engine>> members;
    members.push_back(std::make_unique<disguised>(way_to(0), engines::store_instance{"a", young}));
    members.push_back(std::make_unique<disguised>(way_to(1), engines::store_instance{"b", young - 1h}));
    members.push_back(way_to(2));
    blocking_engine store{
        engines::make_quorum(std::move(members), {.member_timeout = 5s, .restart_grace = 30s})};
    EXPECT_TRUE(granted(store.acquire(claim_of(owner(1))))) << "the other two are enough";
    EXPECT_TRUE(released(store.release(release_of(owner(1)))));

    faults[2]->cut_off();
    const auto reply = store.acquire(claim_of(owner(2)));
    EXPECT_TRUE(refused(reply, errc::store_unavailable));
    EXPECT_THAT(reply.error.detail, HasSubstr(addresses[0] + ": restarted 3 s ago"));
    EXPECT_THAT(reply.error.detail, HasSubstr("it votes again in 27 s"));
    EXPECT_TRUE(holders_in(0).empty());
    EXPECT_TRUE(holders_in(1).empty());
}

TEST_F(quorum_acquiring, refuses_two_members_that_turn_out_to_be_one_server) {
    std::vector<std::unique_ptr<engines::engine>> members;
    members.push_back(std::make_unique<disguised>(way_to(0), engines::store_instance{"run 1", {}}));
    members.push_back(std::make_unique<disguised>(way_to(1), engines::store_instance{"run 1", {}}));
    members.push_back(way_to(2));
    blocking_engine store{engines::make_quorum(std::move(members), {.member_timeout = 5s})};
    const auto reply = store.acquire(claim_of(owner(1)));
    EXPECT_TRUE(refused(reply, errc::bad_configuration));
    EXPECT_THAT(reply.error.detail, HasSubstr("the same server"));
    EXPECT_TRUE(holders_in(0).empty());
}

TEST_F(quorum_acquiring, refuses_permits_and_fair_locks_with_the_reason) {
    auto store = open();
    auto permit = claim_of(owner(1), claim_mode::permit);
    permit.limit = 2;
    const auto no_permit = store.acquire(permit);
    EXPECT_TRUE(refused(no_permit, errc::guarantee_not_met));
    EXPECT_THAT(no_permit.error.detail, HasSubstr("three clients can each have a majority"));
    auto fair = claim_of(owner(1));
    fair.kind = holdfast::lock_kind::fair_mutex;
    EXPECT_TRUE(refused(store.acquire(fair), errc::guarantee_not_met));
}

}  // namespace
}  // namespace holdfast::testing
