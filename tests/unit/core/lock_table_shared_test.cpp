#include <core/table_script.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::claim_mode;
using holdfast::errc;

class lock_table_shared : public table_conversation {};

TEST_F(lock_table_shared, share_that_was_released_leaves_nothing_behind) {
    const auto id = hold(shared());

    let_go(id);

    EXPECT_TRUE(table.count().quiet());
}

TEST_F(lock_table_shared, readers_contend_one_by_one) {
    const auto one = acquire(shared());
    const auto asked_one = only<send_acquire>();
    const auto two = acquire(shared());
    const auto asked_two = only<send_acquire>();

    EXPECT_EQ(asked_one.request.mode, claim_mode::shared);
    EXPECT_NE(asked_one.request.owner, asked_two.request.owner);
    EXPECT_EQ(asked_two.request.token_count, 1U);

    answer(asked_two, granted(8));
    EXPECT_EQ(only<finish_acquire>().id, two);
    answer(asked_one, granted(9));
    EXPECT_EQ(only<finish_acquire>().id, one);
    let_go(one);
    let_go(two);
}

TEST_F(lock_table_shared, permits_contend_one_by_one_with_their_count_and_limit) {
    const auto one = hold(permits(2, 5));
    const auto two = acquire(permits(3, 5));

    const auto asked = only<send_acquire>();
    EXPECT_EQ(asked.request.mode, claim_mode::permit);
    EXPECT_EQ(asked.request.permits, 3U);
    EXPECT_EQ(asked.request.limit, 5U);

    answer(asked, granted(8));
    let_go(one);
    let_go(two);
}

TEST_F(lock_table_shared, share_is_never_handed_over) {
    const auto one = hold(shared());
    const auto two = acquire(shared());
    const auto asked = only<send_acquire>();

    release(one);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    answer(only<send_release>(), released());
    answer(asked, granted(8));
    let_go(two);
}

TEST_F(lock_table_shared, reader_that_gave_up_gives_a_late_grant_back) {
    const auto id = acquire(shared());
    cancel(id);

    answer(only<send_acquire>(), granted(7));

    const auto back = only<send_release>();
    EXPECT_EQ(back.request.mode, claim_mode::shared);
    answer(back, released());
}

TEST_F(lock_table_shared, reader_that_gave_up_does_not_disturb_the_others) {
    const auto one = acquire(shared());
    const auto two = acquire(shared());
    for (const auto& asked : all<send_acquire>()) {
        answer(asked, busy());
    }

    cancel(one);

    EXPECT_TRUE(table.wants_watch("stock"));
    hint();
    answer(only<send_acquire>(), granted(8));
    EXPECT_EQ(all<finish_acquire>().back().id, two);
    EXPECT_FALSE(table.wants_watch("stock"));
    let_go(two);
}

TEST_F(lock_table_shared, try_for_a_share_asks_once_even_while_others_wait) {
    const auto waiting = acquire(shared());
    answer(only<send_acquire>(), busy());

    acquire(once(shared()));
    answer(only<send_acquire>(), busy());

    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy);
    EXPECT_TRUE(requests_nothing());
    cancel(waiting);
}

TEST_F(lock_table_shared, reader_and_writer_of_one_process_meet_at_the_store) {
    const auto reader = hold(shared());
    const auto writer = acquire();

    answer(only<send_acquire>(), busy());
    let_go(reader);
    hint();

    answer(only<send_acquire>(), granted(8));
    EXPECT_EQ(only<finish_acquire>().id, writer);
    let_go(writer);
}

TEST_F(lock_table_shared, deadline_of_a_reader_passes) {
    acquire(until(script::at(100ms), shared()));
    answer(only<send_acquire>(), busy());

    at(100ms);

    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy);
}

TEST_F(lock_table_shared, refusal_reaches_only_the_one_it_was_meant_for) {
    const auto good = acquire(permits(1, 5));
    const auto asked_good = only<send_acquire>();
    const auto bad = acquire(permits(1, 6));

    answer(only<send_acquire>(), not_acquired(errc::wrong_kind));

    const auto end = only<finish_acquire>();
    EXPECT_EQ(end.id, bad);
    EXPECT_EQ(end.error.code, errc::wrong_kind);
    answer(asked_good, granted(7));
    EXPECT_EQ(only<finish_acquire>().id, good);
    let_go(good);
}

TEST_F(lock_table_shared, shares_are_renewed_together) {
    const auto one = hold(shared());
    const auto two = hold(shared());
    at(10s);

    const auto renewal = only<send_renew>();
    ASSERT_EQ(renewal.requests.size(), 2U);
    EXPECT_NE(renewal.requests[0].owner, renewal.requests[1].owner);

    answer(renewal, renewed());
    let_go(one);
    let_go(two);
}

TEST_F(lock_table_shared, loss_of_one_share_leaves_the_other_alone) {
    const auto one = hold(on_terms(fixed_terms(10s), shared()));
    const auto two = hold(on_terms(fixed_terms(20s), shared()));

    at(10s);

    EXPECT_EQ(only<tell_loss>().id, one);
    release(one);
    confirm_releases();
    let_go(two);
}

class lock_table_readers : public table_conversation {
protected:
    /// Three readers who were refused, in the order in which they came.
    std::vector<waiter_id> refused_readers() {
        std::vector<waiter_id> readers;
        for (int i = 0; i < 3; ++i) {
            readers.push_back(acquire(shared()));
        }
        for (const auto& asked : all<send_acquire>()) {
            answer(asked, busy());
        }
        return readers;
    }

    void all_leave(const std::vector<waiter_id>& readers) {
        for (const auto one : readers) {
            cancel(one);
        }
    }
};

TEST_F(lock_table_readers, one_asks_for_all_and_the_others_follow_it_in) {
    const auto readers = refused_readers();

    hint();

    const auto asked = only<send_acquire>();
    EXPECT_EQ(asked.on_behalf_of, readers[0]);
    answer(asked, granted(10));
    const auto others = all<send_acquire>();
    ASSERT_EQ(others.size(), 2U);
    answer(others[0], granted(11));
    answer(others[1], granted(12));
    EXPECT_EQ(all<finish_acquire>().size(), 3U);
    for (const auto one : readers) {
        let_go(one);
    }
}

TEST_F(lock_table_readers, refusal_of_one_holds_for_all) {
    const auto readers = refused_readers();
    hint();

    answer(only<send_acquire>(), busy());

    EXPECT_TRUE(requests_nothing());
    hint();
    answer(only<send_acquire>(), busy());
    all_leave(readers);
}

TEST_F(lock_table_readers, one_that_was_told_again_asks_again) {
    const auto readers = refused_readers();
    hint();
    const auto asked = only<send_acquire>();
    hint();
    EXPECT_TRUE(requests_nothing()) << "one is asking";

    answer(asked, busy());

    answer(only<send_acquire>(), granted(10));
    EXPECT_EQ(said<send_acquire>(), 2U);
    all_leave({readers[1], readers[2]});
    for (const auto& late : all<send_acquire>()) {
        answer(late, busy());
    }
    let_go(readers[0]);
}

TEST_F(lock_table_readers, one_that_was_told_again_and_leaves_passes_the_news_on) {
    const auto readers = refused_readers();
    hint();
    const auto asked = only<send_acquire>();
    hint();
    cancel(readers[0]);

    answer(asked, busy());

    const auto next = only<send_acquire>();
    EXPECT_EQ(next.on_behalf_of, readers[1]);
    answer(next, busy());
    all_leave(readers);
}

TEST_F(lock_table_readers, one_without_an_answer_is_followed_by_another) {
    const auto readers = refused_readers();
    hint();

    answer(only<send_acquire>(), not_acquired(errc::store_unavailable));

    const auto next = only<send_acquire>();
    EXPECT_EQ(next.on_behalf_of, readers[1]);
    answer(next, busy());
    all_leave(readers);
}

TEST_F(lock_table_readers, grant_for_one_that_has_left_is_given_back_and_lets_the_others_in) {
    const auto readers = refused_readers();
    hint();
    const auto asked = only<send_acquire>();
    cancel(readers[0]);

    answer(asked, granted(10));

    const auto others = all<send_acquire>();
    ASSERT_EQ(others.size(), 2U);
    confirm_releases();
    answer(others[0], granted(11));
    answer(others[1], granted(12));
    let_go(readers[1]);
    let_go(readers[2]);
}

}  // namespace
