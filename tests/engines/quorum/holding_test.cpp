#include <holdfast/client.hpp>
#include <holdfast/shared_mutex.hpp>
#include <holdfast/testing/event_counter.hpp>
#include <quorum/stage.hpp>

#include <optional>

namespace holdfast::testing {
namespace {

class quorum_holding : public quorum_test {
protected:
    /// One store forgets the lock, as after a restart without its data.
    void forget(std::size_t index) {
        const auto held = holders_in(index);
        ASSERT_EQ(held.size(), 1U);
        ASSERT_TRUE(released(outsiders[index]->release(release_of(held[0].owner))));
    }
    /// Somebody has the lock there who is not the outsider.
    bool has_our_claim(std::size_t index) {
        const auto held = holders_in(index);
        return held.size() == 1 && held[0].owner != stranger(1);
    }
};

TEST_F(quorum_holding, a_renewal_needs_a_majority_and_repairs_the_rest) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    const auto token = holders_in(0).at(0).token;
    forget(2);
    EXPECT_TRUE(renewed(store.renew({renewal_of(owner(1))}).at(0)));
    const auto repaired = holders_in(2);
    ASSERT_EQ(repaired.size(), 1U);
    EXPECT_GE(repaired[0].token, token);
}

/// A member that said yes to somebody else for a moment has to be told of the winner.
TEST_F(quorum_holding, a_bare_majority_is_incomplete_until_the_third_member_has_it) {
    auto store = open();
    take(2);
    const auto won = store.acquire(claim_of(owner(1)));
    ASSERT_TRUE(granted(won));
    EXPECT_TRUE(won.incomplete);
    EXPECT_TRUE(store.renew({renewal_of(owner(1))}).at(0).incomplete);
    give_back(2);
    EXPECT_TRUE(renewed(store.renew({renewal_of(owner(1))}).at(0)));
    EXPECT_TRUE(has_our_claim(2));
    const auto whole = store.renew({renewal_of(owner(1))}).at(0);
    EXPECT_TRUE(renewed(whole));
    EXPECT_FALSE(whole.incomplete);
}

TEST_F(quorum_holding, a_member_that_does_not_answer_makes_nothing_incomplete) {
    auto store = open();
    faults[2]->cut_off();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    const auto reply = store.renew({renewal_of(owner(1))}).at(0);
    EXPECT_TRUE(renewed(reply));
    EXPECT_FALSE(reply.incomplete);
}

TEST_F(quorum_holding, a_client_tells_the_third_member_long_before_its_first_renewal) {
    take(2);
    client one{quorum{addresses}};
    auto held = shared_mutex{one, lock_name, {.ttl = quorum_ttl}}.try_acquire();
    ASSERT_TRUE(held);
    EXPECT_FALSE(has_our_claim(2));
    give_back(2);
    EXPECT_TRUE(eventually([&] { return has_our_claim(2); }));
    EXPECT_EQ(held->release(), release_outcome::released);
    EXPECT_EQ(members_that_have_it(), 0U);
}

TEST_F(quorum_holding, a_repair_is_no_vote_in_its_renewal) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    forget(1);
    forget(2);
    EXPECT_TRUE(gone(store.renew({renewal_of(owner(1))}).at(0)));
    EXPECT_TRUE(holders_in(1).empty());
    EXPECT_TRUE(holders_in(2).empty());
}

/// It would keep the name for the ttl, although nobody has the lock any more.
TEST_F(quorum_holding, what_a_minority_still_has_of_a_lost_lock_is_given_back) {
    auto store = open();
    const auto held = store.acquire(claim_of(owner(1)));
    ASSERT_TRUE(granted(held));
    for (const std::size_t member : {0U, 1U}) {
        ASSERT_TRUE(revoked(outsiders[member]->revoke({.name = lock_name,
                                                       .owner = owner(1),
                                                       .token = held.first_token,
                                                       .actor = "x",
                                                       .reason = "y"})));
    }
    const auto lost = store.renew({renewal_of(owner(1))}).at(0);
    EXPECT_TRUE(gone(lost));
    EXPECT_EQ(lost.error.code, errc::revoked);
    EXPECT_TRUE(eventually([&] { return members_that_have_it() == 0; }));
}

TEST_F(quorum_holding, a_repair_after_a_forced_release_is_given_back) {
    auto store = open();
    take(0);
    const auto held = store.acquire(claim_of(owner(1)));
    ASSERT_TRUE(granted(held));
    give_back(0);
    faults[0]->delay_next(call_kind::acquire);
    ASSERT_TRUE(renewed(store.renew({renewal_of(owner(1))}).at(0)));
    for (const std::size_t member : {1U, 2U}) {
        ASSERT_TRUE(revoked(outsiders[member]->revoke({.name = lock_name,
                                                       .owner = owner(1),
                                                       .token = held.first_token,
                                                       .actor = "x",
                                                       .reason = "y"})));
    }
    faults[0]->let_go();
    ASSERT_TRUE(eventually([&] { return has_our_claim(0); }));
    EXPECT_TRUE(gone(store.renew({renewal_of(owner(1))}).at(0)));
    EXPECT_TRUE(eventually([&] { return members_that_have_it() == 0; }));
}

TEST_F(quorum_holding, a_member_that_gave_it_to_somebody_else_is_left_alone) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    forget(2);
    take(2);
    EXPECT_TRUE(renewed(store.renew({renewal_of(owner(1))}).at(0)));
    ASSERT_EQ(holders_in(2).size(), 1U);
    EXPECT_EQ(holders_in(2)[0].owner, stranger(1));
}

TEST_F(quorum_holding, a_renewal_without_a_majority_fails_and_proves_nothing) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    forget(0);
    faults[1]->cut_off();
    const auto reply = store.renew({renewal_of(owner(1))}).at(0);
    EXPECT_EQ(reply.result, engines::renew_reply::outcome::failed);
    EXPECT_EQ(reply.error.code, errc::store_unavailable) << reply.error.detail;
}

TEST_F(quorum_holding, what_was_revoked_on_one_member_is_not_repaired) {
    auto store = open();
    const auto held = store.acquire(claim_of(owner(1)));
    ASSERT_TRUE(granted(held));
    ASSERT_TRUE(revoked(outsiders[0]->revoke({.name = lock_name,
                                              .owner = owner(1),
                                              .token = held.first_token,
                                              .actor = "x",
                                              .reason = "y"})));
    EXPECT_TRUE(renewed(store.renew({renewal_of(owner(1))}).at(0)));
    EXPECT_TRUE(holders_in(0).empty());
}

TEST_F(quorum_holding, a_release_whose_answers_are_lost_is_not_taken_for_done) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    faults[1]->lose_replies_of_next(call_kind::release);
    faults[2]->lose_replies_of_next(call_kind::release);
    EXPECT_TRUE(refused(store.release(release_of(owner(1))), errc::outcome_unknown));
    EXPECT_TRUE(gone(store.release(release_of(owner(1)))));
}

/// Or the rest of it would release what the same owner is granted next.
TEST_F(quorum_holding, a_release_is_over_when_everybody_has_been_told) {
    auto store = open();
    for (int round = 1; round <= 50; ++round) {
        ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
        event_counter over;
        std::uint64_t told = 0;
        store.raw().release(release_of(owner(1)), {clock::now() + patience},
                            [&, count = over.callback()](const engines::release_reply& reply) {
                                EXPECT_TRUE(released(reply));
                                told = faults[2]->calls(call_kind::release);
                                count();
                            });
        ASSERT_TRUE(over.wait_for(1, patience));
        EXPECT_EQ(told, static_cast<std::uint64_t>(round));
    }
}

/// It would otherwise be taken there until its ttl ends, and one more member that fails would stop
/// everybody.
TEST_F(quorum_holding, a_member_that_missed_a_release_is_told_again_by_the_next_request_of_anybody) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    faults[0]->fail_next(call_kind::release, 1, {errc::store_unavailable, "planted"});
    EXPECT_TRUE(released(store.release(release_of(owner(1)))));
    EXPECT_EQ(holders_in(0).size(), 1U);
    auto other = claim_of(owner(2));
    other.name = "another";
    // The member is not trusted before it has answered something.
    EXPECT_TRUE(granted(store.acquire(other)));
    EXPECT_TRUE(granted(store.acquire(other)));
    EXPECT_TRUE(holders_in(0).empty());
}

TEST_F(quorum_holding, a_member_that_missed_a_release_is_told_again_when_the_client_ends) {
    auto store = std::make_optional(open());
    ASSERT_TRUE(granted(store->acquire(claim_of(owner(1)))));
    faults[0]->fail_next(call_kind::release, 1, {errc::store_unavailable, "planted"});
    EXPECT_TRUE(released(store->release(release_of(owner(1)))));
    EXPECT_EQ(holders_in(0).size(), 1U);
    store.reset();
    EXPECT_TRUE(holders_in(0).empty());
}

TEST_F(quorum_holding, what_a_member_missed_is_not_taken_from_the_same_owner_when_it_asks_again) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    faults[0]->lose_replies_of_next(call_kind::release);
    EXPECT_TRUE(released(store.release(release_of(owner(1)))));
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    for (std::size_t member = 0; member < addresses.size(); ++member) {
        EXPECT_EQ(holders_in(member).size(), 1U) << member;
    }
    EXPECT_TRUE(renewed(store.renew({renewal_of(owner(1))}).at(0)));
}

TEST_F(quorum_holding, a_release_that_fails_late_does_not_disturb_what_its_owner_has_asked_for_since) {
    auto store = open({.member_timeout = 100ms});
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    faults[0]->delay_next(call_kind::release);
    EXPECT_TRUE(released(store.release(release_of(owner(1)))));
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    // The release to the first member ends without an answer meanwhile.
    for (const auto until = clock::now() + 300ms; clock::now() < until;) {
        ASSERT_TRUE(renewed(store.renew({renewal_of(owner(1))}).at(0)));
    }
    EXPECT_EQ(members_that_have_it(), 3U);
}

TEST_F(quorum_holding, a_repair_that_meets_a_release_does_not_outlive_it) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    forget(2);
    faults[2]->delay_replies_of_next(call_kind::renew);
    EXPECT_TRUE(renewed(store.renew({renewal_of(owner(1))}).at(0)));
    EXPECT_TRUE(released(store.release(release_of(owner(1)))));
    faults[2]->let_go();  // only now it says "gone"
    EXPECT_TRUE(holders_in(2).empty());
}

TEST_F(quorum_holding, a_share_is_not_repaired_once_it_has_become_more) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1), claim_mode::shared))));
    forget(2);
    faults[2]->delay_replies_of_next(call_kind::renew);
    EXPECT_TRUE(renewed(store.renew({renewal_of(owner(1), claim_mode::shared)}).at(0)));
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1)))));
    faults[2]->let_go();  // "gone", about the share
    ASSERT_EQ(holders_in(2).size(), 1U);
    EXPECT_EQ(holders_in(2)[0].mode, claim_mode::exclusive);
}

TEST_F(quorum_holding, a_failed_upgrade_goes_back_to_the_share) {
    auto store = open();
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1), claim_mode::shared))));
    take(1, 1, claim_mode::shared);
    take(2, 1, claim_mode::shared);
    EXPECT_TRUE(busy(store.acquire(claim_of(owner(1)))));
    ASSERT_EQ(holders_in(0).size(), 1U);
    EXPECT_EQ(holders_in(0)[0].mode, claim_mode::shared);
    EXPECT_TRUE(renewed(store.renew({renewal_of(owner(1), claim_mode::shared)}).at(0)));
}

TEST_F(quorum_holding, an_upgrade_does_not_count_members_that_a_late_share_may_still_reach) {
    auto store = open();
    faults[0]->lose_replies_of_next(call_kind::acquire);
    ASSERT_TRUE(granted(store.acquire(claim_of(owner(1), claim_mode::shared))));
    faults[1]->cut_off();
    EXPECT_FALSE(granted(store.acquire(claim_of(owner(1))))) << "0 is not to be trusted, 1 is away";
    faults[1]->heal();
    EXPECT_TRUE(granted(store.acquire(claim_of(owner(1)))));
}

TEST_F(quorum_holding, a_revocation_takes_the_lock_from_a_majority) {
    auto store = open();
    const auto held = store.acquire(claim_of(owner(1)));
    ASSERT_TRUE(granted(held));
    faults[1]->cut_off();
    EXPECT_TRUE(revoked(store.revoke({.name = lock_name,
                                      .owner = owner(1),
                                      .token = held.first_token,
                                      .actor = "x",
                                      .reason = "stuck"})));
    faults[1]->heal();
    const auto reply = store.renew({renewal_of(owner(1))}).at(0);
    EXPECT_TRUE(gone(reply));
    EXPECT_EQ(reply.error.code, errc::revoked);
}

TEST_F(quorum_holding, whoever_has_only_a_minority_is_not_shown_as_a_holder) {
    auto store = open();
    take(1);
    EXPECT_TRUE(store.inspect(lock_name).info.holders.empty());
    EXPECT_TRUE(store.list({.prefix = "", .from = {}}).locks.empty());
    take(2);
    EXPECT_EQ(store.inspect(lock_name).info.holders.size(), 1U);
    EXPECT_EQ(store.list({.prefix = "", .from = {}}).locks.size(), 1U);
    faults[0]->cut_off();
    EXPECT_EQ(store.list({.prefix = "", .from = {}}).locks.size(), 1U);
    faults[1]->cut_off();
    EXPECT_TRUE(refused(store.inspect(lock_name), errc::store_unavailable));
    EXPECT_EQ(store.list({.prefix = "", .from = {}}).error.code, errc::store_unavailable);
}

TEST_F(quorum_holding, what_was_lost_and_never_let_go_of_is_forgotten_in_time) {
    std::chrono::hours later{0};
    const auto now = [&] { return clock::now() + later; };
    engines::quorum_options options{.member_timeout = 5s};
    options.environment.now = now;
    auto store = open(options);
    const auto ask = [&](engines::acquire_request request) {
        engines::acquire_reply answer;
        store.raw().acquire(std::move(request), {now() + 5s},
                            [&](const engines::acquire_reply& reply) { answer = reply; });
        return answer;
    };
    auto claim = claim_of(owner(1));
    claim.ttl = 30ms;
    take(1);
    take(2);
    ASSERT_TRUE(busy(ask(claim)));
    give_back(1);
    give_back(2);
    ASSERT_TRUE(granted(ask(claim)));
    EXPECT_NE(holders_in(0).at(0).owner, owner(1)) << "members know it as the second attempt";
    ASSERT_TRUE(eventually([&] { return holders_in(0).empty(); }));

    later = 1h;
    for (int other = 0; other < 1100; ++other) {
        auto another = claim;
        another.name = "other " + std::to_string(other);
        another.ttl = quorum_ttl;
        ASSERT_TRUE(granted(ask(another)));
    }
    ASSERT_TRUE(granted(ask(claim)));
    EXPECT_EQ(holders_in(0).at(0).owner, owner(1)) << "nobody knows of its attempts any more";
}

TEST_F(quorum_holding, a_watch_passes_on_what_a_majority_of_members_hint_at) {
    auto store = open();
    event_counter hints;
    const auto watch =
        store.raw().offers().watching->watch(lock_name, holdfast::lock_kind::mutex, hints.callback());
    EXPECT_TRUE(watch->active());
    take(0);
    take(1);
    give_back(0);
    EXPECT_EQ(hints.count(), 0U) << "one member alone frees nothing";
    give_back(1);
    EXPECT_EQ(hints.count(), 1U);
    take(2);
    give_back(2);
    EXPECT_EQ(hints.count(), 1U) << "counted anew";
}

TEST_F(quorum_holding, a_watch_is_active_while_a_majority_of_its_parts_is_and_tells_when_it_is_again) {
    auto store = open();
    event_counter hints;
    const auto watch =
        store.raw().offers().watching->watch(lock_name, holdfast::lock_kind::mutex, hints.callback());
    faults[0]->cut_off();
    EXPECT_TRUE(watch->active());
    faults[1]->cut_off();
    EXPECT_FALSE(watch->active());
    const auto before = hints.count();
    faults[1]->heal();
    EXPECT_TRUE(watch->active());
    EXPECT_EQ(hints.count(), before + 1);
}

}  // namespace
}  // namespace holdfast::testing
