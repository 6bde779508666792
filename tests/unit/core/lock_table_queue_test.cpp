#include <core/table_script.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::errc;
using holdfast::release_outcome;

table_settings limited_to(std::uint32_t count) {
    table_settings settings;
    settings.handover.count = count;
    return settings;
}

class lock_table_queue : public table_conversation {};

class lock_table_queue_of_one_hand_over : public table_conversation {
protected:
    lock_table_queue_of_one_hand_over() : table_conversation{limited_to(1)} {}
};

TEST_F(lock_table_queue, second_thread_queues_without_a_request) {
    const auto holder = hold();

    const auto waiting = acquire();

    EXPECT_TRUE(requests_nothing());
    EXPECT_EQ(said<finish_acquire>(), 0U);
    cancel(waiting);
    let_go(holder);
}

TEST_F(lock_table_queue, second_thread_joins_the_request_under_way) {
    const auto first = acquire();
    const auto second = acquire();

    answer(only<send_acquire>(), granted(7));

    EXPECT_EQ(only<finish_acquire>().id, first);
    cancel(second);
    let_go(first);
}

TEST_F(lock_table_queue, refusal_of_one_is_not_for_those_who_want_other_terms) {
    const auto first = acquire(on_terms(lease_terms(10s), exclusive()));
    const auto second = acquire();

    answer(only<send_acquire>(), not_acquired(errc::guarantee_not_met));

    EXPECT_EQ(only<finish_acquire>().id, first);
    const auto anew = only<send_acquire>();
    EXPECT_EQ(anew.on_behalf_of, second);
    EXPECT_EQ(anew.request.ttl, 30s);
    answer(anew, granted(7));
    let_go(second);
}

TEST_F(lock_table_queue, patience_of_one_is_not_that_of_those_who_want_other_terms) {
    const auto first = acquire(once(on_terms(lease_terms(10s), exclusive())));
    const auto second = acquire();

    answer(only<send_acquire>(), not_acquired(errc::outcome_unknown));

    EXPECT_EQ(only<finish_acquire>().id, first);
    answer(only<send_release>(), nothing_to_release());
    const auto anew = only<send_acquire>();
    EXPECT_EQ(anew.request.ttl, 30s);
    answer(anew, granted(7));
    let_go(second);
}

TEST_F(lock_table_queue, next_in_line_asks_on_its_own_terms_when_the_front_leaves) {
    const auto first = acquire(on_terms(lease_terms(10s), exclusive()));
    answer(only<send_acquire>(), busy());
    const auto second = acquire();

    cancel(first);

    const auto anew = only<send_acquire>();
    EXPECT_EQ(anew.on_behalf_of, second);
    EXPECT_EQ(anew.request.ttl, 30s);
    answer(anew, granted(7));
    let_go(second);
}

TEST_F(lock_table_queue, lock_of_another_kind_is_not_handed_over) {
    auto writer = exclusive();
    writer.kind = holdfast::lock_kind::shared_mutex;
    const auto who = form_line(exclusive(), writer);

    release(who.first);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    answer(only<send_release>(), released());
    EXPECT_EQ(only<finish_release>().id, who.first);
    const auto anew = only<send_acquire>();
    EXPECT_EQ(anew.request.kind, holdfast::lock_kind::shared_mutex);
    answer(anew, not_acquired(errc::wrong_kind));
    EXPECT_EQ(all<finish_acquire>().size(), 2U);
}

TEST_F(lock_table_queue, hand_over_gives_a_larger_token_and_asks_nothing_of_the_store) {
    const auto who = form_line();

    release(who.first);

    EXPECT_EQ(only<finish_release>().outcome, release_outcome::released);
    const auto next = only<finish_acquire>();
    EXPECT_EQ(next.id, who.second);
    EXPECT_EQ(next.token.value, 11U);
    EXPECT_TRUE(requests_nothing());

    release(who.second);
    EXPECT_EQ(only<finish_acquire>().token.value, 12U);
    EXPECT_EQ(only<finish_release>().id, who.second);
    let_go(who.third);
}

TEST_F(lock_table_queue, hand_over_goes_to_whoever_waits_longest) {
    const auto who = form_line();
    const auto fourth = acquire();

    release(who.first);
    EXPECT_EQ(only<finish_acquire>().id, who.second);
    release(who.second);
    EXPECT_EQ(only<finish_acquire>().id, who.third);
    release(who.third);
    EXPECT_EQ(only<finish_acquire>().id, fourth);

    let_go(fourth);
}

TEST_F(lock_table_queue, handed_over_lease_is_as_valid_as_the_tenure_it_belongs_to) {
    const auto who = form_line();
    at(20ms);

    release(who.first);

    EXPECT_EQ(only<finish_acquire>().valid_until, script::at(29'500ms));
    cancel(who.third);
    let_go(who.second);
}

TEST_F(lock_table_queue, handed_over_lease_keeps_the_owner_that_the_store_knows) {
    const auto who = form_line();
    release(who.first);
    const auto owner_of_second = only<finish_acquire>().owner;
    cancel(who.third);
    (void)all<finish_release>();

    release(who.second);

    const auto back = only<send_release>();
    EXPECT_EQ(back.request.owner, owner_of_second);
    answer(back, released());
}

TEST_F(lock_table_queue, exhausted_block_goes_back_to_the_store) {
    const auto first = hold();
    const auto second = acquire();

    release(first);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    EXPECT_EQ(said<send_acquire>(), 0U) << "the queue waits for the release";
    answer(only<send_release>(), released());
    answer(only<send_acquire>(), granted(8));
    EXPECT_EQ(only<finish_acquire>().id, second);
    let_go(second);
}

TEST_F(lock_table_queue, queue_asks_for_enough_tokens_to_serve_those_who_wait) {
    const auto first = hold();
    const auto second = acquire();
    const auto third = acquire();
    release(first);
    answer(only<send_release>(), released());

    const auto asked = only<send_acquire>();
    EXPECT_EQ(asked.on_behalf_of, second);
    EXPECT_EQ(asked.request.token_count, 3U);

    answer(asked, granted(8, 3));
    (void)all<finish_release>();
    release(second);
    EXPECT_EQ(all<finish_acquire>().back().token.value, 9U);
    let_go(third);
}

TEST_F(lock_table_queue, store_that_gives_fewer_tokens_than_asked_is_taken_at_its_word) {
    const auto first = acquire();
    answer(only<send_acquire>(), busy());
    const auto second = acquire();
    hint();
    const auto asked = only<send_acquire>();
    EXPECT_EQ(asked.request.token_count, 3U);
    answer(asked, granted(10, 1));
    EXPECT_EQ(only<finish_acquire>().id, first);

    release(first);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    cancel(second);
    answer(only<send_release>(), released());
}

TEST_F(lock_table_queue_of_one_hand_over, limit_of_count_sends_the_lock_back_to_the_store) {
    const auto who = form_line();
    release(who.first);
    EXPECT_EQ(only<finish_acquire>().id, who.second);
    EXPECT_TRUE(requests_nothing());

    release(who.second);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    answer(only<send_release>(), released());
    answer(only<send_acquire>(), granted(20));
    EXPECT_EQ(only<finish_acquire>().id, who.third);
    let_go(who.third);
}

TEST_F(lock_table_queue_of_one_hand_over, courtesy_lets_other_processes_go_first) {
    const auto who = form_line();
    release(who.first);
    release(who.second);
    at(10ms);

    answer(only<send_release>(), released(2));

    hint();
    at(11ms - 1ns);
    EXPECT_EQ(said<send_acquire>(), 0U);
    at(12ms);
    answer(only<send_acquire>(), granted(20));
    let_go(who.third);
}

TEST_F(lock_table_queue_of_one_hand_over, nobody_else_waiting_means_no_courtesy) {
    const auto who = form_line();
    release(who.first);
    release(who.second);

    answer(only<send_release>(), released(0));

    answer(only<send_acquire>(), granted(20));
    let_go(who.third);
}

TEST_F(lock_table_queue, limit_of_time_sends_the_lock_back_to_the_store) {
    const auto who = form_line();
    at(50ms);

    release(who.first);

    EXPECT_EQ(all<finish_acquire>().size(), 0U);
    answer(only<send_release>(), released());
    answer(only<send_acquire>(), granted(20));
    EXPECT_EQ(only<finish_acquire>().id, who.second);
    cancel(who.third);
    let_go(who.second);
}

TEST_F(lock_table_queue, lease_on_other_terms_is_not_handed_over) {
    const auto who = form_line(exclusive(), on_terms(lease_terms(60s), exclusive()));

    release(who.first);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    answer(only<send_release>(), released());
    const auto asked = only<send_acquire>();
    EXPECT_EQ(asked.request.ttl, 60s);
    answer(asked, granted(20));
    EXPECT_EQ(only<finish_acquire>().id, who.second);
    cancel(who.third);
    let_go(who.second);
}

TEST_F(lock_table_queue,
       grant_on_the_terms_of_one_who_left_is_exchanged_for_one_on_the_terms_of_the_next) {
    const auto first = acquire();
    const auto asked = only<send_acquire>();
    const auto second = acquire(on_terms(lease_terms(60s), exclusive()));
    cancel(first);
    (void)all<finish_acquire>();

    answer(asked, granted(7));

    EXPECT_EQ(said<finish_acquire>(), 0U);
    const auto back = only<send_release>();
    const auto again = only<send_acquire>();
    EXPECT_EQ(back.request.owner, asked.request.owner);
    EXPECT_NE(again.request.owner, asked.request.owner);
    EXPECT_EQ(again.request.ttl, 60s);
    answer(back, released());
    answer(again, granted(8));
    EXPECT_EQ(only<finish_acquire>().id, second);
    let_go(second);
}

TEST_F(lock_table_queue, lease_near_its_end_is_not_handed_over) {
    const auto short_lived = on_terms(lease_terms(60ms), exclusive());
    const auto who = form_line(short_lived, short_lived);
    at(20ms);
    answer(only<send_renew>(), not_renewed(errc::store_unavailable));
    at(40ms);  // 19 ms are left, less than a third of the ttl

    release(who.first);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    answer(only<send_release>(), released());
    answer(only<send_acquire>(), granted(20));
    EXPECT_EQ(only<finish_acquire>().id, who.second);
    cancel(who.third);
    let_go(who.second);
    answer(only<send_renew>(), gone());
}

TEST_F(lock_table_queue, lock_that_is_to_linger_is_not_handed_over) {
    const auto who = form_line();

    release(who.first, 5min);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    const auto back = only<send_release>();
    EXPECT_EQ(back.request.linger, 5min);
    cancel(who.second);
    cancel(who.third);
    answer(back, released());
}

TEST_F(lock_table_queue, thread_that_lets_go_and_comes_back_queues_behind_those_who_wait) {
    const auto who = form_line();
    release(who.first);
    const auto again = acquire();

    release(who.second);
    release(who.third);

    const auto grants = all<finish_acquire>();
    ASSERT_EQ(grants.size(), 3U);
    EXPECT_EQ(grants[2].id, again);
    EXPECT_EQ(grants[2].token.value, 13U);
    let_go(again);
}

}  // namespace
