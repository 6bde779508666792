#include <core/table_script.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::errc;
using holdfast::release_outcome;

table_settings overtaken_at_most(std::uint32_t times) {
    table_settings settings;
    settings.handover.overtakings = times;
    return settings;
}

/// Holds are fleeting here unless time goes on.
class lock_table_overtaking : public table_conversation {
protected:
    lock_table_overtaking() : table_conversation{overtaken_at_most(2)} {}

    /// The first has let go of it, and the second has been told.
    line offered_line() {
        const auto who = form_line();
        release(who.first);
        EXPECT_EQ(only<finish_release>().outcome, release_outcome::released);
        EXPECT_EQ(only<offer_turn>().id, who.second);
        EXPECT_EQ(said<finish_acquire>(), 0U);
        return who;
    }
};

TEST_F(lock_table_overtaking, front_that_is_awake_in_time_takes_its_turn_without_the_store) {
    const auto who = offered_line();

    take_turn(who.second);

    const auto next = only<finish_acquire>();
    EXPECT_EQ(next.id, who.second);
    EXPECT_EQ(next.token.value, 11U);
    EXPECT_TRUE(requests_nothing());
    cancel(who.third);
    let_go(who.second);
}

TEST_F(lock_table_overtaking, thread_that_asks_before_the_front_is_awake_has_it_first) {
    const auto who = offered_line();

    const auto quick = acquire();

    const auto next = only<finish_acquire>();
    EXPECT_EQ(next.id, quick);
    EXPECT_EQ(next.token.value, 11U);
    EXPECT_TRUE(requests_nothing());

    take_turn(who.second);
    EXPECT_EQ(said<finish_acquire>(), 0U) << "it is taken";
    release(quick);
    EXPECT_EQ(only<offer_turn>().id, who.second);
    take_turn(who.second);
    EXPECT_EQ(only<finish_acquire>().token.value, 12U);
    cancel(who.third);
    (void)all<finish_release>();
    let_go(who.second);
}

TEST_F(lock_table_overtaking, thread_that_asks_once_overtakes_nobody) {
    const auto who = offered_line();

    acquire(once(exclusive()));

    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy);
    cancel(who.second);
    cancel(who.third);
    confirm_releases();
}

TEST_F(lock_table_overtaking, nobody_is_overtaken_more_often_than_the_limit) {
    const auto who = offered_line();
    release(acquire());
    (void)all<offer_turn>();
    (void)all<finish_acquire>();

    release(acquire());

    EXPECT_EQ(said<offer_turn>(), 0U);
    const auto grants = all<finish_acquire>();
    ASSERT_EQ(grants.size(), 2U);
    EXPECT_EQ(grants[1].id, who.second) << "given to it while it sleeps";
    EXPECT_EQ(grants[1].token.value, 13U);

    release(who.second);
    EXPECT_EQ(only<offer_turn>().id, who.third) << "the next may be overtaken as often again";
    take_turn(who.third);
    (void)all<finish_release>();
    let_go(who.third);
}

TEST_F(lock_table_overtaking, hold_that_was_not_fleeting_is_handed_straight_to_the_front) {
    const auto who = form_line();
    at(20us);

    release(who.first);

    EXPECT_EQ(said<offer_turn>(), 0U);
    EXPECT_EQ(only<finish_acquire>().id, who.second);
    cancel(who.third);
    (void)all<finish_release>();
    let_go(who.second);
}

TEST_F(lock_table_overtaking, turn_is_for_the_front_alone) {
    const auto who = offered_line();

    take_turn(who.third);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    take_turn(who.second);
    EXPECT_EQ(only<finish_acquire>().id, who.second);
    cancel(who.third);
    let_go(who.second);
}

TEST_F(lock_table_overtaking, thread_that_wants_other_terms_does_not_overtake) {
    const auto who = offered_line();

    const auto other = acquire(on_terms(lease_terms(60s), exclusive()));

    EXPECT_EQ(said<finish_acquire>(), 0U);
    take_turn(who.second);
    EXPECT_EQ(only<finish_acquire>().id, who.second);
    cancel(who.third);
    cancel(other);
    let_go(who.second);
}

TEST_F(lock_table_overtaking, front_that_leaves_passes_the_offer_on) {
    const auto who = offered_line();

    cancel(who.second);

    EXPECT_EQ(only<offer_turn>().id, who.third);
    (void)all<finish_acquire>();
    take_turn(who.third);
    EXPECT_EQ(only<finish_acquire>().id, who.third);
    let_go(who.third);
}

TEST_F(lock_table_overtaking, when_all_have_left_it_goes_back_to_the_store) {
    const auto who = offered_line();
    cancel(who.second);
    EXPECT_TRUE(requests_nothing());

    cancel(who.third);

    answer(only<send_release>(), released());
    EXPECT_EQ(said<finish_release>(), 0U) << "its last holder has its answer";
}

TEST_F(lock_table_overtaking, turn_that_is_taken_too_late_for_the_tenure_goes_through_the_store) {
    const auto who = offered_line();
    at(50ms);

    take_turn(who.second);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    answer(only<send_release>(), released());
    answer(only<send_acquire>(), granted(20));
    EXPECT_EQ(only<finish_acquire>().id, who.second);
    cancel(who.third);
    let_go(who.second);
}

TEST_F(lock_table_overtaking, store_that_does_not_confirm_does_not_keep_the_queue_waiting) {
    const auto who = offered_line();
    at(50ms);
    take_turn(who.second);

    answer(only<send_release>(), not_released(errc::store_unavailable));

    answer(only<send_acquire>(), granted(20));
    EXPECT_EQ(only<finish_acquire>().id, who.second);
    cancel(who.third);
    at(200ms);
    confirm_releases();
    let_go(who.second);
}

TEST_F(lock_table_overtaking, lease_that_is_lost_while_nobody_has_it_is_contended_for_anew) {
    const auto who = offered_line();
    at(10s);
    answer(only<send_renew>(), gone());

    EXPECT_EQ(said<tell_loss>(), 0U) << "there is nobody to tell";
    answer(only<send_release>(), nothing_to_release());
    answer(only<send_acquire>(), granted(20));
    EXPECT_EQ(only<finish_acquire>().id, who.second);
    cancel(who.third);
    let_go(who.second);
}

TEST_F(lock_table_overtaking, lease_that_nobody_has_is_renewed_without_telling_anybody) {
    const auto who = offered_line();
    at(10s);
    answer(only<send_renew>(), renewed());

    EXPECT_EQ(said<set_validity>(), 0U);
    cancel(who.second);
    cancel(who.third);
    confirm_releases();
}

TEST_F(lock_table_overtaking, second_release_by_the_last_holder_changes_nothing) {
    const auto who = offered_line();

    release(who.first);

    EXPECT_EQ(only<finish_release>().outcome, release_outcome::already_lost);
    take_turn(who.second);
    EXPECT_EQ(only<finish_acquire>().id, who.second);
    cancel(who.third);
    let_go(who.second);
}

TEST_F(lock_table_overtaking, shutdown_gives_back_what_nobody_has) {
    (void)offered_line();

    shut_down();

    EXPECT_EQ(said<tell_loss>(), 0U);
    EXPECT_EQ(all<finish_acquire>().size(), 2U);
    EXPECT_EQ(table.unreleased().size(), 1U);
    confirm_releases();
    EXPECT_TRUE(table.unreleased().empty());
}

/// It was offered before the doubt arose.
TEST_F(lock_table_overtaking, lease_in_doubt_is_taken_by_nobody) {
    const auto who = offered_line();
    holds_may_have_changed();
    const auto quick = acquire();
    EXPECT_EQ(said<finish_acquire>(), 0U);

    take_turn(who.second);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    const auto back = only<send_release>();
    answer(only<send_renew>(), gone({errc::revoked, "by alice"}));
    cancel(who.second);
    cancel(who.third);
    cancel(quick);
    answer(back, nothing_to_release());
}

}  // namespace
