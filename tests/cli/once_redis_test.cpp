#include <gmock/gmock.h>

#include <csignal>

#include <support/redis_servers.hpp>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// `--once-per` on Redis, where users may be allowed some keys only.
class once_on_redis : public cli_test {
protected:
    /// A user that may do everything, but with these keys only.
    void add_user(const std::string& name, const words& keys) const {
        words command{"ACL", "SETUSER", name, "on", ">secret", "+@all", "&*"};
        command.insert(command.end(), keys.begin(), keys.end());
        ASSERT_EQ(server_.cli(command), "OK");
    }
    [[nodiscard]] program_options as(const std::string& user) const {
        return {.environment = {{"HOLDFAST_STORE", "redis://" + user + ":secret@127.0.0.1:" +
                                                       std::to_string(server_.port())}}};
    }
    /// As docs/redis.md has them for names that start with `stock:`.
    [[nodiscard]] static words documented_keys() {
        return {"~stock:*", "~{stock:*", "~redisson_*", "~holdfast_*"};
    }

    /// Those of one lock, without its marker.
    [[nodiscard]] static words keys_of_the_lock() {
        return {"~stock:7", "~{stock:7}*", "~redisson_*", "~holdfast_*"};
    }

    testing_support::redis_server server_;
};

TEST_F(once_on_redis, the_documented_keys_are_enough) {
    add_user("cron", documented_keys());
    const words command{"run", "stock:7", "--once-per", "1h", "--", "echo", "ran"};
    EXPECT_EQ(finish(command, as("cron"))->output(), "ran\n");
    EXPECT_EQ(finish(command, as("cron"))->output(), "");
    EXPECT_THAT(finish({"inspect", "stock:7"}, as("cron"))->output(), HasSubstr("not again before"));
    const auto again =
        finish({"run", "stock:7", "--once-per", "2h", "--again", "--", "echo", "ran"}, as("cron"));
    EXPECT_EQ(again->output(), "ran\n");
    EXPECT_EQ(again->errors(), "");
    EXPECT_GT(std::stol(server_.cli({"PTTL", "stock:7:once-per"})), 3'600'000);
}

TEST_F(once_on_redis, inspect_shows_the_lock_also_to_those_who_may_not_look_at_the_marker) {
    add_user("reader", keys_of_the_lock());
    const auto shown = finish({"inspect", "stock:7"}, as("reader"));
    EXPECT_EQ(shown->wait(), 0);
    EXPECT_THAT(shown->output(), HasSubstr("free"));
    EXPECT_THAT(shown->output(), HasSubstr("unknown: no permission for the key stock:7:once-per"));
}

TEST_F(once_on_redis, a_run_that_may_not_look_at_the_marker_does_not_run) {
    add_user("reader", keys_of_the_lock());
    const auto refused =
        finish({"run", "stock:7", "--once-per", "1h", "--", "echo", "ran"}, as("reader"));
    EXPECT_EQ(refused->wait(), 77);
    EXPECT_EQ(refused->output(), "");
    EXPECT_THAT(refused->errors(), HasSubstr("stock:7:once-per"));
}

/// The permission that is missing for the look at the marker is missing for the release, too.
TEST_F(once_on_redis, a_lock_that_cannot_be_released_before_the_command_ran_is_told) {
    const words keys{"~op*", "~{op*", "~holdfast_*"};
    add_user("op", keys);
    const auto refused = finish({"run", "op", "--once-per", "10s", "--", "echo", "RAN"}, as("op"));
    EXPECT_EQ(refused->wait(), 77);
    EXPECT_EQ(refused->output(), "");
    EXPECT_THAT(refused->errors(),
                AllOf(HasSubstr("cannot inspect \"op:once-per\""),
                      HasSubstr("holdfast: \"op\" could not be released (a permission is missing: "),
                      HasSubstr("; it ends by itself within 30s\n")));
    EXPECT_EQ(server_.cli({"EXISTS", "op"}), "1");
    server_.cli({"DEL", "op"});
    const auto in_json =
        finish({"run", "op", "--once-per", "10s", "--json", "--", "echo", "RAN"}, as("op"));
    EXPECT_EQ(in_json->wait(), 77);
    const auto report = parse(in_json->last_error_line());
    EXPECT_EQ(report.at("outcome").as_string(), "failed");
    EXPECT_EQ(report.at("released").as_string(), "unknown");
    EXPECT_EQ(report.at("release_error").as_string(), "unauthorised");
    EXPECT_FALSE(report.contains("marker"));
    EXPECT_THAT(std::string{report.at("message").as_string()},
                HasSubstr("; it ends by itself within 30s"));
    server_.cli({"DEL", "op"});
    const auto not_started = finish({"run", "op", "--json", "--", "/nonexistent/command"}, as("op"));
    EXPECT_EQ(not_started->wait(), 127);
    const auto second = parse(not_started->last_error_line());
    EXPECT_EQ(second.at("release_error").as_string(), "unauthorised");
    EXPECT_THAT(std::string{second.at("message").as_string()},
                AllOf(HasSubstr("cannot execute"), HasSubstr("; it ends by itself within 30s")));
}

TEST_F(once_on_redis, a_lock_that_cannot_be_released_after_a_skip_is_told) {
    add_user("cron", {"~*"});
    add_user("op", {"~op*", "~{op*", "~holdfast_*", "~redisson_*once-per*"});
    ASSERT_EQ(finish({"run", "op", "--once-per", "1h", "--", "true"}, as("cron"))->wait(), 0);
    const auto skipped = finish({"run", "op", "--once-per", "1h", "--json", "--", "true"}, as("op"));
    EXPECT_EQ(skipped->wait(), 0);
    const auto report = parse(skipped->last_error_line());
    EXPECT_EQ(report.at("outcome").as_string(), "skipped");
    EXPECT_EQ(report.at("release_error").as_string(), "unauthorised");
    EXPECT_THAT(std::string{report.at("message").as_string()},
                AllOf(HasSubstr("already ran"), HasSubstr("\"op\" could not be released (")));
}

TEST_F(once_on_redis, a_lock_that_is_released_before_the_command_ran_is_said_to_be) {
    add_user("reader", keys_of_the_lock());
    const auto refused =
        finish({"run", "stock:7", "--once-per", "1h", "--json", "--", "echo", "ran"}, as("reader"));
    EXPECT_EQ(refused->wait(), 77);
    const auto report = parse(refused->last_error_line());
    EXPECT_EQ(report.at("released").as_string(), "released");
    EXPECT_THAT(std::string{report.at("message").as_string()}, Not(HasSubstr("could not be released")));
    EXPECT_EQ(server_.cli({"EXISTS", "stock:7"}), "0");
}

/// With a prefix a name and the marker of another one may have the same key.
TEST_F(once_on_redis, a_job_that_a_prefix_makes_the_marker_of_another_is_refused) {
    const auto with_prefix = [this](const std::string& prefix) -> program_options {
        return {
            .environment = {{"HOLDFAST_STORE", "redis://127.0.0.1:" + std::to_string(server_.port()) +
                                                   "?prefix=" + prefix}}};
    };
    add_user("cron", {"~*"});
    ASSERT_EQ(finish({"run", "x", "--once-per", "1h", "--", "true"}, as("cron"))->wait(), 0);
    const std::vector<std::pair<std::string, std::string>> same{{"x:", "once-per"},
                                                                {"x", ":once-per"},
                                                                {"x%3Aonce-pe", "r"},
                                                                {"x:once-per~01234567", "89abcdef"}};
    for (const auto& [prefix, name] : same) {
        const auto refused =
            finish({"run", name, "--no-wait", "--", "echo", "RAN"}, with_prefix(prefix));
        EXPECT_EQ(refused->wait(), 64) << prefix << " " << name;
        EXPECT_EQ(refused->output(), "");
        EXPECT_THAT(refused->errors(), HasSubstr("no name for a lock"));
    }
    const auto in_a_quorum =
        finish({"run", "once-per", "--no-wait", "--", "true"},
               {.environment = {
                    {"HOLDFAST_STORE", "quorum:memory:a memory:b redis://127.0.0.1:1?prefix=x:"}}});
    EXPECT_EQ(in_a_quorum->wait(), 64);
    EXPECT_EQ(finish({"run", "once-per", "--", "echo", "ran"}, with_prefix("x"))->output(), "ran\n");
    EXPECT_EQ(finish({"run", "x", "--once-per", "1h", "--", "echo", "RAN"}, as("cron"))->output(), "");
}

/// A run whose marker cannot be left may be repeated by another host within the period.
class marker_on_redis : public once_on_redis {
protected:
    void SetUp() override { add_user("cron", {"~*"}); }
    [[nodiscard]] std::unique_ptr<program> start_job(const words& options) const {
        words command{"run", "job", "--once-per", "1h"};
        command.insert(command.end(), options.begin(), options.end());
        for (const char* word : {"--", "sh", "-c", "echo ready; read line; exit 0"}) {
            command.emplace_back(word);
        }
        auto running = start(command, as("cron"));
        running->wait_for_output("ready");
        return running;
    }
    [[nodiscard]] boost::json::object report_without(const std::string& permission) const {
        const auto running = start_job({"--json"});
        server_.cli({"ACL", "SETUSER", "cron", "-" + permission});
        running->close_input();
        EXPECT_EQ(running->wait(), 0) << running->errors();
        server_.cli({"ACL", "SETUSER", "cron", "+@all"});
        return parse(running->last_error_line());
    }
    [[nodiscard]] std::unique_ptr<program> run_again() const {
        return finish({"run", "job", "--once-per", "1h", "--", "echo", "ran"}, as("cron"));
    }
};

constexpr const char* somebody = "9f0c1e52-4f0e-4a6e-8f0a-0123456789ab:47";

TEST_F(marker_on_redis, is_left_and_said_so) {
    const auto running = start_job({"--json"});
    running->close_input();
    EXPECT_EQ(running->wait(), 0);
    const auto report = parse(running->last_error_line());
    EXPECT_EQ(report.at("marker").as_string(), "left");
    EXPECT_FALSE(report.contains("marker_error"));
}

TEST_F(marker_on_redis, waits_for_a_server_that_does_not_answer_when_the_command_ends) {
    const auto running = start_job({"--json"});
    server_.pause();
    running->close_input();
    running->wait_for_errors("the --once-per marker of \"job\" cannot be left yet (");
    for (const int passing : {SIGCHLD, SIGWINCH, SIGCONT, SIGUSR1}) {
        running->signal(passing);
    }
    server_.resume();
    EXPECT_EQ(running->wait(), 0);
    EXPECT_EQ(parse(running->last_error_line()).at("marker").as_string(), "left");
    EXPECT_EQ(run_again()->output(), "");
}

TEST_F(marker_on_redis, that_is_lost_with_the_server_is_told) {
    const auto running = start_job({"--json", "--ttl", "2s"});
    server_.kill_hard();
    running->close_input();
    EXPECT_EQ(running->wait(), 0);
    const auto report = parse(running->last_error_line());
    EXPECT_EQ(report.at("marker").as_string(), "missing");
    EXPECT_EQ(report.at("marker_error").as_string(), "unavailable");
    EXPECT_THAT(std::string{report.at("message").as_string()},
                HasSubstr("the --once-per marker of \"job\" is missing"));
}

/// When the period is over nothing has to keep others from running.
TEST_F(marker_on_redis, of_a_period_that_ends_while_the_server_is_away_is_not_claimed) {
    const auto ran = finish(
        {"run", "job", "--once-per", "2s", "--json", "--", "kill", "-9", std::to_string(server_.pid())},
        as("cron"));
    EXPECT_EQ(ran->wait(), 0);
    const auto report = parse(ran->last_error_line());
    EXPECT_FALSE(report.contains("marker")) << report.at("marker");
    EXPECT_FALSE(report.contains("marker_error"));
    EXPECT_EQ(report.at("released").as_string(), "unknown");
    EXPECT_THAT(std::string{report.at("message").as_string()}, Not(HasSubstr("--once-per")));
}

TEST_F(marker_on_redis, that_is_refused_is_told_and_keeps_nobody_from_running) {
    for (const std::string permission : {"hdel", "hset", "pexpire"}) {
        const auto report = report_without(permission);
        EXPECT_EQ(report.at("marker").as_string(), "missing") << permission;
        EXPECT_EQ(report.at("marker_error").as_string(), "unauthorised") << permission;
        EXPECT_THAT(std::string{report.at("message").as_string()},
                    HasSubstr("a permission is missing"));
        server_.cli({"DEL", "job"});
        const auto marker_left = std::stol(server_.cli({"PTTL", "job:once-per"}));
        EXPECT_LE(marker_left, 2000) << permission;
        const auto again = run_again();
        EXPECT_EQ(again->wait(), 0) << again->errors();
        EXPECT_EQ(again->output(), "ran\n");
        EXPECT_EQ(again->errors(), "");
        server_.cli({"DEL", "job:once-per", "holdfast_holds:{job:once-per}"});
    }
}

/// The store has answered: asking again for ten seconds would not help.
TEST_F(marker_on_redis, that_is_refused_is_told_at_once_with_the_permission) {
    for (const std::string permission : {"hdel", "hset", "pexpire"}) {
        const auto running = start_job({});
        server_.cli({"ACL", "SETUSER", "cron", "-" + permission});
        running->close_input();
        EXPECT_EQ(running->wait(), 0);
        server_.cli({"ACL", "SETUSER", "cron", "+@all"});
        EXPECT_THAT(running->errors(),
                    AllOf(HasSubstr("the --once-per marker of \"job\" is missing (a permission is "
                                    "missing: "),
                          HasSubstr("+" + permission), Not(HasSubstr("trying again"))));
        server_.cli({"DEL", "job", "job:once-per", "holdfast_holds:{job:once-per}"});
    }
}

TEST_F(marker_on_redis, does_not_need_the_permission_to_look_at_the_lock) {
    EXPECT_EQ(report_without("hlen").at("marker").as_string(), "left");
    EXPECT_EQ(run_again()->output(), "");
}

/// As a server that refuses HDEL left it before that was tried first.
TEST_F(marker_on_redis, with_both_fields_counts) {
    server_.cli({"HSET", "job:once-per", somebody, "1", std::string{somebody} + ":lingering", "1"});
    server_.cli({"PEXPIRE", "job:once-per", "3000000"});
    const auto skipped = run_again();
    EXPECT_EQ(skipped->wait(), 0) << skipped->errors();
    EXPECT_EQ(skipped->output(), "");
    EXPECT_THAT(skipped->errors(), HasSubstr("already ran"));
    const auto again =
        finish({"run", "job", "--once-per", "2h", "--again", "--", "echo", "ran"}, as("cron"));
    EXPECT_EQ(again->output(), "ran\n");
    EXPECT_EQ(again->errors(), "");
    EXPECT_GT(std::stol(server_.cli({"PTTL", "job:once-per"})), 3'600'000);
}

/// Nobody works under it any more, wherever that was: neither a question nor --force is needed.
TEST_F(marker_on_redis, a_lock_that_another_host_gave_up_for_later_is_released_without_force) {
    server_.cli({"HSET", "job", std::string{somebody} + ":lingering", "1"});
    server_.cli({"PEXPIRE", "job", "3000000"});
    const auto released = finish({"release", "job"}, as("cron"));
    EXPECT_EQ(released->wait(), 0) << released->errors();
    EXPECT_EQ(server_.cli({"EXISTS", "job"}), "0");
}

TEST_F(marker_on_redis, of_a_run_that_died_before_it_was_complete_does_not_count) {
    server_.cli({"HSET", "job:once-per", somebody, "1"});
    server_.cli({"PEXPIRE", "job:once-per", "700"});
    const auto again = run_again();
    EXPECT_EQ(again->output(), "ran\n");
    EXPECT_EQ(again->errors(), "");
    EXPECT_EQ(run_again()->output(), "");
}

/// The marker is not in the slot of the lock.
class marker_in_cluster : public cli_test {};

TEST_F(marker_in_cluster, a_marker_whose_slot_moves_is_waited_for_at_the_start_and_told_at_the_end) {
    testing_support::redis_cluster cluster{{.masters = 2, .replicas_each = 0}};
    const program_options on_cluster{
        .environment = {
            {"HOLDFAST_STORE", "redis+cluster://127.0.0.1:" + std::to_string(cluster.node(0).port())}}};
    const auto slot = static_cast<std::uint16_t>(
        std::stoi(cluster.node(0).cli({"CLUSTER", "KEYSLOT", "job:once-per"})));
    auto& target = cluster.node_without_slot(slot);
    cluster.begin_migration(slot, target);
    const auto waiting = start(run_script("job", {"--once-per", "1h"}, "echo ran"), on_cluster);
    waiting->wait_for_errors("until it is there");
    EXPECT_EQ(waiting->output(), "");
    // A lock that is lost before the command could run is taken anew.
    EXPECT_EQ(finish({"release", "job", "--force"}, on_cluster)->wait(), 0);
    cluster.finish_migration(slot, target);
    EXPECT_EQ(waiting->wait(), 0);
    EXPECT_EQ(waiting->output(), "ran\n");
    EXPECT_THAT(finish(run_script("job", {"--once-per", "1h"}, "echo ran"), on_cluster)->errors(),
                HasSubstr("already ran"));

    // The lock's own slot begins to move while the command runs.
    const auto slot_of_lock =
        static_cast<std::uint16_t>(std::stoi(cluster.node(0).cli({"CLUSTER", "KEYSLOT", "job"})));
    auto& other = cluster.node_without_slot(slot_of_lock);
    const auto running = start(run_script("job", {"--once-per", "1h", "--again", "--json", "--verbose"},
                                          "echo ready; read line; exit 0"),
                               on_cluster);
    running->wait_for_output("ready");
    cluster.begin_migration(slot_of_lock, other);
    running->close_input();
    EXPECT_EQ(running->wait(), 0);
    const auto end = parse(running->last_error_line());
    EXPECT_EQ(end.at("released").as_string(), "released");
    EXPECT_EQ(end.at("marker").as_string(), "left");
    EXPECT_THAT(running->errors(), HasSubstr("holdfast: \"job\" released\n"));
    cluster.migrate_keys(slot_of_lock, other);
    cluster.finish_migration(slot_of_lock, other);

    cluster.begin_migration(slot, cluster.node_without_slot(slot));
    const auto unmarked =
        start(run_script("job", {"--once-per", "1h", "--again", "--json"}, "true"), on_cluster);
    unmarked->wait_for_errors("the --once-per marker of \"job\" cannot be left yet (");
    // It did answer.
    unmarked->wait_for_errors("the slot is being moved to another server");
    EXPECT_THAT(unmarked->errors(), Not(HasSubstr("does not answer")));
    unmarked->signal(SIGTERM);
    EXPECT_EQ(unmarked->wait(), 0);
    const auto report = parse(unmarked->last_error_line());
    EXPECT_EQ(report.at("marker").as_string(), "missing");
    EXPECT_EQ(report.at("marker_error").as_string(), "unavailable");
}

}  // namespace
}  // namespace holdfast::cli::testing
