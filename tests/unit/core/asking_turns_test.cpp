#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <core/asking_turns.hpp>
#include <core/places.hpp>
#include <core/table_script.hpp>
#include <deque>

namespace {

using namespace script;
using namespace holdfast::core;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t most = 3;

class asking_turns_of_a_pool : public testing::Test {
protected:
    /// Has sent its request, and waits for the answer.
    contest& asks(std::uint32_t count) {
        holdfast::engines::acquire_request request;
        request.mode = holdfast::claim_mode::permit;
        request.permits = count;
        request.limit = 10;
        const auto id = contests_.size() + 1;
        auto& who = contests_.emplace_back(
            id, pool_, acquisition{request, lease_terms(), contention_settings{}}, nullptr);
        static_cast<void>(who.machine.ask(start, 1));
        turns.add(who);
        return who;
    }
    contest& refused(std::uint32_t count) {
        auto& who = asks(count);
        static_cast<void>(who.machine.on_reply(busy(), start, 0));
        return who;
    }
    void newcomer(waiter_id id, std::uint32_t count) { turns.add_newcomer(id, permits(count, 10)); }

    asking_turns turns;

private:
    place pool_;
    std::deque<contest> contests_;
};

TEST_F(asking_turns_of_a_pool, newcomers_ask_in_the_order_in_which_they_came) {
    newcomer(8, 1);
    newcomer(5, 1);

    EXPECT_EQ(turns.take_next(most), 8U);
    EXPECT_EQ(turns.take_next(most), 5U);
    EXPECT_EQ(turns.take_next(most), std::nullopt);
}

TEST_F(asking_turns_of_a_pool, no_more_than_the_most_ask_at_a_time) {
    newcomer(8, 1);
    asks(1);
    asks(1);
    auto& third = asks(1);
    EXPECT_EQ(turns.take_next(most), std::nullopt);

    turns.remove(third);

    EXPECT_EQ(turns.take_next(most), 8U);
}

TEST_F(asking_turns_of_a_pool, busy_keeps_those_from_asking_who_want_as_much) {
    refused(3);
    newcomer(8, 4);
    newcomer(5, 3);
    newcomer(6, 2);

    EXPECT_EQ(turns.take_next(most), 6U);
    EXPECT_THAT(turns.newcomers(), ElementsAre(8, 5));
}

TEST_F(asking_turns_of_a_pool, one_asks_at_a_time_after_a_refusal) {
    auto& first = refused(3);
    turns.narrow();
    EXPECT_EQ(turns.next_refused(most), &first);
    asks(1);

    EXPECT_EQ(turns.next_refused(most), nullptr);
}

TEST_F(asking_turns_of_a_pool, each_grant_doubles_the_window) {
    turns.narrow();
    turns.widen(holdfast::claim_mode::permit);
    auto& second = refused(1);
    asks(1);
    EXPECT_EQ(turns.next_refused(most), &second);
    asks(1);
    EXPECT_EQ(turns.next_refused(most), nullptr);

    turns.widen(holdfast::claim_mode::permit);

    EXPECT_EQ(turns.next_refused(most), &second);
}

TEST_F(asking_turns_of_a_pool, a_grant_to_a_reader_opens_the_window) {
    turns.narrow();
    turns.widen(holdfast::claim_mode::shared);
    auto& waiting = refused(1);
    asks(1);
    asks(1);

    EXPECT_EQ(turns.next_refused(most), &waiting);
}

TEST_F(asking_turns_of_a_pool, what_is_too_little_for_one_may_do_for_another) {
    refused(3);
    auto& smaller = refused(2);

    EXPECT_EQ(turns.smaller_refused(3), &smaller);
    EXPECT_EQ(turns.smaller_refused(2), nullptr);
}

TEST_F(asking_turns_of_a_pool, a_newcomer_that_wants_less_asks_beside_a_narrow_window) {
    turns.narrow();
    asks(3);
    newcomer(8, 3);
    newcomer(5, 2);
    EXPECT_EQ(turns.take_next(most), std::nullopt);

    EXPECT_EQ(turns.take_smaller(3, most), 5U);
}

TEST_F(asking_turns_of_a_pool, a_newcomer_that_leaves_does_not_ask) {
    newcomer(8, 1);
    turns.remove_newcomer(8);

    EXPECT_EQ(turns.take_next(most), std::nullopt);
    EXPECT_THAT(turns.newcomers(), IsEmpty());
    EXPECT_TRUE(turns.empty());
}

}  // namespace
