#include <core/table_script.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::errc;

class lock_table_waiting : public table_conversation {};

TEST_F(lock_table_waiting, name_is_watched_only_while_somebody_waits) {
    const auto id = acquire();
    EXPECT_FALSE(table.wants_watch("stock"));

    answer(only<send_acquire>(), busy());
    EXPECT_EQ(only<update_watch>().name, "stock");
    EXPECT_TRUE(table.wants_watch("stock"));

    hint();
    answer(only<send_acquire>(), granted(7));
    EXPECT_EQ(only<update_watch>().name, "stock");
    EXPECT_FALSE(table.wants_watch("stock"));
    let_go(id);
}

TEST_F(lock_table_waiting, watch_is_kept_while_the_queue_is_not_empty) {
    const auto who = form_line();
    EXPECT_EQ(said<update_watch>(), 1U);
    EXPECT_TRUE(table.wants_watch("stock"));

    release(who.first);
    EXPECT_TRUE(table.wants_watch("stock"));
    release(who.second);

    EXPECT_FALSE(table.wants_watch("stock"));
    EXPECT_EQ(said<update_watch>(), 2U);
    let_go(who.third);
}

TEST_F(lock_table_waiting, queue_behind_a_thread_of_this_process_needs_no_watch) {
    const auto holder = hold();
    const auto waiting = acquire();

    EXPECT_FALSE(table.wants_watch("stock"));

    cancel(waiting);
    let_go(holder);
}

TEST_F(lock_table_waiting, lock_is_asked_for_again_once_its_watch_is_in_place) {
    const auto id = acquire();
    answer(only<send_acquire>(), busy());

    watch_active();

    answer(only<send_acquire>(), granted(7));
    let_go(id);
}

TEST_F(lock_table_waiting, hint_asks_again_at_once) {
    const auto id = acquire();
    answer(only<send_acquire>(), busy());

    hint();

    answer(only<send_acquire>(), granted(7));
    let_go(id);
}

TEST_F(lock_table_waiting, hint_during_a_request_asks_again_after_busy) {
    const auto id = acquire();
    hint();
    EXPECT_EQ(said<send_acquire>(), 1U);

    answer(only<send_acquire>(), busy());

    answer(only<send_acquire>(), granted(7));
    let_go(id);
}

TEST_F(lock_table_waiting, hint_about_another_name_changes_nothing) {
    const auto id = acquire();
    answer(only<send_acquire>(), busy());

    hint("another");

    EXPECT_TRUE(requests_nothing());
    cancel(id);
}

TEST_F(lock_table_waiting, lost_notification_is_made_up_for_by_the_recheck) {
    const auto id = acquire();
    answer(only<send_acquire>(), busy());

    at(1s - 1ns);
    EXPECT_TRUE(requests_nothing());
    at(1250ms);

    answer(only<send_acquire>(), granted(7));
    let_go(id);
}

TEST_F(lock_table_waiting, same_owner_asks_the_whole_way) {
    const auto id = acquire();
    const auto first = only<send_acquire>();
    answer(first, busy());
    hint();
    const auto second = only<send_acquire>();

    EXPECT_EQ(second.request.owner, first.request.owner);

    answer(second, granted(7));
    let_go(id);
}

TEST_F(lock_table_waiting, front_that_gives_up_passes_its_contest_on_to_the_next) {
    const auto front = acquire();
    const auto next = acquire();
    answer(only<send_acquire>(), busy());

    cancel(front);

    const auto end = only<finish_acquire>();
    EXPECT_EQ(end.id, front);
    EXPECT_EQ(end.error.code, errc::cancelled);
    EXPECT_TRUE(requests_nothing());
    hint();
    const auto again = only<send_acquire>();
    EXPECT_EQ(again.on_behalf_of, next);
    answer(again, granted(7));
    EXPECT_EQ(only<finish_acquire>().id, next);
    let_go(next);
}

TEST_F(lock_table_waiting, grant_on_its_way_to_a_front_that_gave_up_goes_to_the_next) {
    const auto front = acquire();
    const auto next = acquire();
    cancel(front);
    EXPECT_EQ(only<finish_acquire>().id, front);

    answer(only<send_acquire>(), granted(7));

    EXPECT_EQ(only<finish_acquire>().id, next);
    let_go(next);
}

TEST_F(lock_table_waiting, one_who_gave_up_in_the_middle_is_passed_over) {
    const auto who = form_line();
    cancel(who.second);
    EXPECT_EQ(only<finish_acquire>().id, who.second);

    release(who.first);

    EXPECT_EQ(only<finish_acquire>().id, who.third);
    let_go(who.third);
}

TEST_F(lock_table_waiting, grant_that_nobody_waits_for_any_more_is_given_back) {
    const auto id = acquire();
    const auto asked = only<send_acquire>();
    cancel(id);
    EXPECT_EQ(only<finish_acquire>().error.code, errc::cancelled);
    EXPECT_EQ(said<send_release>(), 0U);

    answer(asked, granted(7));

    EXPECT_EQ(said<finish_acquire>(), 0U);
    const auto back = only<send_release>();
    EXPECT_EQ(back.request.owner, asked.request.owner);
    EXPECT_EQ(back.on_behalf_of, 0U);
    answer(back, released());
}

TEST_F(lock_table_waiting, busy_that_nobody_waits_for_any_more_ends_the_contest) {
    const auto id = acquire();
    cancel(id);

    answer(only<send_acquire>(), busy());

    EXPECT_TRUE(requests_nothing());
}

TEST_F(lock_table_waiting, unknown_outcome_that_nobody_waits_for_any_more_is_cleaned_up) {
    const auto id = acquire();
    cancel(id);

    answer(only<send_acquire>(), not_acquired(errc::outcome_unknown));

    answer(only<send_release>(), nothing_to_release());
}

TEST_F(lock_table_waiting, giving_up_after_an_unknown_outcome_cleans_up) {
    const auto id = acquire();
    answer(only<send_acquire>(), not_acquired(errc::outcome_unknown));

    cancel(id);

    answer(only<send_release>(), released());
}

TEST_F(lock_table_waiting, giving_up_while_waiting_asks_nothing_of_the_store) {
    const auto id = acquire();
    answer(only<send_acquire>(), busy());

    cancel(id);

    EXPECT_EQ(only<finish_acquire>().error.code, errc::cancelled);
    EXPECT_TRUE(requests_nothing());
}

TEST_F(lock_table_waiting, giving_up_what_was_granted_has_no_effect) {
    const auto id = hold();

    cancel(id);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    let_go(id);
}

TEST_F(lock_table_waiting, newcomer_joins_the_request_that_another_left_behind) {
    const auto gone_away = acquire();
    cancel(gone_away);
    const auto newcomer = acquire();
    EXPECT_EQ(only<finish_acquire>().id, gone_away);

    answer(only<send_acquire>(), granted(7));

    EXPECT_EQ(only<finish_acquire>().id, newcomer);
    let_go(newcomer);
}

TEST_F(lock_table_waiting, deadline_passes_while_somebody_else_holds_it) {
    acquire(until(script::at(100ms), exclusive()));
    answer(only<send_acquire>(), busy());

    at(100ms - 1ns);
    EXPECT_EQ(said<finish_acquire>(), 0U);
    at(100ms);

    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy);
}

TEST_F(lock_table_waiting, deadline_passes_while_another_thread_holds_it) {
    const auto holder = hold();
    acquire(until(script::at(100ms), exclusive()));

    at(100ms);

    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy);
    let_go(holder);
}

TEST_F(lock_table_waiting, deadline_passes_while_the_store_cannot_be_reached) {
    acquire(until(script::at(100ms), exclusive()));
    while (said<finish_acquire>() == 0) {
        ASSERT_LE(now, script::at(100ms));
        answer(only<send_acquire>(), not_acquired(errc::store_unavailable));
        at(std::min(table.wake_at(), script::at(100ms)) - start);
    }

    EXPECT_EQ(only<finish_acquire>().error.code, errc::store_unavailable);
    EXPECT_EQ(now, script::at(100ms));
    EXPECT_EQ(said<send_release>(), 0U);
}

TEST_F(lock_table_waiting, a_store_has_50_ms_to_answer_one_who_asked_with_less_left) {
    acquire(until(script::at(1ms), exclusive()));
    const auto asked = only<send_acquire>();
    EXPECT_EQ(asked.deadline, script::at(50ms));

    at(49ms);
    EXPECT_EQ(said<finish_acquire>(), 0U);
    answer(asked, busy());

    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy);
}

TEST_F(lock_table_waiting, a_grant_that_comes_within_the_50_ms_counts) {
    const auto id = acquire(until(script::at(1ms), exclusive()));
    at(49ms);

    answer(only<send_acquire>(), granted(7));

    EXPECT_FALSE(only<finish_acquire>().error);
    let_go(id);
}

TEST_F(lock_table_waiting, news_that_come_after_the_deadline_do_not_make_it_ask_again) {
    acquire(until(script::at(1ms), exclusive()));
    at(2ms);
    hint();

    answer(only<send_acquire>(), busy());

    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy);
    EXPECT_TRUE(requests_nothing());
}

TEST_F(lock_table_waiting, deadline_passes_and_the_engine_says_that_no_answer_came) {
    acquire(until(script::at(100ms), exclusive()));
    at(100ms);
    EXPECT_EQ(said<finish_acquire>(), 0U);

    answer(only<send_acquire>(), not_acquired(errc::outcome_unknown));

    EXPECT_EQ(only<finish_acquire>().error.code, errc::outcome_unknown);
    answer(only<send_release>(), released());
}

TEST_F(lock_table_waiting,
       engine_that_gives_up_just_before_the_deadline_of_a_call_that_was_busy_changes_nothing) {
    acquire(until(script::at(100ms), exclusive()));
    answer(only<send_acquire>(), busy());
    hint();
    const auto asked = only<send_acquire>();
    at(100ms - 1ns);
    answer(asked, not_acquired(errc::outcome_unknown));

    at(100ms);

    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy);
    answer(only<send_release>(), released());
}

TEST_F(lock_table_waiting, deadline_passes_and_the_engine_says_nothing) {
    acquire(until(script::at(100ms), exclusive()));

    at(1100ms);

    EXPECT_EQ(only<finish_acquire>().error.code, errc::outcome_unknown);
    answer(only<send_acquire>(), granted(7));
    answer(only<send_release>(), released());
}

TEST_F(lock_table_waiting, one_for_whom_nothing_was_asked_knows_that_it_has_nothing) {
    const auto asking = acquire();
    const auto queued = acquire(until(script::at(1ms), exclusive()));

    at(1ms);

    const auto end = only<finish_acquire>();
    EXPECT_EQ(end.id, queued);
    EXPECT_EQ(end.error.code, errc::busy);
    answer(only<send_acquire>(), granted(7));
    let_go(asking);
}

TEST_F(lock_table_waiting, one_for_whom_nothing_was_asked_is_told_of_a_long_silence) {
    const auto asking = acquire();
    const auto queued = acquire(until(script::at(500ms), exclusive()));

    at(500ms);

    const auto end = only<finish_acquire>();
    EXPECT_EQ(end.id, queued);
    EXPECT_EQ(end.error.code, errc::store_unavailable);
    answer(only<send_acquire>(), granted(7));
    let_go(asking);
}

TEST_F(lock_table_waiting, what_is_unknown_to_the_one_who_asked_is_an_outage_to_the_others) {
    acquire();
    const auto queued = acquire();
    const auto asked = only<send_acquire>();
    at(10s);

    answer(asked, not_acquired(errc::outcome_unknown));

    const auto ends = all<finish_acquire>();
    ASSERT_EQ(ends.size(), 2U);
    EXPECT_EQ(ends[0].error.code, errc::outcome_unknown);
    EXPECT_EQ(ends[1].id, queued);
    EXPECT_EQ(ends[1].error.code, errc::store_unavailable);
    answer(only<send_release>(), released());
}

TEST_F(lock_table_waiting, deadline_passes_after_an_unknown_outcome) {
    acquire(until(script::at(100ms), exclusive()));
    const auto asked = only<send_acquire>();
    at(100ms - 1ns);
    answer(asked, not_acquired(errc::outcome_unknown));

    at(100ms);

    EXPECT_EQ(only<finish_acquire>().error.code, errc::outcome_unknown);
    answer(only<send_release>(), released());
}

TEST_F(lock_table_waiting, call_without_a_deadline_ends_when_its_patience_is_over) {
    acquire();
    while (said<finish_acquire>() == 0) {
        ASSERT_LE(now, script::at(11s));
        answer(only<send_acquire>(), not_acquired(errc::store_unavailable));
        if (table.wake_at() != never) {
            at(table.wake_at() - start);
        }
    }

    EXPECT_EQ(only<finish_acquire>().error.code, errc::store_unavailable);
    EXPECT_GE(now, script::at(10s));
    EXPECT_LE(now, script::at(10'500ms));
}

TEST_F(lock_table_waiting, call_with_a_deadline_goes_on_when_the_patience_of_others_is_over) {
    const auto patient = acquire(until(script::at(1h), exclusive()));
    const auto impatient = acquire();
    answer(only<send_acquire>(), not_acquired(errc::store_unavailable));
    at(1ms);
    const auto asked = only<send_acquire>();
    at(10s);

    answer(asked, not_acquired(errc::store_unavailable));

    EXPECT_EQ(only<finish_acquire>().id, impatient);
    at(11s);
    answer(only<send_acquire>(), granted(7));
    EXPECT_EQ(only<finish_acquire>().id, patient);
    let_go(patient);
}

TEST_F(lock_table_waiting, patience_starts_anew_after_every_answer) {
    const auto id = acquire();
    answer(only<send_acquire>(), not_acquired(errc::store_unavailable));
    at(1ms);
    const auto first = only<send_acquire>();
    at(9s);
    answer(first, busy());
    hint();
    const auto second = only<send_acquire>();
    at(11s);

    answer(second, not_acquired(errc::store_unavailable));

    EXPECT_EQ(said<finish_acquire>(), 0U);
    cancel(id);
}

TEST_F(lock_table_waiting, patience_that_ends_in_doubt_cleans_up) {
    acquire();
    const auto asked = only<send_acquire>();
    at(10s);

    answer(asked, not_acquired(errc::outcome_unknown));

    EXPECT_EQ(only<finish_acquire>().error.code, errc::outcome_unknown);
    answer(only<send_release>(), released());
}

}  // namespace
