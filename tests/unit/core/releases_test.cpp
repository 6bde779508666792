#include <gtest/gtest.h>
#include <core/releases.hpp>
#include <core/script.hpp>
#include <variant>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::errc;
using holdfast::release_outcome;

/// One release on its way. A caller waits for it until 500 ms, and a queue.
class releases_of_a_client : public testing::Test {
protected:
    releases_of_a_client() {
        auto& back = releases.add({"stock", {}, owner(1)}, {7}, at(30s));
        back.caller = 4;
        back.held = true;
        back.tell_by = at(500ms);
        back.awaited_at = &stock;
        stock.awaits_release = true;
        releases.send(back, start);
    }
    template <class Action>
    [[nodiscard]] std::vector<Action> said() {
        std::vector<Action> result;
        for (auto& each : out.take({})) {
            if (auto* const one = std::get_if<Action>(&each)) {
                result.push_back(std::move(*one));
            }
        }
        return result;
    }
    [[nodiscard]] request_id request() { return said<send_release>().at(0).id; }

    outbox out{owner(0), 1, false};
    holdfast::core::places places{out};
    place& stock{places.of("stock", holdfast::lock_kind::mutex)};
    holdfast::core::releases releases{out, places, 2s};
};

TEST_F(releases_of_a_client, confirmation_tells_the_caller_and_frees_the_place) {
    releases.on_reply(request(), released(3), at(1ms));

    const auto ends = said<finish_release>();
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].id, 4U);
    EXPECT_EQ(ends[0].outcome, release_outcome::released);
    EXPECT_TRUE(stock.idle());
    EXPECT_EQ(stock.others_waiting, 3U);
    EXPECT_EQ(releases.size(), 0U);
    EXPECT_EQ(releases.wake_at(), never);
}

TEST_F(releases_of_a_client, caller_is_told_in_time_and_the_release_goes_on) {
    const auto first = request();
    releases.on_time(at(500ms));

    const auto ends = said<finish_release>();
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].outcome, release_outcome::unknown);
    EXPECT_TRUE(stock.idle());
    EXPECT_EQ(releases.size(), 1U);

    releases.on_reply(first, released(), at(600ms));
    EXPECT_EQ(releases.size(), 0U);
}

TEST_F(releases_of_a_client, one_without_an_answer_is_sent_again) {
    releases.on_reply(request(), not_released(errc::outcome_unknown), at(1ms));
    releases.on_time(releases.wake_at());

    const auto again = said<send_release>();
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again[0].request.owner, owner(1));
    EXPECT_FALSE(stock.idle());
}

TEST_F(releases_of_a_client, answer_to_a_request_that_nobody_sent_has_no_effect) {
    releases.on_reply(request() + 100, released(), at(1ms));

    EXPECT_EQ(releases.size(), 1U);
    EXPECT_TRUE(releases.has(owner(1)));
    EXPECT_FALSE(releases.has(owner(2)));
}

TEST_F(releases_of_a_client, unconfirmed_ones_are_reported) {
    const auto left = releases.unreleased();

    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(left[0].name, "stock");
    EXPECT_EQ(left[0].error.code, errc::outcome_unknown);
}

}  // namespace
