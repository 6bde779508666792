#include <core/table_script.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::errc;
using holdfast::release_outcome;

claim at_most(std::chrono::milliseconds max_hold) {
    auto what = exclusive();
    what.terms.max_hold = max_hold;
    return what;
}

class lock_table_holding : public table_conversation {
protected:
    /// The lease that began at the start is lost at 29.5 s, for want of any answer.
    void lose_for_silence() {
        at(29'500ms);
        silent_ = only<send_renew>();
        EXPECT_EQ(only<tell_loss>().why.code, errc::lost);
    }
    void break_the_silence() { answer(silent_, gone()); }
    /// Renewed after 40 ms, while it may still be handed over.
    line form_brief_line() {
        const auto brief = on_terms(lease_terms(120ms), exclusive());
        return form_line(brief, brief);
    }

private:
    send_renew silent_;
};

TEST_F(lock_table_holding, lease_is_renewed_after_a_third_of_its_ttl) {
    const auto id = hold();
    at(10s - 1ns);
    EXPECT_TRUE(requests_nothing());
    at(10s);

    const auto renewal = only<send_renew>();
    ASSERT_EQ(renewal.requests.size(), 1U);
    EXPECT_EQ(renewal.requests[0].name, "stock");
    EXPECT_EQ(renewal.deadline, script::at(12s));
    at(11s);
    answer(renewal, renewed());

    const auto valid = only<set_validity>();
    EXPECT_EQ(valid.id, id);
    EXPECT_EQ(valid.valid_until, script::at(10s + 29'500ms));
    let_go(id);
}

TEST_F(lock_table_holding, renewal_is_not_waited_for_beyond_the_last_deadline) {
    const auto id = hold(on_terms(lease_terms(60ms), exclusive()));
    at(20ms);

    const auto renewal = only<send_renew>();
    EXPECT_EQ(renewal.deadline, script::at(59ms));

    answer(renewal, renewed());
    let_go(id);
}

TEST_F(lock_table_holding, leases_that_are_due_together_are_renewed_in_one_request) {
    const auto one = hold(exclusive("one"));
    const auto two = hold(exclusive("two"));
    at(10s);

    const auto renewal = only<send_renew>();
    EXPECT_EQ(renewal.requests.size(), 2U);

    answer(renewal, renewed());
    EXPECT_EQ(said<set_validity>(), 2U);
    let_go(one);
    let_go(two);
}

TEST_F(lock_table_holding, failed_renewal_is_tried_again_and_changes_nothing) {
    const auto id = hold();
    at(10s);
    answer(only<send_renew>(), not_renewed(errc::store_unavailable));
    EXPECT_EQ(said<set_validity>() + said<tell_loss>(), 0U);

    at(11'500ms);

    answer(only<send_renew>(), renewed());
    EXPECT_EQ(only<set_validity>().valid_until, script::at(11'500ms + 29'500ms));
    let_go(id);
}

TEST_F(lock_table_holding, every_lease_of_a_batch_gets_its_own_answer) {
    const auto first = hold(exclusive("a"));
    const auto second = hold(exclusive("b"));
    at(10s);

    table.on_renew_replies(only<send_renew>().id, {gone(), renewed()}, now);
    at(10s);

    EXPECT_EQ(only<tell_loss>().id, first);
    EXPECT_EQ(only<set_validity>().id, second);
    release(first);
    confirm_releases();
    let_go(second);
}

TEST_F(lock_table_holding, missing_answer_counts_as_failure) {
    const auto id = hold();
    at(10s);

    table.on_renew_replies(only<send_renew>().id, {}, now);
    at(11'500ms);

    EXPECT_EQ(said<tell_loss>() + said<set_validity>(), 0U);
    answer(only<send_renew>(), renewed());
    let_go(id);
}

TEST_F(lock_table_holding, fixed_lease_is_not_renewed) {
    const auto id = hold(on_terms(fixed_terms(), exclusive()));
    at(29s);

    EXPECT_TRUE(requests_nothing());

    let_go(id);
}

TEST_F(lock_table_holding, deadline_is_loss_without_any_answer) {
    const auto id = hold();
    at(29'500ms - 1ns);
    EXPECT_EQ(said<tell_loss>(), 0U);

    lose_for_silence();

    release(id);
    answer(only<send_release>(), nothing_to_release());
    break_the_silence();
}

TEST_F(lock_table_holding, answer_after_the_deadline_does_not_revive_a_lease) {
    const auto id = hold();
    at(10s);
    const auto renewal = only<send_renew>();
    unnoticed_at(29'500ms);

    answer(renewal, renewed());

    EXPECT_EQ(said<set_validity>(), 0U);
    at(29'500ms);
    EXPECT_EQ(only<tell_loss>().id, id);
    release(id);
    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
    confirm_releases();
}

TEST_F(lock_table_holding, gone_in_the_store_is_loss_for_the_reason_that_the_store_gives) {
    const auto id = hold();
    at(10s);

    answer(only<send_renew>(), gone({errc::revoked, "by alice: stuck"}));

    const auto loss = only<tell_loss>();
    EXPECT_EQ(loss.id, id);
    EXPECT_EQ(loss.why.code, errc::revoked);
    EXPECT_EQ(loss.why.detail, "by alice: stuck");
    release(id);
    confirm_releases();
}

TEST_F(lock_table_holding, loss_is_told_once) {
    const auto id = hold();
    lose_for_silence();
    break_the_silence();

    at(1h);

    EXPECT_EQ(said<tell_loss>(), 0U);
    release(id);
}

TEST_F(lock_table_holding, release_after_loss_was_already_lost_and_cleans_up) {
    const auto id = hold();
    lose_for_silence();

    release(id);

    const auto end = only<finish_release>();
    EXPECT_EQ(end.id, id);
    EXPECT_EQ(end.outcome, release_outcome::already_lost);
    const auto back = only<send_release>();
    EXPECT_EQ(back.on_behalf_of, 0U);
    answer(back, released());
    EXPECT_EQ(said<finish_release>(), 0U);
    break_the_silence();
}

TEST_F(lock_table_holding, release_long_after_loss_has_nothing_to_clean_up) {
    const auto id = hold(on_terms(fixed_terms(), exclusive()));
    at(1h);
    EXPECT_EQ(only<tell_loss>().id, id);

    release(id);

    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
    EXPECT_TRUE(requests_nothing());
}

TEST_F(lock_table_holding, release_after_loss_cleans_up_what_unanswered_renewals_may_have_extended) {
    const auto id = hold();
    at(10s);
    answer(only<send_renew>(), not_renewed(errc::outcome_unknown));
    at(29s);
    const auto silent = all<send_renew>();
    at(31s);
    EXPECT_EQ(only<tell_loss>().id, id);

    release(id);

    EXPECT_EQ(said<send_release>(), 1U) << "the store may keep it until 40 s";
    confirm_releases();
    for (const auto& one : silent) {
        answer(one, gone());
    }
}

TEST_F(lock_table_holding, release_at_a_moment_past_the_deadline_finds_the_lease_lost) {
    const auto id = hold(on_terms(fixed_terms(), exclusive()));
    unnoticed_at(29'500ms);

    release(id);

    EXPECT_EQ(only<tell_loss>().id, id);
    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
    answer(only<send_release>(), released());
}

TEST_F(lock_table_holding, threads_that_wait_contend_anew_after_a_loss) {
    const auto holder = hold();
    const auto waiting = acquire();
    lose_for_silence();

    const auto asked = only<send_acquire>();
    EXPECT_EQ(asked.on_behalf_of, waiting);
    answer(asked, granted(8));
    EXPECT_EQ(only<finish_acquire>().id, waiting);

    release(holder);
    answer(only<send_release>(), nothing_to_release());
    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
    let_go(waiting);
    break_the_silence();
}

TEST_F(lock_table_holding, hold_ends_at_its_max_hold_and_is_given_back) {
    const auto id = acquire(at_most(5s));
    answer(only<send_acquire>(), granted(7));
    EXPECT_EQ(only<finish_acquire>().valid_until, script::at(5s));

    at(5s - 1ns);
    EXPECT_TRUE(requests_nothing());
    at(5s);

    const auto loss = only<tell_loss>();
    EXPECT_EQ(loss.id, id);
    EXPECT_EQ(loss.why.code, errc::max_hold_exceeded);
    answer(only<send_release>(), released());
    EXPECT_EQ(said<finish_release>(), 0U) << "its holder has not called release";
    release(id);
    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
    answer(only<send_release>(), nothing_to_release());
}

TEST_F(lock_table_holding, those_who_wait_here_go_on_when_a_max_hold_is_back_in_the_store) {
    const auto who = form_line(at_most(5s));
    at(5s);
    EXPECT_EQ(only<tell_loss>().id, who.first);

    const auto back = only<send_release>();
    EXPECT_EQ(said<send_acquire>(), 0U) << "it is not free yet";
    answer(back, released());
    const auto asked = only<send_acquire>();
    EXPECT_EQ(asked.on_behalf_of, who.second);
    answer(asked, granted(20));
    EXPECT_EQ(only<finish_acquire>().id, who.second);

    release(who.first);
    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
    answer(only<send_release>(), nothing_to_release());
    cancel(who.third);
    let_go(who.second);
}

TEST_F(lock_table_holding, max_hold_that_the_store_did_not_hear_of_is_given_back_again) {
    const auto id = hold(at_most(5s));
    at(5s);
    static_cast<void>(only<tell_loss>());
    const auto first = only<send_release>();
    at(7s);
    answer(first, not_released(errc::outcome_unknown));
    at(8s);
    answer(only<send_release>(), released());
    release(id);
    answer(only<send_release>(), nothing_to_release());
}

TEST_F(lock_table_holding, abandoned_hold_that_reached_its_max_hold_is_over) {
    const auto id = hold(at_most(5s));
    at(5s);
    answer(only<send_release>(), released());
    abandon(id);
    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
    answer(only<send_release>(), nothing_to_release());
}

TEST_F(lock_table_holding, renewal_does_not_stretch_a_max_hold) {
    const auto id = hold(at_most(15s));
    at(10s);

    answer(only<send_renew>(), renewed());

    EXPECT_EQ(only<set_validity>().valid_until, script::at(15s));
    let_go(id);
}

TEST_F(lock_table_holding, lease_that_reached_its_max_hold_is_not_renewed_any_more) {
    const auto id = hold(at_most(5s));
    at(29s);

    EXPECT_EQ(said<send_renew>(), 0U);

    answer(only<send_release>(), released());
    release(id);
    answer(only<send_release>(), nothing_to_release());
}

TEST_F(lock_table_holding, max_hold_of_a_hold_that_was_handed_over_starts_with_it) {
    const auto who = form_line(at_most(100ms), at_most(100ms));
    at(40ms);
    release(who.first);
    EXPECT_EQ(only<finish_acquire>().valid_until, script::at(140ms));

    at(140ms - 1ns);
    EXPECT_EQ(said<tell_loss>(), 0U);
    at(140ms);

    EXPECT_EQ(only<tell_loss>().id, who.second);
    cancel(who.third);
    answer(only<send_release>(), released());
    release(who.second);
    answer(only<send_release>(), nothing_to_release());
}

TEST_F(lock_table_holding, suspicion_renews_at_once) {
    const auto id = hold();
    at(1s);

    holds_may_have_changed();

    answer(only<send_renew>(), gone({errc::revoked, "by alice"}));
    EXPECT_EQ(only<tell_loss>().why.code, errc::revoked);
    release(id);
    confirm_releases();
}

TEST_F(lock_table_holding, lease_on_its_way_back_is_not_renewed) {
    const auto id = hold();
    release(id);
    const auto back = only<send_release>();
    at(20s);

    EXPECT_EQ(said<send_renew>(), 0U);

    answer(back, released());
}

TEST_F(lock_table_holding, renewal_answered_after_the_release_is_ignored) {
    const auto id = hold();
    at(10s);
    const auto renewal = only<send_renew>();
    let_go(id);

    answer(renewal, renewed());

    EXPECT_EQ(said<set_validity>() + said<tell_loss>(), 0U);
}

TEST_F(lock_table_holding, renewal_of_a_handed_over_lease_reaches_its_new_holder) {
    const auto who = form_line();
    release(who.first);
    at(10s);

    answer(only<send_renew>(), renewed());

    EXPECT_EQ(only<set_validity>().id, who.second);
    cancel(who.third);
    let_go(who.second);
}

TEST_F(lock_table_holding, renewal_under_way_at_a_hand_over_is_answered_to_the_new_holder) {
    const auto who = form_brief_line();
    at(40ms);
    const auto renewal = only<send_renew>();
    cancel(who.third);
    release(who.first);

    answer(renewal, gone({errc::revoked, "by alice"}));

    EXPECT_EQ(only<tell_loss>().id, who.second);
    release(who.second);
    confirm_releases();
}

/// Somebody may have taken it away by force: then the next holder would share it with another process.
TEST_F(lock_table_holding, lease_in_doubt_is_not_handed_over) {
    const auto who = form_line();
    holds_may_have_changed();
    const auto question = only<send_renew>();

    release(who.first);

    const auto back = only<send_release>();
    EXPECT_EQ(said<finish_acquire>(), 0U);
    answer(question, gone({errc::revoked, "by alice"}));
    answer(back, nothing_to_release());
    answer(only<send_renew>(), gone({errc::revoked, "by alice"}));
    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
    const auto next = only<send_acquire>();
    EXPECT_EQ(next.on_behalf_of, who.second);
    cancel(who.third);
    answer(next, granted(20));
    let_go(who.second);
}

TEST_F(lock_table_holding, lease_that_was_in_doubt_is_handed_over_once_it_is_confirmed) {
    const auto who = form_line();
    holds_may_have_changed();
    answer(only<send_renew>(), renewed());

    release(who.first);

    EXPECT_EQ(only<finish_acquire>().id, who.second);
    cancel(who.third);
    let_go(who.second);
}

TEST_F(lock_table_holding, lease_stays_in_doubt_until_a_question_that_was_asked_since_is_answered) {
    const auto who = form_brief_line();
    at(40ms);
    const auto earlier = only<send_renew>();
    holds_may_have_changed();
    answer(earlier, renewed());
    at(40ms);
    const auto first = only<send_renew>();
    answer(first, not_renewed(errc::store_unavailable));

    release(who.first);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    cancel(who.second);
    cancel(who.third);
    answer(only<send_release>(), released());
}

}  // namespace
