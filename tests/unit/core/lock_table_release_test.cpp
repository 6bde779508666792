#include <core/table_script.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::errc;
using holdfast::release_outcome;

class lock_table_release : public table_conversation {
protected:
    /// Lets go, and the store stays silent until the release timeout of two seconds.
    hold_id let_go_in_silence() {
        const auto id = hold();
        release(id);
        unanswered = only<send_release>();
        at(2s);
        return id;
    }

    send_release unanswered;
};

TEST_F(lock_table_release, release_that_the_store_does_not_know_was_already_lost) {
    const auto id = hold();
    release(id);

    answer(only<send_release>(), nothing_to_release());
    answer(only<send_renew>(), gone());

    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
}

TEST_F(lock_table_release, linger_is_passed_on_to_the_store) {
    const auto id = hold();

    release(id, 5min);

    const auto back = only<send_release>();
    EXPECT_EQ(back.request.linger, 5min);
    answer(back, released());
    EXPECT_EQ(only<finish_release>().outcome, release_outcome::released);
}

TEST_F(lock_table_release, release_of_a_hold_that_is_not_there_was_already_lost) {
    release(4711);

    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
    EXPECT_TRUE(requests_nothing());
}

TEST_F(lock_table_release, second_release_of_a_hold_was_already_lost) {
    const auto id = hold();
    let_go(id);

    release(id);

    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
}

TEST_F(lock_table_release, what_nobody_can_release_any_more_is_lost_and_given_back) {
    const auto id = hold();

    abandon(id);

    const auto loss = only<tell_loss>();
    EXPECT_EQ(loss.id, id);
    EXPECT_EQ(loss.why.code, errc::lost);
    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
    const auto back = only<send_release>();
    EXPECT_EQ(back.on_behalf_of, 0U);
    at(1min);
    EXPECT_EQ(said<send_renew>(), 0U);
    answer(back, released());
}

TEST_F(lock_table_release, those_who_wait_for_what_was_abandoned_ask_when_it_is_back) {
    const auto id = hold();
    const auto next = acquire();

    abandon(id);

    EXPECT_EQ(said<send_acquire>(), 0U);
    answer(only<send_release>(), released());
    answer(only<send_acquire>(), granted(9));
    EXPECT_EQ(only<finish_acquire>().id, next);
    static_cast<void>(all<tell_loss>());
    static_cast<void>(all<finish_release>());
    let_go(next);
}

TEST_F(lock_table_release, abandoning_what_is_lost_or_released_tells_nobody) {
    const auto id = hold();
    let_go(id);

    abandon(id);

    EXPECT_EQ(said<tell_loss>(), 0U);
    EXPECT_TRUE(requests_nothing());
    static_cast<void>(all<finish_release>());
}

TEST_F(lock_table_release, release_is_sent_again_until_the_store_answers) {
    const auto id = hold();
    release(id);
    answer(only<send_release>(), not_released(errc::store_unavailable));
    EXPECT_EQ(said<finish_release>(), 0U);

    at(5ms);

    answer(only<send_release>(), released());
    const auto end = only<finish_release>();
    EXPECT_EQ(end.id, id);
    EXPECT_EQ(end.outcome, release_outcome::released);
}

TEST_F(lock_table_release, gone_after_an_unanswered_release_is_released) {
    const auto id = hold();
    release(id);
    answer(only<send_release>(), not_released(errc::outcome_unknown));
    at(5ms);

    answer(only<send_release>(), nothing_to_release());

    EXPECT_EQ(only<finish_release>().outcome, release_outcome::released);
}

TEST_F(lock_table_release, refused_release_is_unknown_and_says_why) {
    const auto id = hold();
    release(id);

    answer(only<send_release>(), not_released(errc::unauthorised));

    const auto end = only<finish_release>();
    EXPECT_EQ(end.outcome, release_outcome::unknown);
    EXPECT_EQ(end.error.code, errc::unauthorised);
    at(5ms);
    confirm_releases();
}

/// The store may accept later what it refuses now. Without another try the lock would stay until its
/// ttl ends.
TEST_F(lock_table_release, refused_release_is_tried_again_behind_the_callers_back) {
    for (const auto why : {errc::store_error, errc::unauthorised}) {
        const auto id = hold();
        release(id);
        const auto first = only<send_release>();
        answer(first, not_released(why));
        EXPECT_EQ(only<finish_release>().error.code, why);
        at(now - start + 5ms);
        answer(only<send_release>(), not_released(why));
        at(now - start + 10ms);

        const auto again = only<send_release>();
        EXPECT_EQ(again.on_behalf_of, 0U);
        EXPECT_EQ(again.request.owner, first.request.owner);
        answer(again, released());
        EXPECT_EQ(said<finish_release>(), 0U) << "its caller was told once";
    }
}

TEST_F(lock_table_release, release_refused_for_good_is_not_tried_again) {
    const auto id = hold();
    release(id);

    answer(only<send_release>(), not_released(errc::wrong_kind));

    EXPECT_EQ(only<finish_release>().error.code, errc::wrong_kind);
    at(1h);
    EXPECT_TRUE(requests_nothing());
}

TEST_F(lock_table_release, threads_that_wait_contend_once_the_release_was_refused) {
    const auto id = hold();
    const auto waiting = acquire(on_terms(lease_terms(10s), exclusive()));
    release(id);
    const auto back = only<send_release>();

    answer(back, not_released(errc::store_error));

    const auto asked = only<send_acquire>();
    EXPECT_EQ(asked.on_behalf_of, waiting);
    EXPECT_NE(asked.request.owner, back.request.owner);
    answer(asked, busy());
    at(5ms);
    answer(only<send_release>(), released());
    hint();
    answer(only<send_acquire>(), granted(8));
    let_go(waiting);
}

TEST_F(lock_table_release, request_does_not_outlast_the_release_timeout) {
    auto how = lease_terms();
    how.release_timeout = 300ms;
    const auto id = hold(on_terms(how, exclusive()));
    at(1s);

    release(id);

    const auto back = only<send_release>();
    EXPECT_EQ(back.deadline, script::at(1300ms));
    answer(back, released());
}

TEST_F(lock_table_release, caller_is_told_unknown_at_the_release_timeout) {
    const auto id = hold();
    release(id);
    const auto back = only<send_release>();
    at(2s - 1ns);
    EXPECT_EQ(said<finish_release>(), 0U);

    at(2s);

    const auto end = only<finish_release>();
    EXPECT_EQ(end.id, id);
    EXPECT_EQ(end.outcome, release_outcome::unknown);
    answer(back, released());
}

TEST_F(lock_table_release, caller_with_no_time_at_all_is_told_unknown_at_once) {
    auto how = lease_terms();
    how.release_timeout = 0ms;
    const auto id = hold(on_terms(how, exclusive()));

    release(id);

    EXPECT_EQ(only<finish_release>().outcome, release_outcome::unknown);
    const auto back = only<send_release>();
    EXPECT_EQ(back.on_behalf_of, 0U);
    EXPECT_GT(back.deadline, script::at(1s)) << "nobody waits for it: it has its whole time";
    answer(back, released());
}

TEST_F(lock_table_release, caller_is_told_once) {
    let_go_in_silence();
    EXPECT_EQ(all<finish_release>().size(), 1U);

    answer(unanswered, released());

    EXPECT_EQ(said<finish_release>(), 0U);
}

TEST_F(lock_table_release, cleaning_goes_on_behind_the_callers_back) {
    let_go_in_silence();
    answer(unanswered, not_released(errc::outcome_unknown));
    at(2005ms);

    const auto again = only<send_release>();
    EXPECT_EQ(again.on_behalf_of, 0U);
    EXPECT_EQ(again.request.owner, unanswered.request.owner);
    EXPECT_GT(again.deadline, script::at(4s)) << "nobody waits for it: it has its whole time";
    answer(again, nothing_to_release());
}

TEST_F(lock_table_release, cleaning_ends_when_even_a_late_renewal_would_have_run_out) {
    let_go_in_silence();
    answer(unanswered, not_released(errc::outcome_unknown));
    while (table.count().releases != 0) {
        ASSERT_LE(now, script::at(33s));  // the ttl, and the two seconds a request may be under way
        at(table.wake_at() - start);
        for (const auto& again : all<send_release>()) {
            answer(again, not_released(errc::store_unavailable));
        }
    }

    EXPECT_GE(now, script::at(32s));
}

TEST_F(lock_table_release, threads_that_wait_contend_once_the_caller_was_told_unknown) {
    const auto id = hold();
    const auto waiting = acquire();
    release(id);
    const auto back = only<send_release>();
    at(2s);

    EXPECT_EQ(only<finish_release>().outcome, release_outcome::unknown);
    const auto asked = only<send_acquire>();
    EXPECT_EQ(asked.on_behalf_of, waiting);
    EXPECT_NE(asked.request.owner, back.request.owner);
    answer(back, released());
    answer(asked, granted(8));
    let_go(waiting);
}

TEST_F(lock_table_release, newcomer_waits_for_the_release_under_way) {
    const auto id = hold();
    release(id);

    const auto newcomer = acquire();
    EXPECT_EQ(said<send_acquire>(), 0U);

    answer(only<send_release>(), released());
    answer(only<send_acquire>(), granted(8));
    EXPECT_EQ(all<finish_acquire>().back().id, newcomer);
    let_go(newcomer);
}

TEST_F(lock_table_release, the_store_is_asked_why_a_valid_lease_is_gone) {
    const auto id = hold();
    const auto next = acquire();
    release(id);

    answer(only<send_release>(), nothing_to_release());

    EXPECT_EQ(said<finish_release>(), 0U);
    answer(only<send_acquire>(), granted(9));
    answer(only<send_renew>(), gone({errc::revoked, "by somebody"}));
    const auto end = only<finish_release>();
    EXPECT_EQ(end.id, id);
    EXPECT_EQ(end.outcome, release_outcome::already_lost);
    EXPECT_EQ(end.error.code, errc::revoked);
    let_go(next);
}

TEST_F(lock_table_release, a_release_does_not_ask_for_the_reason_that_came_with_the_answer) {
    const auto id = hold();
    release(id);

    auto answered = nothing_to_release();
    answered.error = {errc::revoked, "by somebody"};
    answer(only<send_release>(), answered);

    EXPECT_EQ(said<send_renew>(), 0U);
    EXPECT_EQ(only<finish_release>().error.code, errc::revoked);
}

TEST_F(lock_table_release, a_release_that_asks_for_a_reason_ends_at_shutdown) {
    const auto id = hold();
    release(id);
    answer(only<send_release>(), nothing_to_release());
    const auto why = only<send_renew>();

    table.finish_release_calls(now);
    at(1ms);

    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
    answer(why, gone());
}

}  // namespace
