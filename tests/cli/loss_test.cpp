#include <gmock/gmock.h>
#include <sqlite3.h>

#include <csignal>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;

/// Writes its pid to `pid` and does not care about TERM.
constexpr const char* stubborn =
    "trap '' TERM; echo $$ > $PIDS/pid; while [ -d $PIDS ]; do sleep 0.05; done";

class loss : public cli_test {
protected:
    [[nodiscard]] program_options with_pids() const {
        return {.environment = {{"PIDS", file("").string()}}};
    }
    [[nodiscard]] pid_t pid(const std::string& name) const {
        return static_cast<pid_t>(std::stol(wait_for_line(file(name))));
    }
    void revoke(const std::string& name) const {
        ASSERT_EQ(finish({"release", name, "--force", "--reason", "test"})->wait(), 0);
    }
    /// Waits for the process to be gone, reaped and all, and says when that was.
    [[nodiscard]] static std::int64_t gone_at(pid_t id) {
        wait_until("the end of process " + std::to_string(id), [&] { return !exists(id); });
        return epoch_now();
    }
};

/// Keeps everybody else from writing to a local store, as long as it lives.
class store_blocker {
public:
    explicit store_blocker(const std::filesystem::path& database) {
        EXPECT_EQ(sqlite3_open_v2(database.c_str(), &connection_, SQLITE_OPEN_READWRITE, nullptr),
                  SQLITE_OK);
        sqlite3_busy_timeout(connection_, 10'000);
        EXPECT_EQ(sqlite3_exec(connection_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    }
    store_blocker(const store_blocker&) = delete;
    store_blocker& operator=(const store_blocker&) = delete;
    ~store_blocker() { sqlite3_close_v2(connection_); }

private:
    sqlite3* connection_{};
};

TEST_F(loss, by_revocation_ends_the_command_with_76) {
    const auto running = start(run_script(
        "job", {}, "trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.05; done"));
    running->wait_for_output("ready");
    revoke("job");
    EXPECT_EQ(running->wait(), 76);
    EXPECT_THAT(running->output(), HasSubstr("told"));
    EXPECT_THAT(running->errors(), HasSubstr("\"job\" was lost"));
    EXPECT_THAT(running->last_error_line(), HasSubstr("revoked by holdfast on"));
    EXPECT_THAT(running->last_error_line(), HasSubstr(": test)"));
}

TEST_F(loss, is_told_in_json) {
    const auto running = start(run_script("job", {"--json"}, "echo ready; exec sleep 60"));
    running->wait_for_output("ready");
    revoke("job");
    EXPECT_EQ(running->wait(), 76);
    const auto report = parse(running->last_error_line());
    EXPECT_EQ(report.at("outcome").as_string(), "lost");
    EXPECT_EQ(report.at("loss_reason").as_string(), "revoked");
    EXPECT_EQ(report.at("status").as_int64(), 76);
    EXPECT_EQ(report.at("command").at("signal").as_int64(), SIGTERM);
}

TEST_F(loss, a_command_that_ignores_term_is_killed_after_the_grace) {
    const auto running =
        start(run_script("job", {"--ttl", "3s", "--grace", "200ms"}, stubborn), with_pids());
    const auto child = pid("pid");
    revoke("job");
    EXPECT_EQ(running->wait(), 76);
    EXPECT_FALSE(exists(child));
}

TEST_F(loss, takes_grandchildren_that_left_the_group_with_it) {
    const auto running =
        start(run_script("job", {"--ttl", "3s", "--grace", "200ms"},
                         "setsid sh -c 'trap \"\" TERM; echo $$ > $PIDS/escaped; while [ -d $PIDS ]; "
                         "do sleep 0.05; done' & "
                         "(setsid sh -c 'echo $$ > $PIDS/orphan; exec sleep 60' &) ; read line"),
              with_pids());
    const auto escaped = pid("escaped");
    const auto orphan = pid("orphan");
    revoke("job");
    EXPECT_EQ(running->wait(), 76);
    EXPECT_FALSE(exists(escaped));
    EXPECT_FALSE(exists(orphan));
}

TEST_F(loss, the_command_is_gone_before_the_lease_when_the_store_does_not_answer) {
    const auto running = start(run_script("job", {"--ttl", "2s", "--json"}, stubborn), with_pids());
    const auto child = pid("pid");
    const store_blocker blocker{file("store") / "locks.db"};
    const auto gone = gone_at(child);
    EXPECT_EQ(running->wait(), 76);
    const auto report = parse(running->last_error_line());
    EXPECT_EQ(report.at("loss_reason").as_string(), "lost");
    EXPECT_LT(gone, report.at("command").at("lease_end_ms").as_int64());
}

TEST_F(loss, term_comes_early_enough_for_the_grace) {
    const auto running =
        start(run_script("job", {"--ttl", "2s", "--grace", "600ms", "--json"},
                         "trap 'date +%s%3N > $PIDS/told; exit 0' TERM; echo $$ > $PIDS/pid; "
                         "while :; do sleep 0.02; done"),
              with_pids());
    static_cast<void>(pid("pid"));
    const store_blocker blocker{file("store") / "locks.db"};
    EXPECT_EQ(running->wait(), 76);
    const auto lease_end =
        parse(running->last_error_line()).at("command").at("lease_end_ms").as_int64();
    EXPECT_LT(std::stoll(wait_for_line(file("told"))), lease_end - 200);
}

TEST_F(loss, a_short_trouble_with_the_store_is_survived) {
    const auto running = start(
        run_script("job", {"--ttl", "3s"}, "echo $$ > $PIDS/pid; read line; exit 5"), with_pids());
    static_cast<void>(pid("pid"));
    {
        const store_blocker blocker{file("store") / "locks.db"};
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{1200};
        wait_until("a failed renewal", [&] { return std::chrono::steady_clock::now() > until; });
    }
    running->close_input();
    EXPECT_EQ(running->wait(), 5);
}

TEST_F(loss, cannot_come_from_a_store_that_does_not_answer_at_the_start) {
    ASSERT_EQ(finish({"run", "job", "--", "true"})->wait(), 0);
    const store_blocker blocker{file("store") / "locks.db"};
    const auto refused = finish({"run", "job", "--no-wait", "--", "echo", "ran"});
    EXPECT_EQ(refused->wait(), 69);
    EXPECT_EQ(refused->output(), "");
    EXPECT_THAT(refused->errors(), ::testing::StartsWith("holdfast: "));
}

TEST_F(loss, max_hold_ends_the_command_in_time) {
    const auto began = epoch_now();
    const auto running = start(
        run_script("job", {"--ttl", "2s", "--max-hold", "1500ms", "--json"}, stubborn), with_pids());
    const auto child = pid("pid");
    const auto gone = gone_at(child);
    EXPECT_EQ(running->wait(), 76);
    const auto report = parse(running->last_error_line());
    EXPECT_EQ(report.at("loss_reason").as_string(), "max_hold");
    EXPECT_GE(gone - began, 700);
    EXPECT_LT(gone, report.at("command").at("lease_end_ms").as_int64());
}

TEST_F(loss, by_max_hold_says_what_ended_the_command_and_when) {
    const auto running =
        finish({"run", "job", "--ttl", "2s", "--max-hold", "1500ms", "--", "sleep", "60"});
    EXPECT_EQ(running->wait(), 76);
    EXPECT_THAT(
        running->errors(),
        ::testing::ContainsRegex("--max-hold 1500ms is near, \"job\" has been held for [0-9]+m?s: "
                                 "told the command to end, kill it in [0-9]+ms"));
    EXPECT_THAT(running->last_error_line(), HasSubstr("has been held for"));
    EXPECT_THAT(running->last_error_line(), HasSubstr(": the command was ended"));
}

TEST_F(loss, for_lack_of_renewals_tells_since_when) {
    const auto running = start(run_script("job", {"--ttl", "2s"}, stubborn), with_pids());
    static_cast<void>(pid("pid"));
    const store_blocker blocker{file("store") / "locks.db"};
    EXPECT_EQ(running->wait(), 76);
    EXPECT_THAT(running->errors(),
                ::testing::ContainsRegex("losing \"job\" \\(it was last renewed [0-9]+m?s ago: "));
    EXPECT_THAT(running->last_error_line(), HasSubstr("it was last renewed"));
}

TEST_F(loss, that_is_found_out_at_the_end_tells_who_took_the_lock) {
    const auto running =
        finish(run_script("job", {"-v"},
                          "\"$HOLDFAST\" release job --force --reason stuck > /dev/null; exit 0"),
               {.environment = {{"HOLDFAST", program_path()}}});
    EXPECT_EQ(running->wait(), 76);
    EXPECT_THAT(running->last_error_line(), HasSubstr("revoked by holdfast on"));
    EXPECT_THAT(running->last_error_line(), HasSubstr(": stuck)"));
    EXPECT_THAT(running->errors(), Not(HasSubstr("shut down")));
}

TEST_F(loss, on_lost_kill_does_not_send_term) {
    const auto running =
        start(run_script("job", {"--on-lost", "kill", "--json"},
                         "trap 'echo told' TERM; echo ready; while :; do sleep 0.05; done"));
    running->wait_for_output("ready");
    revoke("job");
    EXPECT_EQ(running->wait(), 76);
    EXPECT_EQ(running->output(), "ready\n");
    EXPECT_EQ(parse(running->last_error_line()).at("command").at("signal").as_int64(), SIGKILL);
}

TEST_F(loss, on_lost_ignore_lets_the_command_go_on) {
    const auto running =
        start(run_script("job", {"--on-lost", "ignore"}, "echo ready; read line; exit 9"));
    running->wait_for_output("ready");
    revoke("job");
    running->wait_for_errors("lost \"job\"");
    running->close_input();
    EXPECT_EQ(running->wait(), 9);
}

TEST_F(loss, is_the_first_thing_a_stopped_program_sees_when_it_goes_on) {
    const auto running = start(run_script("job", {"--ttl", "1s"}, stubborn), with_pids());
    const auto child = pid("pid");
    running->signal(SIGSTOP);
    const auto other = start(run_script("job", {"--ttl", "10s"}, "echo mine; read line"));
    other->wait_for_output("mine");
    running->signal(SIGCONT);
    EXPECT_EQ(running->wait(), 76);
    EXPECT_FALSE(exists(child));
    EXPECT_THAT(running->errors(), Not(HasSubstr("told the command to end")));
    EXPECT_FALSE(inspect("job").at("free").as_bool());
}

TEST_F(loss, of_a_command_that_had_ended_by_itself_is_not_called_a_kill) {
    const auto running = start(run_script("job", {"--ttl", "1s"}, "echo ready; read line; exit 0"));
    const auto reporting =
        start(run_script("other", {"--ttl", "1s", "--json"}, "echo ready; read line; exit 0"));
    for (const auto& each : {running.get(), reporting.get()}) {
        each->wait_for_output("ready");
        each->signal(SIGSTOP);
        each->close_input();
    }
    for (const char* name : {"job", "other"}) {
        ASSERT_EQ(finish(run_script(name, {}, "true"))->wait(), 0);
    }
    running->signal(SIGCONT);
    reporting->signal(SIGCONT);
    EXPECT_EQ(running->wait(), 76);
    EXPECT_EQ(reporting->wait(), 76);
    EXPECT_THAT(running->errors(), Not(HasSubstr("killed the command")));
    EXPECT_THAT(running->errors(), HasSubstr("had ended by itself"));
    const auto report = parse(reporting->last_error_line());
    EXPECT_EQ(report.at("command").at("exit_code").as_int64(), 0);
    EXPECT_THAT(std::string{report.at("message").as_string()}, HasSubstr("had ended by itself"));
}

TEST_F(loss, does_not_end_what_a_finished_command_left_in_the_background) {
    const auto running = finish(
        run_script("job", {}, "setsid sleep 60 > /dev/null 2>&1 & echo $! > $PIDS/left"), with_pids());
    EXPECT_EQ(running->wait(), 0);
    const auto left = pid("left");
    EXPECT_TRUE(exists(left));
    ::kill(left, SIGKILL);
}

TEST_F(loss, takes_what_stayed_in_the_group_of_a_command_that_obeyed) {
    const auto running = start(
        run_script("job", {"--ttl", "3s", "--grace", "200ms"},
                   "sh -c 'trap \"\" TERM; echo $$ > $PIDS/rest; while [ -d $PIDS ]; do sleep 0.05; "
                   "done' & trap 'exit 0' TERM; while :; do sleep 0.05; done"),
        with_pids());
    const auto rest = pid("rest");
    revoke("job");
    EXPECT_EQ(running->wait(), 76);
    EXPECT_FALSE(exists(rest));
}

TEST_F(loss, wakes_a_stopped_command_so_that_it_can_obey) {
    const auto running = start(run_script("job", {"--ttl", "20s", "--grace", "5s"},
                                          "trap 'echo told; exit 0' TERM; echo $$ > $PIDS/pid; "
                                          "while :; do sleep 0.05; done"),
                               with_pids());
    const auto child = pid("pid");
    ::kill(child, SIGSTOP);
    revoke("job");
    EXPECT_EQ(running->wait(), 76);
    EXPECT_EQ(running->output(), "told\n");
}

}  // namespace
}  // namespace holdfast::cli::testing
