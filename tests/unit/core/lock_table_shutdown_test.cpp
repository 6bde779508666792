#include <core/table_script.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::errc;
using holdfast::release_outcome;

class lock_table_shutdown : public table_conversation {};

TEST_F(lock_table_shutdown, ends_all_waiting) {
    const auto waiting = acquire();
    answer(only<send_acquire>(), busy());
    const auto queued = acquire();
    const auto reader = acquire(shared("other"));
    answer(only<send_acquire>(), busy());

    shut_down();

    const auto ends = all<finish_acquire>();
    ASSERT_EQ(ends.size(), 3U);
    EXPECT_EQ(ends[0].id, waiting);
    EXPECT_EQ(ends[1].id, queued);
    EXPECT_EQ(ends[2].id, reader);
    EXPECT_EQ(ends[0].error.code, errc::shut_down);
    EXPECT_FALSE(table.wants_watch("stock"));
    EXPECT_TRUE(requests_nothing());
}

TEST_F(lock_table_shutdown, tells_holders_and_gives_back_what_they_hold) {
    const auto id = hold();

    shut_down();

    const auto loss = only<tell_loss>();
    EXPECT_EQ(loss.id, id);
    EXPECT_EQ(loss.why.code, errc::shut_down);
    answer(only<send_release>(), released());
    EXPECT_TRUE(table.unreleased().empty());
    at(1h);
    release(id);
    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
}

TEST_F(lock_table_shutdown, queue_behind_a_holder_gets_nothing_any_more) {
    const auto who = form_line();

    shut_down();
    answer(only<send_release>(), released());

    EXPECT_EQ(said<send_acquire>(), 0U);
    EXPECT_EQ(all<finish_acquire>().size(), 2U);
    at(1h);
    release(who.first);
}

TEST_F(lock_table_shutdown, grant_that_comes_afterwards_is_given_back) {
    acquire();
    const auto asked = only<send_acquire>();
    shut_down();
    EXPECT_EQ(only<finish_acquire>().error.code, errc::shut_down);

    answer(asked, granted(7));

    answer(only<send_release>(), released());
}

TEST_F(lock_table_shutdown, release_under_way_does_not_start_another_contest) {
    const auto id = hold();
    acquire();
    release(id);
    shut_down();

    answer(only<send_release>(), released());

    EXPECT_EQ(only<finish_release>().outcome, release_outcome::released);
    EXPECT_EQ(said<send_acquire>(), 0U);
}

TEST_F(lock_table_shutdown, call_afterwards_fails_at_once) {
    shut_down();

    const auto id = acquire();

    const auto end = only<finish_acquire>();
    EXPECT_EQ(end.id, id);
    EXPECT_EQ(end.error.code, errc::shut_down);
    EXPECT_TRUE(requests_nothing());
}

TEST_F(lock_table_shutdown, second_time_does_nothing) {
    const auto id = hold();
    shut_down();
    answer(only<send_release>(), released());
    (void)all<tell_loss>();

    shut_down();

    EXPECT_EQ(said<tell_loss>(), 0U);
    EXPECT_TRUE(requests_nothing());
    at(1h);
    release(id);
}

TEST_F(lock_table_shutdown, what_is_not_confirmed_yet_is_reported) {
    const auto id = hold(exclusive(), 42);

    shut_down();

    const auto left = table.unreleased();
    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(left[0].name, "stock");
    EXPECT_EQ(left[0].token.value, 42U);
    EXPECT_EQ(left[0].error.code, errc::outcome_unknown);
    EXPECT_NE(left[0].error.detail, "");
    answer(only<send_release>(), released());
    EXPECT_TRUE(table.unreleased().empty());
    at(1h);
    release(id);
}

TEST_F(lock_table_shutdown, what_cannot_be_confirmed_is_reported_with_its_reason) {
    const auto id = hold();
    shut_down();
    answer(only<send_release>(), not_released(errc::store_unavailable));

    ASSERT_EQ(table.unreleased().size(), 1U);
    EXPECT_EQ(table.unreleased()[0].error.code, errc::store_unavailable);

    at(5ms);
    answer(only<send_release>(), released());
    at(1h);
    release(id);
}

TEST_F(lock_table_shutdown, what_the_store_refused_stays_reported) {
    const auto id = hold();
    shut_down();

    answer(only<send_release>(), not_released(errc::wrong_kind));

    ASSERT_EQ(table.unreleased().size(), 1U);
    EXPECT_EQ(table.unreleased()[0].error.code, errc::wrong_kind);
    at(1h);
    release(id);
}

TEST_F(lock_table_shutdown, what_the_store_refuses_for_now_is_tried_again_and_reported_meanwhile) {
    const auto id = hold();
    shut_down();

    answer(only<send_release>(), not_released(errc::unauthorised));

    ASSERT_EQ(table.unreleased().size(), 1U);
    EXPECT_EQ(table.unreleased()[0].error.code, errc::unauthorised);
    at(5ms);
    answer(only<send_release>(), released());
    EXPECT_TRUE(table.unreleased().empty());
    at(1h);
    release(id);
}

TEST_F(lock_table_shutdown, release_that_a_caller_waits_for_is_reported_until_confirmed) {
    const auto id = hold(exclusive(), 42);
    release(id);
    shut_down();

    ASSERT_EQ(table.unreleased().size(), 1U);
    EXPECT_EQ(table.unreleased()[0].token.value, 42U);

    answer(only<send_release>(), released());
    EXPECT_TRUE(table.unreleased().empty());
}

TEST_F(lock_table_shutdown, caller_that_waits_for_a_release_is_told_when_the_end_has_come) {
    const auto id = hold();
    release(id);
    answer(only<send_release>(), not_released(errc::store_unavailable));
    shut_down();
    EXPECT_EQ(said<finish_release>(), 0U);

    table.finish_release_calls(now);
    at(1ms);

    const auto end = only<finish_release>();
    EXPECT_EQ(end.id, id);
    EXPECT_EQ(end.outcome, release_outcome::unknown);
    EXPECT_EQ(table.unreleased().size(), 1U) << "it is still on its way";
    at(5ms);
    answer(only<send_release>(), released());
    EXPECT_EQ(said<finish_release>(), 0U);
}

TEST_F(lock_table_shutdown, conversion_under_way_ends_with_the_lease) {
    const auto id = hold();
    convert(id, holdfast::claim_mode::shared);
    shut_down();

    answer(only<send_acquire>(), granted(7));

    EXPECT_EQ(only<finish_convert>().error.code, errc::lost);
    answer(only<send_release>(), released());
    at(1h);
    release(id);
}

}  // namespace
