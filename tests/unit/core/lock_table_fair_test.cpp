#include <core/table_script.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::errc;
using holdfast::lock_kind;

claim in_line() {
    auto what = exclusive();
    what.kind = lock_kind::fair_mutex;
    return what;
}

/// Locks for which the store keeps the line.
class lock_table_fair : public table_conversation {
protected:
    void turn_of(const holdfast::owner_id& who,
                 const std::optional<holdfast::engines::turn_grant>& granted = {}) {
        table.on_turn("stock", who, granted, now);
        at(now - start);
    }
    /// One that was told to wait; the request left at the start.
    send_acquire stand_in_line(claim what = in_line()) {
        who_waits = acquire(what);
        const auto asked = only<send_acquire>();
        answer(asked, busy());
        return asked;
    }

    waiter_id who_waits{};
    static constexpr holdfast::engines::turn_grant grant{{30}, 1, start};
};

TEST_F(lock_table_fair, one_that_is_granted_the_lock_in_line_asks_no_more) {
    const auto asked = stand_in_line();
    at(100ms);

    turn_of(asked.request.owner, grant);

    const auto got = only<finish_acquire>();
    EXPECT_EQ(got.id, who_waits);
    EXPECT_EQ(got.token.value, 30U);
    EXPECT_TRUE(requests_nothing());
    let_go(who_waits);
}

TEST_F(lock_table_fair, a_release_says_whether_others_wanted_the_lock_too) {
    const auto alone = acquire(in_line());
    answer(only<send_acquire>(), granted(29));
    release(alone);
    auto back = only<send_release>();
    EXPECT_FALSE(back.request.contended);
    answer(back, released());
    turn_of(stand_in_line().request.owner, grant);
    release(who_waits);

    back = only<send_release>();
    EXPECT_TRUE(back.request.contended);
    answer(back, released());
}

TEST_F(lock_table_fair, a_grant_in_line_counts_from_the_request_that_was_told_to_wait) {
    const auto asked = stand_in_line();
    at(100ms);

    turn_of(asked.request.owner, grant);

    const auto how = lease_terms();
    EXPECT_EQ(only<finish_acquire>().valid_until, start + how.ttl - how.margin);
    let_go(who_waits);
}

TEST_F(lock_table_fair, a_grant_in_line_that_has_lost_too_much_of_its_ttl_is_asked_for_again) {
    const auto asked = stand_in_line();
    unnoticed_at(lease_terms().ttl / 4 + 1ms);

    turn_of(asked.request.owner, grant);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    const auto again = only<send_acquire>();
    EXPECT_EQ(again.request.owner, asked.request.owner);
    answer(again, granted(30));
    EXPECT_EQ(only<finish_acquire>().token.value, 30U);
    let_go(who_waits);
}

TEST_F(lock_table_fair, a_lease_that_is_never_renewed_is_asked_for_again) {
    const auto how = fixed_terms();
    const auto asked = stand_in_line(on_terms(how, in_line()));
    at(1ms);

    turn_of(asked.request.owner, grant);

    answer(only<send_acquire>(), granted(30));
    EXPECT_EQ(only<finish_acquire>().valid_until, start + 1ms + how.ttl - how.margin);
    let_go(who_waits);
}

TEST_F(lock_table_fair, a_grant_that_refers_to_an_older_request_is_not_believed) {
    const auto asked = stand_in_line();
    at(100ms);
    turn_of(asked.request.owner);
    answer(only<send_acquire>(), busy());

    turn_of(asked.request.owner, grant);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    answer(only<send_acquire>(), granted(30));
    EXPECT_EQ(only<finish_acquire>().id, who_waits);
    let_go(who_waits);
}

TEST_F(lock_table_fair, a_grant_heard_of_while_a_request_is_under_way_waits_for_its_answer) {
    const auto asked = stand_in_line();
    turn_of(asked.request.owner);
    const auto again = only<send_acquire>();

    turn_of(asked.request.owner, grant);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    answer(again, granted(30));
    EXPECT_EQ(only<finish_acquire>().token.value, 30U);
    let_go(who_waits);
}

TEST_F(lock_table_fair, a_grant_to_one_that_gave_up_is_given_back_by_its_leaving_the_line) {
    const auto asked = stand_in_line();
    cancel(who_waits);
    const auto left = only<send_release>();
    EXPECT_EQ(left.request.owner, asked.request.owner);

    turn_of(asked.request.owner, grant);

    EXPECT_EQ(only<finish_acquire>().error.code, errc::cancelled);
    answer(left, released());
}

TEST_F(lock_table_fair, a_lease_granted_in_line_is_renewed_like_any_other) {
    const auto asked = stand_in_line();
    at(100ms);
    turn_of(asked.request.owner, grant);

    at(lease_terms().ttl / 3);

    const auto renewal = only<send_renew>();
    ASSERT_EQ(renewal.requests.size(), 1U);
    EXPECT_EQ(renewal.requests[0].owner, asked.request.owner);
    answer(renewal, renewed());
    let_go(who_waits);
}

TEST_F(lock_table_fair, every_thread_stands_in_the_store_s_line_itself) {
    const auto first = acquire(in_line());
    const auto second = acquire(in_line());

    const auto asked = all<send_acquire>();
    ASSERT_EQ(asked.size(), 2U);
    EXPECT_TRUE(asked[0].request.queue);
    EXPECT_NE(asked[0].request.owner, asked[1].request.owner);
    answer(asked[0], granted(1));
    answer(asked[1], busy());
    EXPECT_EQ(only<finish_acquire>().id, first);
    cancel(second);
    confirm_releases();
    let_go(first);
}

TEST_F(lock_table_fair, a_hold_is_never_handed_over_behind_the_line_s_back) {
    const auto first = hold(in_line());
    const auto second = acquire(in_line());
    const auto waits = only<send_acquire>();
    answer(waits, busy());

    let_go(first);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    turn_of(waits.request.owner);
    answer(only<send_acquire>(), granted(8));
    EXPECT_EQ(only<finish_acquire>().id, second);
    let_go(second);
}

TEST_F(lock_table_fair, a_turn_concerns_only_the_one_whose_it_is) {
    const auto first = acquire(in_line());
    const auto second = acquire(in_line());
    const auto asked = all<send_acquire>();
    answer(asked[0], busy());
    answer(asked[1], busy());

    turn_of(asked[1].request.owner);

    const auto again = only<send_acquire>();
    EXPECT_EQ(again.request.owner, asked[1].request.owner);
    answer(again, busy());
    cancel(first);
    confirm_releases();
    cancel(second);
    confirm_releases();
}

TEST_F(lock_table_fair, it_needs_no_watch) {
    const auto waiting = acquire(in_line());
    answer(only<send_acquire>(), busy());
    EXPECT_EQ(said<update_watch>(), 0U);
    cancel(waiting);
    confirm_releases();
}

TEST_F(lock_table_fair, one_who_gives_up_leaves_the_line) {
    const auto waiting = acquire(in_line());
    const auto asked = only<send_acquire>();
    answer(asked, busy());

    cancel(waiting);

    const auto left = only<send_release>();
    EXPECT_EQ(left.request.owner, asked.request.owner);
    EXPECT_EQ(left.request.kind, lock_kind::fair_mutex);
    answer(left, released());
}

TEST_F(lock_table_fair, one_who_asks_once_neither_enters_the_line_nor_has_to_leave_it) {
    acquire(once(in_line()));
    const auto asked = only<send_acquire>();
    EXPECT_FALSE(asked.request.queue);

    answer(asked, busy());

    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy);
    EXPECT_TRUE(requests_nothing());
}

}  // namespace
