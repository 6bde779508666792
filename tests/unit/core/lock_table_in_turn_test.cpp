// Those who wait for permits or a share ask the store in turn, a few at a time.
#include <core/table_script.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::errc;

[[nodiscard]] table_settings at_most(std::uint32_t asking) {
    table_settings settings;
    settings.contention.most_asking = asking;
    return settings;
}

class lock_table_in_turn : public table_conversation {
protected:
    lock_table_in_turn() : table_conversation{at_most(2)} {}

    std::vector<waiter_id> wait(std::size_t count, const claim& what) {
        std::vector<waiter_id> waiters;
        while (waiters.size() < count) {
            waiters.push_back(acquire(what));
        }
        return waiters;
    }
    /// The first has asked and was told "busy", the others stand behind it.
    std::vector<waiter_id> stand(std::size_t count, const claim& what = permits(1, 5)) {
        auto waiters = wait(1, what);
        answer(only<send_acquire>(), busy());
        for (const auto one : wait(count - 1, what)) {
            waiters.push_back(one);
        }
        EXPECT_TRUE(requests_nothing());
        return waiters;
    }
    void all_leave(const std::vector<waiter_id>& waiters) {
        for (auto one = waiters.rbegin(); one != waiters.rend(); ++one) {
            cancel(*one);
        }
        for (const auto& asked : all<send_acquire>()) {
            answer(asked, busy());
        }
    }
};

TEST_F(lock_table_in_turn, only_a_few_ask_at_the_same_time_and_every_grant_lets_the_next_ask) {
    const auto waiters = wait(5, permits(1, 5));
    std::vector<hold_id> holds;
    std::size_t asked = 0;
    for (auto round = all<send_acquire>(); !round.empty(); round = all<send_acquire>()) {
        ASSERT_LE(round.size(), 2U);
        for (const auto& one : round) {
            EXPECT_EQ(one.on_behalf_of, waiters[asked++]) << "not in the order they came";
            answer(one, granted(10 + asked));
        }
    }
    EXPECT_EQ(all<finish_acquire>().size(), 5U);
    for (const auto one : waiters) {
        let_go(one);
    }
}

TEST_F(lock_table_in_turn, what_one_was_refused_the_others_do_not_ask_for) {
    const auto waiters = stand(100);
    hint("pool");
    answer(only<send_acquire>(), busy());
    EXPECT_TRUE(requests_nothing());
    all_leave(waiters);
}

TEST_F(lock_table_in_turn, a_permit_that_is_freed_costs_three_questions_however_many_wait) {
    const auto waiters = stand(100);
    hint("pool");
    answer(only<send_acquire>(), granted(10));
    const auto next = all<send_acquire>();
    ASSERT_EQ(next.size(), 2U);
    EXPECT_EQ(next[0].on_behalf_of, waiters[1]);
    answer(next[0], busy());
    answer(next[1], busy());
    EXPECT_TRUE(requests_nothing());
    all_leave({waiters.begin() + 1, waiters.end()});
    let_go(waiters[0]);
}

TEST_F(lock_table_in_turn, when_the_one_who_asked_gives_up_the_next_asks_in_its_place) {
    const auto waiters = stand(3);
    cancel(waiters[0]);
    const auto next = only<send_acquire>();
    EXPECT_EQ(next.on_behalf_of, waiters[1]);
    answer(next, busy());
    EXPECT_TRUE(table.wants_watch("pool"));
    all_leave({waiters[1], waiters[2]});
}

TEST_F(lock_table_in_turn, when_the_one_who_asks_gives_up_meanwhile_the_next_asks_after_it) {
    const auto waiters = stand(3);
    hint("pool");
    const auto asked = only<send_acquire>();
    cancel(waiters[0]);
    answer(asked, busy());
    const auto next = only<send_acquire>();
    EXPECT_EQ(next.on_behalf_of, waiters[1]);
    answer(next, granted(10));
    let_go(waiters[1]);
    all_leave({waiters[2]});
}

TEST_F(lock_table_in_turn, when_the_deadline_of_the_one_who_asked_passes_the_next_asks) {
    acquire(until(script::at(100ms), permits(1, 5)));
    answer(only<send_acquire>(), busy());
    const auto next = acquire(permits(1, 5));
    at(100ms);
    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy);
    answer(only<send_acquire>(), granted(10));
    let_go(next);
}

TEST_F(lock_table_in_turn, a_refusal_is_for_one_alone_and_the_next_asks) {
    const auto waiters = stand(2);
    hint("pool");
    answer(only<send_acquire>(), not_acquired(errc::wrong_kind));
    EXPECT_EQ(only<finish_acquire>().id, waiters[0]);
    answer(only<send_acquire>(), granted(10));
    let_go(waiters[1]);
}

TEST_F(lock_table_in_turn, the_deadline_of_one_who_never_asked_passes_too) {
    const auto waiters = stand(1);
    const auto late = acquire(until(script::at(100ms), permits(1, 5)));
    at(100ms);
    const auto end = only<finish_acquire>();
    EXPECT_EQ(end.id, late);
    EXPECT_EQ(end.error.code, errc::busy);
    all_leave(waiters);
}

TEST_F(lock_table_in_turn, while_nobody_is_answered_for_long_it_is_not_busy) {
    const auto asking = wait(2, permits(1, 5));
    acquire(until(script::at(1ms), permits(1, 5)));
    acquire(until(script::at(500ms), permits(1, 5)));
    at(1ms);
    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy) << "the store has not had its time yet";
    at(500ms);
    EXPECT_EQ(only<finish_acquire>().error.code, errc::store_unavailable)
        << "nothing was asked for it, so nothing is in doubt";
    for (const auto& asked : all<send_acquire>()) {
        answer(asked, granted(10));
    }
    for (const auto one : asking) {
        let_go(one);
    }
}

TEST_F(lock_table_in_turn, a_store_that_answers_others_is_not_unavailable) {
    auto asking = wait(2, permits(1, 5));
    const auto next = wait(1, permits(1, 5));
    acquire(until(script::at(100ms), permits(1, 5)));
    const auto asked = all<send_acquire>();
    at(50ms);
    answer(asked[0], granted(10));
    at(100ms);
    const auto ends = all<finish_acquire>();
    ASSERT_EQ(ends.size(), 2U);
    EXPECT_EQ(ends[1].error.code, errc::busy);
    answer(asked[1], granted(11));
    answer(only<send_acquire>(), granted(12));
    asking.push_back(next[0]);
    for (const auto one : asking) {
        let_go(one);
    }
}

TEST_F(lock_table_in_turn, one_who_wants_less_asks_although_more_was_refused) {
    const auto large = acquire(permits(4, 5));
    answer(only<send_acquire>(), busy());
    const auto small = acquire(permits(1, 5));
    answer(only<send_acquire>(), granted(10));
    EXPECT_EQ(only<finish_acquire>().id, small);
    let_go(small);
    all_leave({large});
    static_cast<void>(all<send_acquire>());
}

TEST_F(lock_table_in_turn, news_that_do_not_help_one_are_passed_on_to_one_who_wants_less) {
    const auto large = acquire(permits(4, 5));
    const auto small = acquire(permits(1, 5));
    for (const auto& one : all<send_acquire>()) {
        answer(one, busy());
    }
    for (const auto& again : all<send_acquire>()) {
        answer(again, busy());
    }
    hint("pool");
    const auto first = only<send_acquire>();
    EXPECT_EQ(first.on_behalf_of, large);
    answer(first, busy());
    const auto second = only<send_acquire>();
    EXPECT_EQ(second.on_behalf_of, small);
    answer(second, granted(10));
    let_go(small);
    all_leave({large});
}

TEST_F(lock_table_in_turn, a_hint_counts_for_everybody_whose_request_is_under_way) {
    const auto first = acquire(shared());
    const auto second = acquire(shared());
    const auto asked = all<send_acquire>();
    ASSERT_EQ(asked.size(), 2U);
    answer(asked[0], busy());
    hint();
    const auto again = only<send_acquire>();
    EXPECT_EQ(again.on_behalf_of, first);
    answer(again, granted(10));
    answer(asked[1], busy());
    const auto at_last = only<send_acquire>();
    EXPECT_EQ(at_last.on_behalf_of, second) << "its answer was older than the hint";
    answer(at_last, granted(11));
    let_go(first);
    let_go(second);
}

TEST_F(lock_table_in_turn, one_who_asks_again_and_again_does_not_keep_those_from_asking_who_want_less) {
    const auto large = acquire(permits(4, 5));
    const auto small = acquire(permits(1, 5));
    for (const auto& one : all<send_acquire>()) {
        answer(one, busy());
    }
    for (const auto& again : all<send_acquire>()) {
        answer(again, busy());
    }
    hint("pool");
    const auto asked = only<send_acquire>();
    hint("pool");
    answer(asked, busy());
    const auto next = all<send_acquire>();
    ASSERT_EQ(next.size(), 2U);
    EXPECT_EQ(next[0].on_behalf_of, large);
    EXPECT_EQ(next[1].on_behalf_of, small);
    answer(next[0], busy());
    answer(next[1], granted(10));
    let_go(small);
    all_leave({large});
}

TEST_F(lock_table_in_turn, one_who_asks_again_and_again_does_not_keep_newcomers_who_want_less) {
    const auto waiters = stand(1, permits(4, 5));
    hint("pool");
    const auto asked = only<send_acquire>();
    const auto small = acquire(permits(1, 5));
    EXPECT_TRUE(requests_nothing());
    hint("pool");
    answer(asked, busy());
    const auto next = all<send_acquire>();
    ASSERT_EQ(next.size(), 2U);
    EXPECT_EQ(next[1].on_behalf_of, small);
    answer(next[0], busy());
    answer(next[1], granted(10));
    let_go(small);
    all_leave(waiters);
}

TEST_F(lock_table_in_turn, another_limit_is_another_question) {
    const auto one = acquire(permits(1, 5));
    answer(only<send_acquire>(), busy());
    const auto other = acquire(permits(1, 6));
    answer(only<send_acquire>(), not_acquired(errc::wrong_kind));
    EXPECT_EQ(only<finish_acquire>().id, other);
    all_leave({one});
}

TEST_F(lock_table_in_turn, one_that_is_not_answered_keeps_the_others_from_asking) {
    const auto waiters = stand(3);
    hint("pool");
    answer(only<send_acquire>(), not_acquired(errc::store_unavailable));
    EXPECT_TRUE(requests_nothing());
    at(2ms);
    const auto again = only<send_acquire>();
    EXPECT_EQ(again.on_behalf_of, waiters[0]);
    answer(again, busy());
    all_leave(waiters);
}

TEST_F(lock_table_in_turn,
       an_outage_ends_the_calls_of_those_who_never_asked_unless_they_have_a_deadline) {
    const auto waiters = stand(3);
    const auto patient = acquire(until(script::at(1h), permits(1, 5)));
    for (auto time = 0ms; said<finish_acquire>() == 0 && time < 60s; time += 100ms) {
        at(time);
        for (const auto& asked : all<send_acquire>()) {
            answer(asked, not_acquired(errc::store_unavailable));
        }
    }
    const auto ends = all<finish_acquire>();
    ASSERT_EQ(ends.size(), 3U);
    for (const auto& one : ends) {
        EXPECT_EQ(one.error.code, errc::store_unavailable);
        EXPECT_NE(one.id, patient);
    }
    all_leave({patient});
}

TEST_F(lock_table_in_turn, at_shutdown_nobody_asks_any_more) {
    const auto waiters = stand(3);
    shut_down();
    EXPECT_EQ(all<finish_acquire>().size(), 3U);
    EXPECT_TRUE(requests_nothing());
}

}  // namespace
