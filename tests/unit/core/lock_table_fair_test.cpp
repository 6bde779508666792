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
    void turn_of(const holdfast::owner_id& who) {
        table.on_turn("stock", who, now);
        at(now - start);
    }
};

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
