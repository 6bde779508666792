#include <gmock/gmock.h>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;

class hold_time : public cli_test {};

TEST_F(hold_time, min_hold_keeps_the_lock_after_the_program_ended) {
    ASSERT_EQ(finish({"run", "job", "--min-hold", "60s", "--", "true"})->wait(), 0);
    const auto refused = finish({"run", "job", "--no-wait", "--", "true"});
    EXPECT_EQ(refused->wait(), 75);
    EXPECT_THAT(refused->errors(), HasSubstr("\"job\" is kept for another"));
    EXPECT_EQ(holder_of("job").at("status").as_string(), "lingering");
    const auto left = holder_of("job").at("remaining_ms").to_number<std::int64_t>();
    EXPECT_GT(left, 30'000);
    EXPECT_LE(left, 60'000);
}

TEST_F(hold_time, min_hold_ends_by_itself) {
    ASSERT_EQ(finish({"run", "job", "--min-hold", "300ms", "--", "true"})->wait(), 0);
    EXPECT_EQ(finish({"run", "job", "--", "true"})->wait(), 0);
}

TEST_F(hold_time, min_hold_does_not_apply_when_the_command_never_started) {
    ASSERT_EQ(finish({"run", "job", "--min-hold", "60s", "--", "/nonexistent/command"})->wait(), 127);
    EXPECT_EQ(finish({"run", "job", "--no-wait", "--", "true"})->wait(), 0);
}

TEST_F(hold_time, once_per_skips_a_run_after_a_success) {
    ASSERT_EQ(finish({"run", "job", "--once-per", "15m", "--", "echo", "ran"})->output(), "ran\n");
    const auto skipped = finish({"run", "job", "--once-per", "15m", "--", "echo", "ran"});
    EXPECT_EQ(skipped->wait(), 0);
    EXPECT_EQ(skipped->output(), "");
    EXPECT_THAT(skipped->errors(), HasSubstr("already ran"));
    EXPECT_TRUE(inspect("job").at("free").as_bool());
}

TEST_F(hold_time, once_per_counts_successes_only) {
    ASSERT_EQ(finish({"run", "job", "--once-per", "15m", "--", "false"})->wait(), 1);
    EXPECT_EQ(finish({"run", "job", "--once-per", "15m", "--", "echo", "ran"})->output(), "ran\n");
}

TEST_F(hold_time, once_per_counts_from_the_start_and_leaves_a_tenth_for_jitter) {
    ASSERT_EQ(finish({"run", "job", "--once-per", "100s", "--", "true"})->wait(), 0);
    const auto left = holder_of("once:job").at("remaining_ms").to_number<std::int64_t>();
    EXPECT_GT(left, 60'000);
    EXPECT_LE(left, 90'000);
}

TEST_F(hold_time, once_per_lets_the_next_run_through_when_the_period_is_over) {
    ASSERT_EQ(finish({"run", "job", "--once-per", "300ms", "--", "true"})->wait(), 0);
    wait_until("the end of the period", [&] {
        return finish({"run", "job", "--once-per", "300ms", "--", "echo", "ran"})->output() == "ran\n";
    });
}

TEST_F(hold_time, once_per_lets_one_of_several_run_that_start_together) {
    std::vector<std::unique_ptr<program>> all;
    for (int i = 0; i < 4; ++i) {
        all.push_back(start({"run", "job", "--once-per", "15m", "--", "echo", "ran"}));
    }
    std::string output;
    for (const auto& one : all) {
        EXPECT_EQ(one->wait(), 0);
        output += one->output();
    }
    EXPECT_EQ(output, "ran\n");
}

TEST_F(hold_time, once_per_reports_a_skip_in_json) {
    ASSERT_EQ(finish({"run", "job", "--once-per", "15m", "--", "true"})->wait(), 0);
    const auto skipped = finish({"run", "job", "--once-per", "15m", "--json", "--", "true"});
    EXPECT_EQ(parse(skipped->errors()).at("outcome").as_string(), "skipped");
}

}  // namespace
}  // namespace holdfast::cli::testing
