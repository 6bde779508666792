#include "ending.hpp"

#include <gtest/gtest.h>

#include "exit_code.hpp"

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;

constexpr clock::time_point epoch{};

[[nodiscard]] exit_code refused_with(std::chrono::milliseconds ttl, std::chrono::milliseconds grace,
                                     std::optional<std::chrono::milliseconds> max_hold = {}) {
    try {
        static_cast<void>(make_ending_terms(ttl, grace, max_hold));
    } catch (const stop_program& stop) {
        return stop.code();
    }
    return exit_code::success;
}

TEST(ending, grace_is_a_quarter_of_the_ttl_up_to_ten_seconds) {
    EXPECT_EQ(make_ending_terms(30s, {}, {}).grace, 7500ms);
    EXPECT_EQ(make_ending_terms(10min, {}, {}).grace, 10s);
}

TEST(ending, a_short_max_hold_gets_a_short_end) {
    for (const auto max_hold : {100ms, 500ms, 1000ms, 4000ms, 8000ms}) {
        const auto terms = make_ending_terms(30s, {}, max_hold);
        EXPECT_EQ(terms.grace, max_hold / 4);
        EXPECT_GE(max_hold - terms.grace - terms.slack, max_hold / 4);
    }
}

TEST(ending, a_long_max_hold_changes_nothing) {
    EXPECT_EQ(make_ending_terms(30s, {}, 1h).grace, make_ending_terms(30s, {}, {}).grace);
    EXPECT_EQ(make_ending_terms(30s, {}, 1h).slack, make_ending_terms(30s, {}, {}).slack);
}

TEST(ending, term_comes_a_grace_and_a_slack_before_the_end) {
    const ending_terms terms{2s, 500ms};
    EXPECT_EQ(terms.terminate_at(epoch + 10s), epoch + 7500ms);
    EXPECT_EQ(terms.kill_at(epoch + 10s, epoch + 7500ms), epoch + 9500ms);
}

TEST(ending, kill_does_not_wait_longer_than_the_grace) {
    const ending_terms terms{2s, 500ms};
    EXPECT_EQ(terms.kill_at(epoch + 60s, epoch + 1s), epoch + 3s);
}

TEST(ending, kill_is_due_at_once_when_the_lease_is_over) {
    const ending_terms terms{2s, 500ms};
    EXPECT_LE(terms.kill_at(epoch + 10s, epoch + 11s), epoch + 11s);
}

TEST(ending, a_grace_that_does_not_fit_the_ttl_is_refused) {
    EXPECT_EQ(refused_with(30s, 14s), exit_code::success);
    EXPECT_EQ(refused_with(30s, 15s), exit_code::usage);
    EXPECT_EQ(refused_with(1s, 400ms), exit_code::success);
    EXPECT_EQ(refused_with(1s, 401ms), exit_code::usage);
}

TEST(ending, a_max_hold_without_time_for_the_command_is_refused) {
    EXPECT_EQ(refused_with(30s, 5s, 6s), exit_code::usage);
    EXPECT_EQ(refused_with(30s, 5s, 7s), exit_code::success);
}

}  // namespace
}  // namespace holdfast::cli
