#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <core/conversions.hpp>
#include <core/handover.hpp>
#include <core/holds.hpp>
#include <core/table_script.hpp>
#include <variant>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::errc;
using holdfast::event_kind;
using holdfast::release_outcome;

/// Call 1 holds "stock" with tokens 7 to 9. Call 2 waits for it.
class holds_of_a_client : public testing::Test {
protected:
    holds_of_a_client() {
        acquisition machine{
            {.name = "stock", .owner = owner(1), .ttl = 30s}, lease_terms(), contention_settings{}};
        static_cast<void>(machine.ask(start, 3));
        static_cast<void>(machine.on_reply(granted(7, 3), start, 0));
        const contest won{9, stock, machine, nullptr};
        auto& queue = places.line_of(stock).queue;
        queue.begin({7}, 3, start);
        hold = &holds.add(1, won, std::make_shared<const terms>(lease_terms()), false);
        hold->serves = &stock;
        stock.holder = hold;
        holds.begin(*hold, queue.next_token(), event_kind::acquired, start, start);
        waiters.add(2, exclusive(), stock, start);
        queue.push(2);
        static_cast<void>(out.take({}));
    }
    template <class Action>
    [[nodiscard]] std::vector<Action> said() {
        std::vector<Action> result;
        for (const auto& each : out.take({})) {
            if (const auto* const one = std::get_if<Action>(&each)) {
                result.push_back(*one);
            }
        }
        return result;
    }
    [[nodiscard]] handover passing(std::uint32_t overtakings = 0) {
        return {{.overtakings = overtakings}, out, places, waiters, holds};
    }

    outbox out{owner(0), 1, false};
    holdfast::core::places places{out};
    place& stock{places.of("stock", holdfast::lock_kind::mutex)};
    holdfast::core::waiters waiters{out};
    holdfast::core::releases releases{out, places, 2s};
    holdfast::core::holds holds{out, places, releases, 2s};
    hold_record* hold{};
};

TEST_F(holds_of_a_client, release_is_sent_and_its_queue_waits_for_the_answer) {
    holds.release(*hold, 0ms, at(1s));

    EXPECT_EQ(said<send_release>().size(), 1U);
    EXPECT_TRUE(stock.awaits_release);
    EXPECT_EQ(stock.holder, nullptr);
    EXPECT_EQ(holds.size(), 0U);
    EXPECT_EQ(holds.wake_at(), never);
}

TEST_F(holds_of_a_client, lost_one_frees_its_place_and_stays_until_it_is_let_go) {
    holds.lose(*hold, {errc::revoked, "by an operator"}, at(1s));

    EXPECT_EQ(said<tell_loss>().at(0).why.code, errc::revoked);
    EXPECT_TRUE(stock.idle());
    EXPECT_EQ(holds.size(), 1U);

    holds.release(*hold, 0ms, at(2s));
    EXPECT_EQ(said<finish_release>().at(0).outcome, release_outcome::already_lost);
    EXPECT_EQ(holds.size(), 0U);
}

TEST_F(holds_of_a_client, deadline_that_has_passed_is_a_loss) {
    holds.check_deadline(*hold, at(29s));
    EXPECT_FALSE(hold->lost);

    holds.check_deadline(*hold, at(29500ms));

    EXPECT_TRUE(hold->lost);
}

TEST_F(holds_of_a_client, grant_to_an_owner_that_holds_the_lock_is_not_given_back) {
    holds.give_back_unused({"stock", {}, owner(1)}, at(30s), at(1s));
    EXPECT_EQ(releases.size(), 0U);

    holds.give_back_unused({"stock", {}, owner(5)}, at(30s), at(1s));
    EXPECT_EQ(releases.size(), 1U);
}

TEST_F(holds_of_a_client, hand_over_gives_the_next_token_and_asks_nobody) {
    EXPECT_TRUE(passing().hand_over(*hold, at(10ms)));

    const auto actions = out.take({});
    ASSERT_EQ(actions.size(), 2U);
    EXPECT_EQ(std::get<finish_release>(actions[0]).id, 1U);
    EXPECT_EQ(std::get<finish_acquire>(actions[1]).id, 2U);
    EXPECT_EQ(std::get<finish_acquire>(actions[1]).token.value, 8U);
    EXPECT_EQ(holds.find(1), nullptr);
    EXPECT_EQ(holds.find(2), hold);
}

TEST_F(holds_of_a_client, fleeting_one_is_offered_and_a_newcomer_may_be_quicker) {
    auto quick = passing(1);
    EXPECT_TRUE(quick.hand_over(*hold, at(10us)));
    EXPECT_EQ(said<offer_turn>().at(0).id, 2U);
    EXPECT_TRUE(hold->vacant());

    EXPECT_TRUE(quick.overtake(waiters.add(3, exclusive(), stock, at(11us)), at(11us)));
    quick.take_turn(waiters.at(2), at(12us));

    EXPECT_EQ(holds.find(3), hold);
    EXPECT_EQ(waiters.size(), 1U);
}

TEST_F(holds_of_a_client, vacant_one_goes_back_to_the_store_when_nobody_waits) {
    auto quick = passing(1);
    EXPECT_TRUE(quick.hand_over(*hold, at(10us)));
    stock.waiting->queue.remove(2);

    quick.offer_again(stock, at(1ms));

    EXPECT_EQ(holds.size(), 0U);
    EXPECT_TRUE(stock.awaits_release);
}

TEST_F(holds_of_a_client, downgraded_one_is_not_handed_over) {
    conversions converting{out, places, holds, 2s};
    converting.start(1, holdfast::claim_mode::shared, at(1s));
    EXPECT_FALSE(passing().hand_over(*hold, at(1s)));

    const auto asked = said<send_acquire>().at(0);
    EXPECT_TRUE(converting.on_reply(asked.id, granted(7), at(2s)));

    EXPECT_EQ(hold->mode, holdfast::claim_mode::shared);
    EXPECT_TRUE(stock.idle());
    EXPECT_FALSE(converting.on_reply(asked.id, granted(7), at(2s))) << "it is answered";
}

TEST_F(holds_of_a_client, one_with_an_unanswered_request_is_never_upgraded) {
    conversions converting{out, places, holds, 2s};
    hold->unanswered = true;

    converting.start(1, holdfast::claim_mode::exclusive, at(1s));

    EXPECT_EQ(said<finish_convert>().at(0).error.code, errc::outcome_unknown);
}

}  // namespace
