#include <gmock/gmock.h>
#include <sqlite3.h>

#include <holdfast/client.hpp>
#include <holdfast/mutex.hpp>

#include "fixture.hpp"
#include "once_per.hpp"
#include "text.hpp"

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

TEST_F(hold_time, min_hold_does_not_keep_a_lock_that_was_lost) {
    const auto lost = start(run_script("job", {"--ttl", "10s", "--max-hold", "4s", "--min-hold", "4s"},
                                       "trap 'exit 0' TERM; while :; do sleep 0.05; done"));
    EXPECT_EQ(lost->wait(), 76);
    EXPECT_TRUE(inspect("job").at("free").as_bool());
}

TEST_F(hold_time, once_per_skips_a_run_after_a_success) {
    ASSERT_EQ(finish({"run", "job", "--once-per", "15m", "--", "echo", "ran"})->output(), "ran\n");
    const auto skipped = finish({"run", "job", "--once-per", "15m", "--", "echo", "ran"});
    EXPECT_EQ(skipped->wait(), 0);
    EXPECT_EQ(skipped->output(), "");
    EXPECT_THAT(skipped->errors(), HasSubstr("already ran"));
    EXPECT_THAT(skipped->errors(), HasSubstr("now with --again"));
    EXPECT_TRUE(inspect("job").at("free").as_bool());
}

TEST_F(hold_time, once_per_counts_successes_only) {
    ASSERT_EQ(finish({"run", "job", "--once-per", "15m", "--", "false"})->wait(), 1);
    EXPECT_EQ(finish({"run", "job", "--once-per", "15m", "--", "echo", "ran"})->output(), "ran\n");
}

TEST_F(hold_time, once_per_counts_from_the_start_and_leaves_a_tenth_for_jitter) {
    ASSERT_EQ(finish({"run", "job", "--once-per", "100s", "--", "true"})->wait(), 0);
    const auto left = holder_of("job:once-per").at("remaining_ms").to_number<std::int64_t>();
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

TEST_F(hold_time, again_runs_a_command_that_once_per_would_skip) {
    ASSERT_EQ(finish({"run", "job", "--once-per", "100s", "--", "true"})->wait(), 0);
    const auto before = holder_of("job:once-per").at("token").to_number<std::int64_t>();
    const auto again = finish({"run", "job", "--once-per", "1h", "--again", "--", "echo", "ran"});
    EXPECT_EQ(again->output(), "ran\n");
    EXPECT_EQ(again->errors(), "");
    // The period starts anew.
    EXPECT_GT(holder_of("job:once-per").at("token").to_number<std::int64_t>(), before);
    EXPECT_GT(holder_of("job:once-per").at("remaining_ms").to_number<std::int64_t>(), 1'000'000);
    EXPECT_EQ(finish({"run", "job", "--once-per", "1h", "--", "echo", "ran"})->output(), "");
}

TEST_F(hold_time, an_again_that_fails_leaves_the_earlier_success_as_it_was) {
    ASSERT_EQ(finish({"run", "job", "--once-per", "1h", "--", "true"})->wait(), 0);
    const auto before = holder_of("job:once-per").at("token");
    EXPECT_EQ(finish({"run", "job", "--once-per", "1h", "--again", "--", "false"})->wait(), 1);
    EXPECT_EQ(holder_of("job:once-per").at("token"), before);
}

TEST_F(hold_time, a_lock_under_the_name_of_the_marker_is_no_earlier_run) {
    // `run` takes no such name, but other programs may.
    client other{store()};
    mutex lock{other, "job:once-per"};
    const auto held = lock.acquire();
    for (const auto& options : {words{"--once-per", "1h"}, words{"--once-per", "1h", "--again"}}) {
        const auto ran = finish(run_script("job", options, "echo ran"));
        EXPECT_EQ(ran->wait(), 0);
        EXPECT_EQ(ran->output(), "ran\n");
        EXPECT_THAT(ran->errors(), HasSubstr("may run again sooner"));
    }
    EXPECT_EQ(holder_of("job:once-per").at("owner").as_string(), held.owner().text());
    EXPECT_FALSE(inspect("job").contains("once_per"));
}

TEST_F(hold_time, a_job_named_like_the_marker_of_another_is_refused) {
    for (const std::string name : {"job:once-per", ":once-per", "job:once-per~0123456789abcdef"}) {
        const auto refused = finish({"run", name, "--", "true"});
        EXPECT_EQ(refused->wait(), 64);
        EXPECT_THAT(refused->errors(), HasSubstr("no name for a lock"));
    }
    EXPECT_EQ(finish({"run", "job:once-per-day", "--", "true"})->wait(), 0);
}

TEST_F(hold_time, a_job_with_once_in_its_name_keeps_nobody_from_running) {
    const auto holder = hold("once:job");
    EXPECT_EQ(finish({"run", "job", "--once-per", "1h", "--", "echo", "ran"})->output(), "ran\n");
    holder->close_input();
    EXPECT_EQ(holder->wait(), 0);
    EXPECT_EQ(finish({"run", "once:job", "--no-wait", "--", "true"})->wait(), 0);
}

TEST_F(hold_time, once_per_works_for_the_longest_names) {
    const std::string start(1020, 'n');
    for (const std::string end : {"", "1", "a234", "b234", "€!"}) {
        const words command{"run", start + end, "--once-per", "1h", "--", "echo", "ran"};
        EXPECT_EQ(finish(command)->output(), "ran\n") << end;
        EXPECT_EQ(finish(command)->output(), "") << end;
    }
}

TEST(once_per_marker, is_a_name_that_every_store_can_carry) {
    std::string name;
    while (name.size() < 1024) {
        name += name.size() + 3 <= 1024 ? "€" : "n";
        const auto marker = once_per_marker(name);
        EXPECT_LE(marker.size(), 1024U);
        EXPECT_EQ(valid_utf8_prefix(marker), marker.size());
        EXPECT_TRUE(is_once_per_marker(marker));
        EXPECT_FALSE(is_once_per_marker(name));
    }
}

TEST_F(hold_time, inspect_shows_what_keeps_a_once_per_command_from_running) {
    EXPECT_THAT(finish({"inspect", "job"})->output(), Not(HasSubstr("once-per")));
    EXPECT_FALSE(inspect("job").contains("once_per"));
    ASSERT_EQ(finish({"run", "job", "--once-per", "1h", "--label", "shard 7", "--", "true"})->wait(),
              0);
    EXPECT_THAT(finish({"inspect", "job"})->output(),
                ::testing::ContainsRegex(
                    "once-per +not again before [0-9: -]+ \\(in 5[0-9]m[0-9]*s?\\) unless --again is "
                    "given; last run by [^ ]+ pid [0-9]+ \\(true\\) \"shard 7\"\n"));
    const auto marker = inspect("job").at("once_per").as_object();
    EXPECT_EQ(marker.at("label").as_string(), "shard 7");
    EXPECT_GT(marker.at("remaining_ms").to_number<std::int64_t>(), 1'000'000);
    EXPECT_TRUE(inspect("job").at("free").as_bool());
}

TEST_F(hold_time, once_per_reports_a_skip_in_json) {
    ASSERT_EQ(finish({"run", "job", "--once-per", "15m", "--", "true"})->wait(), 0);
    const auto skipped = finish({"run", "job", "--once-per", "15m", "--json", "--", "true"});
    EXPECT_EQ(parse(skipped->errors()).at("outcome").as_string(), "skipped");
}

TEST_F(hold_time, once_per_does_not_count_a_run_that_lost_its_lock) {
    const auto lost = start(run_script("job", {"--once-per", "15m"},
                                       "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"));
    lost->wait_for_output("ready");
    ASSERT_EQ(finish({"release", "job", "--force", "--reason", "test"})->wait(), 0);
    EXPECT_EQ(lost->wait(), 76);
    EXPECT_EQ(finish({"run", "job", "--once-per", "15m", "--", "echo", "ran"})->output(), "ran\n");
}

TEST_F(hold_time, once_per_does_not_count_a_run_that_max_hold_ended) {
    const auto ended = start(run_script("job", {"--once-per", "15m", "--ttl", "2s", "--max-hold", "1s"},
                                        "trap 'exit 0' TERM; while :; do sleep 0.05; done"));
    EXPECT_EQ(ended->wait(), 76);
    EXPECT_EQ(finish({"run", "job", "--once-per", "15m", "--", "echo", "ran"})->output(), "ran\n");
}

TEST_F(hold_time, once_per_does_not_count_a_run_whose_loss_is_found_out_at_its_end) {
    // Renewals are far away, and nobody is told when a record is deleted by hand.
    const auto lost = start(
        run_script("job", {"--once-per", "15m", "--ttl", "60s"}, "echo ready; read line; exit 0"));
    lost->wait_for_output("ready");
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open_v2((file("store") / "locks.db").c_str(), &connection, SQLITE_OPEN_READWRITE,
                              nullptr),
              SQLITE_OK);
    sqlite3_busy_timeout(connection, 10'000);
    EXPECT_EQ(sqlite3_exec(connection, "DELETE FROM hold WHERE name = CAST('job' AS BLOB)", nullptr,
                           nullptr, nullptr),
              SQLITE_OK);
    EXPECT_EQ(sqlite3_changes(connection), 1);
    sqlite3_close_v2(connection);
    lost->close_input();
    EXPECT_EQ(lost->wait(), 76);
    EXPECT_EQ(finish({"run", "job", "--once-per", "15m", "--", "echo", "ran"})->output(), "ran\n");
}

TEST_F(hold_time, once_per_counts_from_the_start_of_a_long_run) {
    ASSERT_EQ(finish(run_script("job", {"--once-per", "100s"}, "sleep 1"))->wait(), 0);
    const auto marker = holder_of("job:once-per").at("remaining_ms").to_number<std::int64_t>();
    EXPECT_LE(marker, 89'000);
}

TEST_F(hold_time, what_min_hold_keeps_is_not_held_by_the_command_any_more) {
    const auto ran =
        finish(run_script("job", {"--min-hold", "60s"}, "echo $HOLDFAST_OWNER; echo $HOLDFAST_TOKEN"));
    const auto text = ran->output();
    const auto owner = text.substr(0, text.find('\n'));
    const auto token = text.substr(owner.size() + 1, text.size() - owner.size() - 2);
    EXPECT_EQ(finish({"check", "job", "--owner", owner, "--token", token})->wait(), 76);
}

TEST_F(hold_time, check_takes_only_the_token_that_was_granted) {
    const auto holder = hold("job");
    const auto token = holder_of("job").at("token").to_number<std::int64_t>();
    EXPECT_EQ(finish({"check", "job", "--token", std::to_string(token)})->wait(), 0);
    EXPECT_EQ(finish({"check", "job", "--token", std::to_string(token + 1)})->wait(), 76);
    EXPECT_EQ(finish({"check", "job", "--token", std::to_string(token - 1)})->wait(), 76);
}

}  // namespace
}  // namespace holdfast::cli::testing
