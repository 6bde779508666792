#include <gtest/gtest.h>
#include <core/contests.hpp>
#include <core/table_script.hpp>
#include <variant>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::errc;

/// Calls 1 and 2 wait in the queue of "stock", and nothing works for it yet.
class contests_of_a_client : public testing::Test {
protected:
    contests_of_a_client() {
        for (const waiter_id id : {1U, 2U}) {
            waiters.add(id, exclusive(), stock, start);
            places.line_of(stock).queue.push(id);
        }
    }
    [[nodiscard]] send_acquire request() {
        for (const auto& each : out.take({})) {
            if (const auto* const sent = std::get_if<send_acquire>(&each)) {
                return *sent;
            }
        }
        ADD_FAILURE() << "nothing was asked";
        return {};
    }

    outbox out{owner(0), 1, false};
    holdfast::core::places places{out};
    place& stock{places.of("stock", holdfast::lock_kind::mutex)};
    holdfast::core::waiters waiters{out};
    holdfast::core::releases releases{out, places, 2s};
    holdfast::core::holds holds{out, places, releases, 2s};
    holdfast::core::contests contests{{}, {}, out, places, waiters, releases, holds};
};

TEST_F(contests_of_a_client, a_queue_has_one_that_asks_for_the_tokens_of_all) {
    contests.contend_for_front(stock, start);
    contests.contend_for_front(stock, start);

    EXPECT_EQ(contests.size(), 1U);
    EXPECT_EQ(request().request.token_count, 3U);
}

TEST_F(contests_of_a_client, grant_goes_to_the_front_and_its_hold_works_for_the_queue) {
    contests.contend_for_front(stock, start);
    contests.on_reply(request().id, granted(7, 3), at(1ms));

    ASSERT_NE(holds.find(1), nullptr);
    EXPECT_EQ(stock.holder, holds.find(1));
    EXPECT_EQ(contests.size(), 0U);
    EXPECT_EQ(waiters.size(), 1U);
}

TEST_F(contests_of_a_client, grant_that_nobody_waits_for_is_given_back) {
    contests.contend_for_front(stock, start);
    const auto asked = request();
    contests.finish_waiter(waiters.at(1), {errc::cancelled, ""}, at(1ms));
    contests.finish_waiter(waiters.at(2), {errc::cancelled, ""}, at(1ms));
    EXPECT_EQ(contests.size(), 1U) << "its answer is not there yet";

    contests.on_reply(asked.id, granted(7, 3), at(2ms));

    EXPECT_EQ(releases.size(), 1U);
    EXPECT_EQ(holds.size(), 0U);
    EXPECT_TRUE(stock.idle());
}

TEST_F(contests_of_a_client, other_processes_go_first_if_they_wait) {
    stock.others_waiting = 1;
    contests.contend_for_front(stock, start);
    EXPECT_EQ(contests.requests(), 0U);

    contests.on_time(contests.wake_at());

    EXPECT_EQ(contests.requests(), 1U);
}

TEST_F(contests_of_a_client, none_begins_after_shutdown) {
    contests.shut_down();
    contests.contend_for_front(stock, start);

    EXPECT_EQ(contests.size(), 0U);
}

}  // namespace
