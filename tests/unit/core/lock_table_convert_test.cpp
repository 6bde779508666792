#include <core/table_script.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::claim_mode;
using holdfast::errc;
using holdfast::release_outcome;

class lock_table_convert : public table_conversation {
protected:
    /// Converts, and the store grants it at once.
    void converted(hold_id which, claim_mode to, std::uint64_t token) {
        convert(which, to);
        answer(only<send_acquire>(), granted(token));
        EXPECT_FALSE(only<finish_convert>().error);
    }
};

TEST_F(lock_table_convert, downgrade_asks_for_the_share_as_the_same_owner) {
    const auto id = acquire();
    const auto asked = only<send_acquire>();
    answer(asked, granted(7));

    convert(id, claim_mode::shared);

    const auto down = only<send_acquire>();
    EXPECT_EQ(down.request.mode, claim_mode::shared);
    EXPECT_EQ(down.request.owner, asked.request.owner);
    EXPECT_EQ(down.on_behalf_of, id);
    answer(down, granted(7));
    const auto end = only<finish_convert>();
    EXPECT_FALSE(end.error);
    EXPECT_EQ(end.token.value, 7U);
    let_go(id);
}

TEST_F(lock_table_convert, downgraded_lease_is_renewed_and_released_as_a_share) {
    const auto id = hold();
    converted(id, claim_mode::shared, 7);

    at(10s);
    const auto renewal = only<send_renew>();
    EXPECT_EQ(renewal.requests.at(0).mode, claim_mode::shared);
    answer(renewal, renewed());
    release(id);
    const auto back = only<send_release>();
    EXPECT_EQ(back.request.mode, claim_mode::shared);
    answer(back, released());
}

TEST_F(lock_table_convert, downgrade_lets_the_queue_contend_at_the_store) {
    const auto id = hold();
    const auto writer = acquire();

    converted(id, claim_mode::shared, 7);

    const auto asked = only<send_acquire>();
    EXPECT_EQ(asked.on_behalf_of, writer);
    answer(asked, busy());
    let_go(id);
    hint();
    answer(only<send_acquire>(), granted(8));
    let_go(writer);
}

TEST_F(lock_table_convert, downgraded_lease_is_not_handed_over) {
    const auto who = form_line();
    converted(who.first, claim_mode::shared, 10);
    answer(only<send_acquire>(), busy());

    release(who.first);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    answer(only<send_release>(), released());
    cancel(who.second);
    cancel(who.third);
}

TEST_F(lock_table_convert, downgrade_of_a_handed_over_lease_keeps_its_token) {
    const auto who = form_line();
    release(who.first);
    EXPECT_EQ(only<finish_acquire>().token.value, 11U);

    convert(who.second, claim_mode::shared);
    answer(only<send_acquire>(), granted(10, 5));  // the store knows only where the block starts

    EXPECT_EQ(only<finish_convert>().token.value, 11U);
    cancel(who.third);
    for (const auto& asked : all<send_acquire>()) {
        answer(asked, busy());
    }
    let_go(who.second);
}

TEST_F(lock_table_convert, upgrade_after_a_downgrade_that_never_reached_the_store_keeps_its_token) {
    const auto who = form_line();
    cancel(who.third);
    release(who.first);
    convert(who.second, claim_mode::shared);
    answer(only<send_acquire>(), not_acquired(errc::store_unavailable));
    EXPECT_EQ(only<finish_convert>().error.code, errc::store_unavailable);

    convert(who.second, claim_mode::exclusive);
    answer(only<send_acquire>(), granted(10, 5));  // it is exclusive still

    EXPECT_EQ(only<finish_convert>().token.value, 11U);
    let_go(who.second);
}

TEST_F(lock_table_convert, renewal_that_falls_into_a_downgrade_asks_for_no_more_than_the_share) {
    const auto id = hold();
    at(10s - 1ms);
    convert(id, claim_mode::shared);
    const auto down = only<send_acquire>();
    at(10s);

    const auto renewal = only<send_renew>();
    EXPECT_EQ(renewal.requests.at(0).mode, claim_mode::shared)
        << "the store may have downgraded it already and would find no exclusive hold";

    answer(down, granted(7));
    answer(renewal, renewed());
    let_go(id);
}

/// The store has a share in its name, or still the whole lock.
TEST_F(lock_table_convert, downgrade_of_unknown_outcome_is_asked_for_twice_more_and_counts_as_done) {
    const auto id = hold();
    convert(id, claim_mode::shared);

    answer(only<send_acquire>(), not_acquired(errc::outcome_unknown));
    answer(only<send_acquire>(), not_acquired(errc::outcome_unknown));
    answer(only<send_acquire>(), not_acquired(errc::outcome_unknown));

    EXPECT_FALSE(only<finish_convert>().error);
    let_go(id);
}

TEST_F(lock_table_convert, downgrade_answered_at_the_second_time_of_asking_is_done) {
    const auto id = hold();
    convert(id, claim_mode::shared);
    const auto first = only<send_acquire>();
    answer(first, not_acquired(errc::outcome_unknown));
    const auto second = only<send_acquire>();

    answer(second, granted(7));

    EXPECT_EQ(second.request.owner, first.request.owner);
    EXPECT_FALSE(only<finish_convert>().error);
    let_go(id);
}

TEST_F(lock_table_convert, lease_that_may_have_been_downgraded_is_not_handed_over) {
    const auto who = form_line();
    convert(who.first, claim_mode::shared);
    answer(only<send_acquire>(), not_acquired(errc::outcome_unknown));

    release(who.first);

    EXPECT_EQ(said<finish_acquire>(), 0U) << "readers may be there";
    cancel(who.second);
    cancel(who.third);
    for (const auto& asked : all<send_acquire>()) {
        answer(asked, busy());
    }
    confirm_releases();
    release(who.second);
    confirm_releases();
}

/// The first request may have reached the store, whatever became of the second.
TEST_F(lock_table_convert, downgrade_of_unknown_outcome_is_not_undone_by_a_later_request_that_failed) {
    const auto who = form_line();
    convert(who.first, claim_mode::shared);
    answer(only<send_acquire>(), not_acquired(errc::outcome_unknown));
    answer(only<send_acquire>(), not_acquired(errc::store_unavailable));
    EXPECT_FALSE(only<finish_convert>().error) << "a share is what it has at least";

    release(who.first);

    EXPECT_EQ(said<finish_acquire>(), 0U) << "readers may be there";
    cancel(who.second);
    cancel(who.third);
    for (const auto& asked : all<send_acquire>()) {
        answer(asked, busy());
    }
    confirm_releases();
}

TEST_F(lock_table_convert, upgrade_gets_a_new_token) {
    const auto id = hold(shared());
    convert(id, claim_mode::exclusive);

    const auto up = only<send_acquire>();
    EXPECT_EQ(up.request.mode, claim_mode::exclusive);
    answer(up, granted(9));

    const auto end = only<finish_convert>();
    EXPECT_EQ(end.id, id);
    EXPECT_FALSE(end.error);
    EXPECT_EQ(end.token.value, 9U);
    let_go(id);
}

TEST_F(lock_table_convert, upgrade_that_a_part_of_the_store_does_not_know_is_renewed_soon) {
    const auto id = hold(shared());
    convert(id, claim_mode::exclusive);
    auto reply = granted(9);
    reply.incomplete = true;
    answer(only<send_acquire>(), reply);
    static_cast<void>(only<finish_convert>());

    at(50ms);
    const auto renewal = only<send_renew>();
    EXPECT_EQ(renewal.requests.at(0).mode, claim_mode::exclusive);
    answer(renewal, renewed());
    let_go(id);
}

TEST_F(lock_table_convert,
       upgrade_is_refused_when_an_earlier_request_for_the_share_was_never_answered) {
    const auto id = acquire(shared());
    answer(only<send_acquire>(), not_acquired(errc::outcome_unknown));
    at(table.wake_at() - start);
    answer(only<send_acquire>(), granted(7));
    static_cast<void>(only<finish_acquire>());

    convert(id, claim_mode::exclusive);

    // The first request may still arrive, and would be taken for a downgrade.
    EXPECT_EQ(only<finish_convert>().error.code, errc::outcome_unknown);
    EXPECT_TRUE(all<send_acquire>().empty());
    let_go(id);
}

/// Too few confirmations make a store give the claim back, and that would be the whole lock.
TEST_F(lock_table_convert, replicas_confirm_an_acquisition_but_no_conversion) {
    auto asked = shared();
    asked.terms.replicas = holdfast::replica_policy::at_least(1);
    const auto id = acquire(asked);
    const auto first = only<send_acquire>();
    EXPECT_EQ(first.request.replicas, holdfast::replica_policy::at_least(1));
    answer(first, granted(7));
    static_cast<void>(only<finish_acquire>());

    convert(id, claim_mode::exclusive);
    const auto up = only<send_acquire>();
    EXPECT_EQ(up.request.replicas, holdfast::replica_policy{});
    answer(up, granted(9));
    convert(id, claim_mode::shared);
    const auto down = only<send_acquire>();
    EXPECT_EQ(down.request.replicas, holdfast::replica_policy{});
    answer(down, granted(9));
    let_go(id);
}

TEST_F(lock_table_convert, upgraded_lease_is_renewed_as_exclusive) {
    const auto id = hold(shared());
    converted(id, claim_mode::exclusive, 9);
    at(10s);

    const auto renewal = only<send_renew>();
    EXPECT_EQ(renewal.requests.at(0).mode, claim_mode::exclusive);

    answer(renewal, renewed());
    let_go(id);
}

TEST_F(lock_table_convert, upgrade_among_other_readers_is_busy_and_keeps_the_share) {
    const auto id = hold(shared());
    convert(id, claim_mode::exclusive);

    answer(only<send_acquire>(), busy(5s));

    EXPECT_EQ(only<finish_convert>().error.code, errc::busy);
    at(10s);
    const auto renewal = only<send_renew>();
    EXPECT_EQ(renewal.requests.at(0).mode, claim_mode::shared);
    answer(renewal, renewed());
    let_go(id);
}

/// Somebody else may have had the lock in between.
TEST_F(lock_table_convert, upgrade_of_a_share_that_the_store_has_lost_is_its_loss) {
    const auto id = hold(shared());
    convert(id, claim_mode::exclusive);
    const auto up = only<send_acquire>();
    EXPECT_TRUE(up.request.converts);

    answer(up, not_acquired(errc::lost));
    answer(only<send_renew>(), gone());

    EXPECT_EQ(only<tell_loss>().id, id);
    EXPECT_EQ(only<finish_convert>().error.code, errc::lost);
    at(10s);
    EXPECT_TRUE(requests_nothing()) << "what is lost is not renewed";
    release(id);
    confirm_releases();
}

TEST_F(lock_table_convert, downgrade_of_a_lock_that_the_store_has_lost_is_its_loss) {
    const auto id = hold();
    convert(id, claim_mode::shared);
    const auto down = only<send_acquire>();
    EXPECT_TRUE(down.request.converts);

    answer(down, not_acquired(errc::lost));
    answer(only<send_renew>(), gone());

    EXPECT_EQ(only<tell_loss>().id, id);
    EXPECT_EQ(only<finish_convert>().error.code, errc::lost);
    release(id);
    confirm_releases();
}

TEST_F(lock_table_convert, acquisition_is_no_conversion) {
    const auto id = acquire(shared());
    const auto asked = only<send_acquire>();
    EXPECT_FALSE(asked.request.converts);
    answer(asked, granted(7));
    let_go(id);
}

TEST_F(lock_table_convert, upgrade_passes_the_stores_failure_on) {
    const auto id = hold(shared());
    convert(id, claim_mode::exclusive);

    answer(only<send_acquire>(), not_acquired(errc::store_unavailable));

    EXPECT_EQ(only<finish_convert>().error.code, errc::store_unavailable);
    let_go(id);
}

TEST_F(lock_table_convert, lost_lease_cannot_be_converted) {
    const auto id = hold(on_terms(fixed_terms(), exclusive()));
    at(29'500ms);

    convert(id, claim_mode::shared);

    EXPECT_EQ(only<finish_convert>().error.code, errc::lost);
    EXPECT_TRUE(requests_nothing());
    at(1h);
    release(id);
}

TEST_F(lock_table_convert, lease_past_its_deadline_cannot_be_converted) {
    const auto id = hold(on_terms(fixed_terms(), exclusive()));
    unnoticed_at(29'500ms);

    convert(id, claim_mode::shared);

    EXPECT_EQ(only<finish_convert>().error.code, errc::lost);
    at(1h);
    release(id);
}

TEST_F(lock_table_convert, hold_that_is_not_there_cannot_be_converted) {
    convert(4711, claim_mode::shared);

    EXPECT_EQ(only<finish_convert>().error.code, errc::lost);
}

TEST_F(lock_table_convert, lease_lost_during_its_conversion_is_lost) {
    const auto id = hold(on_terms(fixed_terms(), exclusive()));
    at(29s);
    convert(id, claim_mode::shared);
    at(29'500ms);
    EXPECT_EQ(only<tell_loss>().id, id);

    answer(only<send_acquire>(), granted(7));

    EXPECT_EQ(only<finish_convert>().error.code, errc::lost);
    release(id);
    answer(only<send_release>(), released());
}

TEST_F(lock_table_convert, lease_lost_during_its_conversion_is_freed_even_after_its_first_ttl) {
    const auto id = hold(on_terms(fixed_terms(), exclusive()));
    at(29s);
    convert(id, claim_mode::shared);
    at(31s);
    answer(only<send_acquire>(), granted(7));  // which gave it another ttl, from 29 s on

    release(id);

    EXPECT_EQ(said<send_release>(), 1U);
    confirm_releases();
}

/// A store that carries out the release first, and then the upgrade, would keep the lock for its ttl.
TEST_F(lock_table_convert, upgrade_granted_after_its_lease_was_released_is_given_back) {
    const auto id = hold(shared());
    convert(id, claim_mode::exclusive);
    const auto up = only<send_acquire>();
    let_go(id);

    answer(up, granted(9));

    EXPECT_EQ(only<finish_convert>().error.code, errc::lost);
    const auto back = only<send_release>();
    EXPECT_EQ(back.request.owner, up.request.owner);
    EXPECT_EQ(back.request.kind, up.request.kind);
    EXPECT_EQ(back.on_behalf_of, 0U);
    answer(back, nothing_to_release());
    EXPECT_EQ(said<finish_release>(), 0U) << "nobody waits for it";
}

TEST_F(lock_table_convert, upgrade_granted_after_its_lease_reached_its_max_hold_is_given_back) {
    auto briefly = shared();
    briefly.terms.max_hold = 5s;
    const auto id = hold(briefly);
    at(4s);
    convert(id, claim_mode::exclusive);
    const auto up = only<send_acquire>();
    at(5s);
    answer(only<send_release>(), released());

    answer(up, granted(9));

    EXPECT_EQ(only<finish_convert>().error.code, errc::lost);
    const auto back = only<send_release>();
    EXPECT_EQ(back.request.owner, up.request.owner);
    answer(back, released());
    release(id);
    confirm_releases();
}

TEST_F(lock_table_convert, conversion_without_an_answer_after_its_lease_was_released_is_given_back) {
    for (const auto to : {claim_mode::exclusive, claim_mode::shared}) {
        const auto id = hold(to == claim_mode::shared ? exclusive() : shared());
        convert(id, to);
        const auto asked = only<send_acquire>();
        let_go(id);

        answer(asked, not_acquired(errc::outcome_unknown));

        EXPECT_EQ(only<finish_convert>().error.code, errc::lost);
        EXPECT_TRUE(all<send_acquire>().empty()) << "it is not asked for again";
        const auto back = only<send_release>();
        EXPECT_EQ(back.request.owner, asked.request.owner);
        answer(back, released());
    }
}

TEST_F(lock_table_convert, refused_conversion_of_a_lease_that_was_released_needs_no_second_release) {
    for (const auto& refusal : {busy(), not_acquired(errc::lost), not_acquired(errc::store_error)}) {
        const auto id = hold(shared());
        convert(id, claim_mode::exclusive);
        const auto up = only<send_acquire>();
        let_go(id);

        answer(up, refusal);

        EXPECT_EQ(only<finish_convert>().error.code, errc::lost);
        EXPECT_TRUE(requests_nothing());
    }
}

TEST_F(lock_table_convert, release_under_way_is_enough_for_a_conversion_answered_meanwhile) {
    const auto id = hold(shared());
    convert(id, claim_mode::exclusive);
    const auto up = only<send_acquire>();
    release(id);
    const auto back = only<send_release>();

    answer(up, granted(9));

    EXPECT_EQ(only<finish_convert>().error.code, errc::lost);
    EXPECT_TRUE(requests_nothing());
    answer(back, released());
    EXPECT_EQ(only<finish_release>().outcome, release_outcome::released);
}

TEST_F(lock_table_convert, abandoned_lease_whose_upgrade_is_granted_later_is_given_back) {
    const auto id = hold(shared());
    convert(id, claim_mode::exclusive);
    const auto up = only<send_acquire>();
    abandon(id);
    answer(only<send_release>(), released());

    answer(up, granted(9));

    answer(only<send_release>(), nothing_to_release());
}

/// The next thread holds the lock as the same owner.
TEST_F(lock_table_convert, conversion_answered_after_a_hand_over_takes_nothing_away) {
    const auto who = form_line();
    cancel(who.third);
    convert(who.first, claim_mode::exclusive);  // it is: nothing changes
    const auto asked = only<send_acquire>();
    release(who.first);
    EXPECT_EQ(all<finish_acquire>().back().id, who.second);

    answer(asked, granted(10, 5));

    EXPECT_TRUE(requests_nothing());
    let_go(who.second);
}

TEST_F(lock_table_convert, a_lease_that_is_gone_is_over_at_once_and_the_store_is_asked_why) {
    const auto id = hold();
    convert(id, claim_mode::shared);

    answer(only<send_acquire>(), not_acquired(errc::lost));

    EXPECT_EQ(only<set_validity>().valid_until, now);
    EXPECT_EQ(said<finish_convert>(), 0U);
    const auto why = only<send_renew>();
    EXPECT_EQ(why.requests.at(0).ttl, lease_terms().shortest_ttl);
    answer(why, gone({errc::revoked, "by somebody"}));
    EXPECT_EQ(only<finish_convert>().error.code, errc::revoked);
    EXPECT_EQ(only<tell_loss>().why.code, errc::revoked);
    release(id);
    confirm_releases();
}

TEST_F(lock_table_convert, the_reason_may_come_with_a_renewal_that_was_under_way) {
    const auto id = hold();
    convert(id, claim_mode::shared);
    const auto down = only<send_acquire>();
    holds_may_have_changed();
    const auto renewal = only<send_renew>();
    answer(down, not_acquired(errc::lost));
    const auto question = only<send_renew>();

    answer(renewal, gone({errc::revoked, "by somebody"}));
    answer(question, gone());

    EXPECT_EQ(only<finish_convert>().error.code, errc::revoked);
    EXPECT_EQ(only<tell_loss>().why.code, errc::revoked);
    release(id);
    confirm_releases();
}

TEST_F(lock_table_convert, a_lease_that_is_gone_is_lost_when_the_store_knows_no_reason) {
    const auto id = hold();
    convert(id, claim_mode::shared);
    answer(only<send_acquire>(), not_acquired(errc::lost));

    answer(only<send_renew>(), renewed());

    EXPECT_EQ(only<finish_convert>().error.code, errc::lost);
    EXPECT_EQ(only<tell_loss>().why.code, errc::lost);
    release(id);
    confirm_releases();
}

TEST_F(lock_table_convert, a_conversion_of_a_lease_that_was_revoked_meanwhile_says_so) {
    const auto id = hold();
    convert(id, claim_mode::shared);
    const auto down = only<send_acquire>();
    holds_may_have_changed();
    answer(only<send_renew>(), gone({errc::revoked, "by somebody"}));

    answer(down, not_acquired(errc::lost));

    EXPECT_EQ(only<finish_convert>().error.code, errc::revoked);
    convert(id, claim_mode::shared);
    EXPECT_EQ(only<finish_convert>().error.code, errc::revoked);
    release(id);
    confirm_releases();
}

TEST_F(lock_table_convert, a_downgrade_takes_two_request_timeouts_at_most) {
    const auto id = hold();
    convert(id, claim_mode::shared);
    const auto first = only<send_acquire>();
    const auto timeout = first.deadline - now;
    at(timeout - 1ms);
    answer(first, not_acquired(errc::outcome_unknown));
    const auto second = only<send_acquire>();
    EXPECT_EQ(second.deadline - start, 2 * timeout - 1ms);
    at(2 * timeout - 2ms);
    answer(second, not_acquired(errc::outcome_unknown));
    const auto third = only<send_acquire>();
    EXPECT_EQ(third.deadline - start, 2 * timeout);
    at(2 * timeout);

    answer(third, not_acquired(errc::outcome_unknown));

    EXPECT_FALSE(only<finish_convert>().error);
    let_go(id);
}

TEST_F(lock_table_convert, loss_is_told_as_soon_as_a_renewal_under_way_says_so) {
    const auto id = hold();
    at(10s);
    const auto under_way = only<send_renew>();
    convert(id, claim_mode::shared);
    answer(only<send_acquire>(), not_acquired(errc::lost));
    EXPECT_EQ(said<tell_loss>(), 0U) << "the store is asked for the reason";

    answer(under_way, gone({errc::revoked, "by an operator"}));

    EXPECT_EQ(only<tell_loss>().why.code, errc::revoked);
    answer(only<send_renew>(), gone({errc::revoked, "by an operator"}));
    EXPECT_EQ(said<tell_loss>(), 0U) << "it was told";
    EXPECT_EQ(only<finish_convert>().error.code, errc::revoked);
    release(id);
    confirm_releases();
}

TEST_F(lock_table_convert, answer_after_the_deadline_does_not_extend_the_lease) {
    const auto id = hold(on_terms(fixed_terms(), exclusive()));
    convert(id, claim_mode::shared);
    const auto asked = only<send_acquire>();
    unnoticed_at(40s);

    answer(asked, not_acquired(errc::lost));

    EXPECT_EQ(said<set_validity>(), 0U);
    EXPECT_EQ(said<send_renew>(), 0U) << "its holder is told at once, not after a question why";
    EXPECT_EQ(said<tell_loss>(), 1U);
    release(id);
    confirm_releases();
}

TEST_F(lock_table_convert, the_question_why_a_lease_is_gone_ends_before_the_lease_would_have) {
    const auto id = hold(on_terms(fixed_terms(), exclusive()));
    at(29s);
    convert(id, claim_mode::shared);
    answer(only<send_acquire>(), not_acquired(errc::lost));

    EXPECT_EQ(only<set_validity>().valid_until, script::at(29s));
    const auto question = only<send_renew>();
    EXPECT_LT(question.deadline, script::at(29'500ms));
    answer(question, gone());
    release(id);
    confirm_releases();
}

}  // namespace
