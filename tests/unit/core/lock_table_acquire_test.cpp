#include <core/table_script.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::errc;
using holdfast::release_outcome;

class lock_table_acquire : public table_conversation {};

TEST_F(lock_table_acquire, uncontended_lock_costs_one_request_and_its_release_another) {
    const auto id = acquire();
    answer(only<send_acquire>(), granted(7));
    EXPECT_EQ(only<finish_acquire>().id, id);
    EXPECT_TRUE(requests_nothing());

    release(id);
    answer(only<send_release>(), released());
    EXPECT_EQ(only<finish_release>().outcome, release_outcome::released);
    EXPECT_TRUE(requests_nothing());
    EXPECT_EQ(said<update_watch>(), 0U);
}

TEST_F(lock_table_acquire, request_carries_the_claim) {
    const auto id = acquire();

    const auto asked = only<send_acquire>();
    EXPECT_EQ(asked.on_behalf_of, id);
    EXPECT_EQ(asked.request.name, "stock");
    EXPECT_EQ(asked.request.mode, holdfast::claim_mode::exclusive);
    EXPECT_EQ(asked.request.ttl, 30s);
    EXPECT_EQ(asked.request.token_count, 1U);
    EXPECT_TRUE(asked.request.owner.same_client(owner(0)));
    answer(asked, granted(7));
    let_go(id);
}

TEST_F(lock_table_acquire, grant_carries_the_owner_the_token_and_a_validity_counted_from_the_request) {
    const auto id = acquire();
    const auto asked = only<send_acquire>();
    at(3s);

    answer(asked, granted(7));

    const auto grant = only<finish_acquire>();
    EXPECT_FALSE(grant.error);
    EXPECT_EQ(grant.owner, asked.request.owner);
    EXPECT_EQ(grant.token.value, 7U);
    EXPECT_EQ(grant.valid_until, script::at(29'500ms));
    let_go(id);
}

TEST_F(lock_table_acquire, release_names_the_owner_of_the_grant) {
    const auto id = acquire();
    const auto asked = only<send_acquire>();
    answer(asked, granted(7));

    release(id);

    const auto back = only<send_release>();
    EXPECT_EQ(back.request.owner, asked.request.owner);
    EXPECT_EQ(back.request.name, "stock");
    EXPECT_EQ(back.on_behalf_of, id);
    answer(back, released());
}

TEST_F(lock_table_acquire, every_acquisition_has_an_owner_of_its_own) {
    const auto first = acquire(exclusive("one"));
    const auto asked_first = only<send_acquire>();
    const auto second = acquire(exclusive("two"));
    const auto asked_second = only<send_acquire>();

    EXPECT_NE(asked_first.request.owner, asked_second.request.owner);

    answer(asked_first, granted(1));
    answer(asked_second, granted(2));
    let_go(first);
    let_go(second);
}

TEST_F(lock_table_acquire, request_may_take_as_long_as_the_request_timeout) {
    const auto id = acquire();
    const auto asked = only<send_acquire>();

    EXPECT_EQ(asked.deadline, script::at(2s));

    answer(asked, granted(7));
    let_go(id);
}

TEST_F(lock_table_acquire, request_does_not_outlast_the_deadline_of_its_caller) {
    const auto id = acquire(until(script::at(500ms), exclusive()));
    const auto asked = only<send_acquire>();

    EXPECT_EQ(asked.deadline, script::at(500ms));

    answer(asked, granted(7));
    let_go(id);
}

TEST_F(lock_table_acquire, request_of_a_caller_in_a_hurry_still_gets_fifty_milliseconds) {
    const auto id = acquire(until(script::at(1ms), exclusive()));
    const auto asked = only<send_acquire>();

    EXPECT_EQ(asked.deadline, script::at(50ms));

    answer(asked, granted(7));
    let_go(id);
}

TEST_F(lock_table_acquire, try_of_a_taken_lock_is_busy_after_one_request) {
    const auto id = acquire(once(exclusive()));
    answer(only<send_acquire>(), busy(5s));

    const auto end = only<finish_acquire>();
    EXPECT_EQ(end.id, id);
    EXPECT_EQ(end.error.code, errc::busy);
    EXPECT_TRUE(requests_nothing());
    EXPECT_FALSE(table.wants_watch("stock"));
}

TEST_F(lock_table_acquire, try_of_a_free_lock_gets_it) {
    const auto id = hold(once(exclusive()));

    let_go(id);
}

TEST_F(lock_table_acquire, try_while_another_thread_holds_it_is_busy_without_a_request) {
    const auto holder = hold();

    acquire(once(exclusive()));

    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy);
    EXPECT_TRUE(requests_nothing());
    let_go(holder);
}

TEST_F(lock_table_acquire, try_while_another_thread_waits_is_busy_without_a_request) {
    const auto waiting = acquire();
    answer(only<send_acquire>(), busy());

    acquire(once(exclusive()));

    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy);
    EXPECT_TRUE(requests_nothing());
    cancel(waiting);
}

TEST_F(lock_table_acquire, try_that_is_busy_leaves_the_contest_to_those_who_queued_behind_it) {
    const auto trying = acquire(once(exclusive()));
    const auto asked = only<send_acquire>();
    const auto waiting = acquire();

    answer(asked, busy());

    EXPECT_EQ(only<finish_acquire>().id, trying);
    hint();
    answer(only<send_acquire>(), granted(7));
    EXPECT_EQ(only<finish_acquire>().id, waiting);
    let_go(waiting);
}

TEST_F(lock_table_acquire, try_without_an_answer_is_unknown_and_cleaned_up) {
    acquire(once(exclusive()));
    const auto asked = only<send_acquire>();

    answer(asked, not_acquired(errc::outcome_unknown));

    EXPECT_EQ(only<finish_acquire>().error.code, errc::outcome_unknown);
    const auto back = only<send_release>();
    EXPECT_EQ(back.request.owner, asked.request.owner);
    EXPECT_EQ(back.on_behalf_of, 0U);
    answer(back, nothing_to_release());
    EXPECT_EQ(said<finish_release>(), 0U);
}

TEST_F(lock_table_acquire, try_of_an_unreachable_store_fails_with_nothing_to_clean_up) {
    acquire(once(exclusive()));

    answer(only<send_acquire>(), not_acquired(errc::store_unavailable));

    EXPECT_EQ(only<finish_acquire>().error.code, errc::store_unavailable);
    EXPECT_TRUE(requests_nothing());
}

TEST_F(lock_table_acquire, refusal_fails_everybody_who_waits) {
    acquire();
    acquire(until(script::at(1h), exclusive()));

    answer(only<send_acquire>(), not_acquired(errc::unauthorised));

    const auto ends = all<finish_acquire>();
    ASSERT_EQ(ends.size(), 2U);
    EXPECT_EQ(ends[0].error.code, errc::unauthorised);
    EXPECT_EQ(ends[1].error.code, errc::unauthorised);
    EXPECT_TRUE(requests_nothing());
}

TEST_F(lock_table_acquire, refusal_after_an_unknown_outcome_is_cleaned_up) {
    acquire();
    answer(only<send_acquire>(), not_acquired(errc::outcome_unknown));
    at(10ms);

    answer(only<send_acquire>(), not_acquired(errc::unauthorised));

    EXPECT_EQ(only<finish_acquire>().error.code, errc::unauthorised);
    answer(only<send_release>(), nothing_to_release());
}

TEST_F(lock_table_acquire, grant_that_came_too_late_is_given_back_and_asked_for_anew) {
    const auto id = acquire();
    const auto late = only<send_acquire>();
    at(30s);

    answer(late, granted(7));

    EXPECT_EQ(said<finish_acquire>(), 0U);
    const auto back = only<send_release>();
    const auto again = only<send_acquire>();
    EXPECT_EQ(back.request.owner, late.request.owner);
    EXPECT_NE(again.request.owner, late.request.owner);

    answer(back, released());
    answer(again, granted(8));
    EXPECT_EQ(only<finish_acquire>().token.value, 8U);
    let_go(id);
}

TEST_F(lock_table_acquire, grant_that_came_too_late_for_somebody_who_left_is_only_given_back) {
    const auto id = acquire();
    const auto late = only<send_acquire>();
    cancel(id);
    at(30s);

    answer(late, granted(7));

    EXPECT_EQ(said<send_acquire>(), 0U);
    answer(only<send_release>(), released());
}

TEST_F(lock_table_acquire, unknown_outcome_asks_again_for_the_same_owner_and_tokens) {
    const auto id = acquire();
    const auto first = only<send_acquire>();
    const auto other = acquire();
    answer(first, not_acquired(errc::outcome_unknown));
    at(10ms);

    const auto again = only<send_acquire>();
    EXPECT_EQ(again.request.owner, first.request.owner);
    EXPECT_EQ(again.request.token_count, first.request.token_count);

    answer(again, granted(7));
    EXPECT_EQ(only<finish_acquire>().id, id);
    cancel(other);
    let_go(id);
}

TEST_F(lock_table_acquire, different_names_do_not_wait_for_each_other) {
    const auto one = hold(exclusive("one"));
    const auto two = hold(exclusive("two"));

    let_go(one);
    let_go(two);
}

TEST_F(lock_table_acquire, answer_to_an_unknown_request_is_ignored) {
    table.on_acquire_reply(4711, granted(1), now);
    table.on_release_reply(4711, released(), now);
    table.on_renew_replies(4711, {renewed()}, now);

    EXPECT_TRUE(table.take_actions().empty());
}

}  // namespace
