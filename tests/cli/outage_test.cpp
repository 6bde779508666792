#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <support/redis_servers.hpp>

#include "fixture.hpp"

/// One rule: the wait of `run` covers everything from its start. A server that is not there is waited
/// for like a lock that is held; what refuses us is not.
namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::redis_server;
using testing_support::redis_server_options;

[[nodiscard]] std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

class outage : public cli_test {
protected:
    [[nodiscard]] static program_options on(const redis_server& server, const std::string& more = {}) {
        return {.environment = {
                    {"HOLDFAST_STORE", "redis://127.0.0.1:" + std::to_string(server.port()) + more}}};
    }

    /// Somebody else holds the lock, without renewing it. Scripts are loaded: a hung server does what
    /// was sent to it when it goes on, but does not ask for a script again.
    void hold_from_elsewhere() {
        ASSERT_EQ(finish(run_script("warm", {}, "true"), on(server_))->wait(), 0);
        server_.cli({"HSET", "job", "9f0c1e52-4f0e-4a6e-8f0a-0123456789ab:47", "1"});
        server_.cli({"PEXPIRE", "job", "60000"});
    }
    void wait_for_listener() const {
        wait_until("the waiter", [&] {
            return server_.cli({"PUBSUB", "NUMSUB", "redisson_lock__channel:{job}"}).ends_with("1");
        });
    }

    /// Until a request has reached a server that hangs.
    void wait_for_unread_request() const {
        char address[32];
        std::snprintf(address, sizeof address, "0100007F:%04X", server_.port());
        wait_until("a request", [&] {
            std::ifstream connections{"/proc/net/tcp"};
            for (std::string line; std::getline(connections, line);) {
                std::istringstream parts{line};
                std::string number, local, remote, state, queues;
                parts >> number >> local >> remote >> state >> queues;
                if (local == address && state == "01" && !queues.ends_with(":00000000")) {
                    return true;
                }
            }
            return false;
        });
    }

    redis_server server_;
};

TEST_F(outage, a_server_that_starts_later_is_waited_for) {
    server_.stop();
    const auto patient = start(run_script("job", {}, "echo mine"), on(server_));
    const auto limited = start(run_script("job", {"--wait", "60s"}, "echo mine"), on(server_));
    patient->wait_for_errors("until it is there");
    EXPECT_THAT(patient->errors(), HasSubstr("redis://127.0.0.1:" + std::to_string(server_.port())));
    limited->wait_for_errors("until --wait is over");
    server_.start_again();
    EXPECT_EQ(patient->wait(), 0);
    EXPECT_EQ(limited->wait(), 0);
}

TEST_F(outage, while_waiting_is_waited_for_too) {
    hold_from_elsewhere();
    const auto patient = start(run_script("job", {}, "echo mine"), on(server_));
    wait_for_listener();
    server_.kill_hard();
    patient->wait_for_errors("until it is there");
    server_.start_again();
    EXPECT_EQ(patient->wait(), 0);
}

TEST_F(outage, that_lasts_as_long_as_the_wait_ends_with_69) {
    server_.stop();
    const auto at_once = finish(run_script("job", {"--no-wait"}, "true"), on(server_));
    EXPECT_EQ(at_once->wait(), 69);
    const auto limited = finish(run_script("job", {"--wait", "300ms", "--json"}, "true"), on(server_));
    EXPECT_EQ(limited->wait(), 69);
    const auto report = parse(limited->last_error_line());
    EXPECT_EQ(report.at("outcome").as_string(), "failed");
    EXPECT_GE(report.at("waited_ms").as_int64(), 300);
    EXPECT_THAT(std::string{report.at("store").as_string()}, HasSubstr(std::to_string(server_.port())));
}

TEST_F(outage, a_wait_ends_in_time_at_a_server_that_does_not_answer) {
    server_.pause();
    const auto began = epoch_now();
    // The first attempt has the connection's time, the second what is left of the wait.
    const auto limited =
        finish(run_script("job", {"--wait", "400ms"}, "true"), on(server_, "?connect_timeout=200"));
    EXPECT_EQ(limited->wait(), 69);
    EXPECT_GE(epoch_now() - began, 400);
    const auto stopped = start(run_script("job", {}, "true"), on(server_, "?connect_timeout=600000"));
    stopped->signal(SIGTERM);
    EXPECT_EQ(stopped->wait(), 128 + SIGTERM);
}

TEST_F(outage, a_signal_ends_the_wait_for_a_server) {
    server_.stop();
    const auto patient = start(run_script("job", {}, "true"), on(server_));
    patient->wait_for_errors("until it is there");
    patient->signal(SIGINT);
    EXPECT_EQ(patient->wait(), 128 + SIGINT);
}

TEST_F(outage, what_is_refused_is_not_waited_for) {
    const redis_server guarded{redis_server_options{.password = "right"}};
    EXPECT_EQ(finish(run_script("job", {}, "true"), on(guarded))->wait(), 77);
    const auto tls = finish({"run", "job", "--store",
                             "rediss://127.0.0.1:" + std::to_string(server_.port()), "--", "true"});
    EXPECT_EQ(tls->wait(), 78) << tls->errors();
    EXPECT_EQ(finish({"run", "job", "--store", "redis://:::", "--", "true"})->wait(), 78);
}

/// Nothing is left to release: the time-outs of the release and of the client's end used to follow.
TEST_F(outage, run_ends_with_its_command_when_the_store_is_gone) {
    const auto running =
        start(run_script("job", {"--ttl", "1s", "--json"}, "echo ready; exec sleep 60"), on(server_));
    running->wait_for_output("ready");
    server_.pause();
    EXPECT_EQ(running->wait(), 76);
    const auto over = epoch_now();
    server_.resume();
    const auto report = parse(running->last_error_line());
    EXPECT_EQ(report.at("loss_reason").as_string(), "lost");
    EXPECT_LT(over - report.at("command").at("ended_ms").as_int64(), 1500);
}

/// The question who holds the lock, and the end of the client, used to follow: four seconds more.
TEST_F(outage, a_wait_ends_in_time_at_a_server_that_hangs_in_the_middle) {
    hold_from_elsewhere();
    const auto began = epoch_now();
    const auto limited = start(run_script("job", {"--wait", "2s"}, "true"), on(server_));
    wait_for_listener();
    server_.pause();
    EXPECT_EQ(limited->wait(), 75);
    EXPECT_LT(epoch_now() - began, 2000 + 2000);
    EXPECT_THAT(limited->errors(), HasSubstr("no answer in time"));
    server_.resume();
}

TEST_F(outage, a_wait_ends_in_time_at_a_server_that_dies_in_the_middle) {
    hold_from_elsewhere();
    const auto began = epoch_now();
    const auto limited = start(run_script("job", {"--wait", "2s"}, "true"), on(server_));
    wait_for_listener();
    server_.kill_hard();
    EXPECT_EQ(limited->wait(), 69);
    EXPECT_LT(epoch_now() - began, 2000 + 1500);
    EXPECT_THAT(limited->errors(), HasSubstr("Connection refused"));
}

TEST_F(outage, a_signal_ends_the_wait_at_a_server_that_hangs_and_leaves_nothing) {
    hold_from_elsewhere();
    const auto stopped = start(run_script("job", {}, "true"), on(server_));
    wait_for_listener();
    server_.pause();
    wait_for_unread_request();
    const auto began = epoch_now();
    stopped->signal(SIGINT);
    EXPECT_EQ(stopped->wait(), 128 + SIGINT);
    EXPECT_LT(epoch_now() - began, 1500);
    server_.resume();
    server_.cli({"DEL", "job"});
    // What was granted to the one that left would last for its ttl.
    EXPECT_EQ(finish(run_script("job", {"--wait", "10s"}, "true"), on(server_))->wait(), 0);
}

TEST_F(outage, a_wait_for_a_server_that_never_came_tells_why) {
    server_.stop();
    const auto limited = finish(run_script("job", {"--wait", "300ms"}, "true"), on(server_));
    EXPECT_EQ(limited->wait(), 69);
    EXPECT_THAT(limited->last_error_line(), HasSubstr("no answer until the end of --wait"));
    EXPECT_THAT(limited->last_error_line(), HasSubstr("the last attempt: Connection refused"));
}

/// A command that kept its lock: one time-out, of the question whether the store is there.
TEST_F(outage, at_the_end_of_the_command_costs_one_time_out) {
    const auto running =
        start(run_script("job", {"--ttl", "60s", "--json"}, "echo ready; read line"), on(server_));
    running->wait_for_output("ready");
    server_.pause();
    running->close_input();
    EXPECT_EQ(running->wait(), 1);
    const auto over = epoch_now();
    server_.resume();
    const auto report = parse(running->last_error_line());
    EXPECT_EQ(report.at("released").as_string(), "unknown");
    EXPECT_EQ(report.at("release_error").as_string(), "unavailable");
    EXPECT_LT(over - report.at("command").at("ended_ms").as_int64(), 2300);
}

TEST_F(outage, a_server_that_is_gone_at_the_end_of_the_command_is_not_waited_for) {
    const auto running =
        start(run_script("job", {"--ttl", "60s"}, "echo ready; read line; exit 0"), on(server_));
    running->wait_for_output("ready");
    server_.kill_hard();
    const auto began = epoch_now();
    running->close_input();
    EXPECT_EQ(running->wait(), 0);
    EXPECT_LT(epoch_now() - began, 1500);
    EXPECT_THAT(running->errors(),
                ::testing::MatchesRegex("holdfast: \"job\" could not be released \\(.*Connection "
                                        "refused.*\\); it ends by itself within [0-9]+[ms]\n"));
}

TEST_F(outage, that_ends_a_lease_is_told_as_the_reason_and_no_other) {
    const auto running =
        start(run_script("job", {"--ttl", "1s", "-v"}, "echo ready; exec sleep 60"), on(server_));
    running->wait_for_output("ready");
    server_.kill_hard();
    EXPECT_EQ(running->wait(), 76);
    EXPECT_THAT(running->last_error_line(),
                ::testing::ContainsRegex("it was last renewed [0-9]+m?s ago: .*Connection refused"));
    EXPECT_THAT(running->errors(), Not(HasSubstr("shut down")));
}

TEST_F(outage, a_lock_that_was_deleted_in_the_store_is_told_apart) {
    const auto running = start(run_script("job", {}, "echo ready; read line; exit 0"), on(server_));
    running->wait_for_output("ready");
    server_.cli({"DEL", "job"});
    running->close_input();
    EXPECT_EQ(running->wait(), 76);
    EXPECT_THAT(running->last_error_line(), HasSubstr("the store does not have it any more"));
}

/// A release may be refused although the lock was granted.
class refused_release : public outage {
protected:
    static redis_server_options with_user() { return {.acl = "user alice on >secret ~* &* +@all\n"}; }
    [[nodiscard]] program_options as_alice() const {
        return {.environment = {{"HOLDFAST_STORE",
                                 "redis://alice:secret@127.0.0.1:" + std::to_string(guarded_.port())}}};
    }
    /// A run whose user loses a permission before the end.
    [[nodiscard]] std::unique_ptr<program> run_without(const std::string& permission,
                                                       const words& options) const {
        auto running = start(run_script("job", options, "echo ready; read line; exit 0"), as_alice());
        running->wait_for_output("ready");
        guarded_.cli({"ACL", "SETUSER", "alice", "-" + permission});
        running->close_input();
        EXPECT_EQ(running->wait(), 0) << running->errors();
        return running;
    }

    redis_server guarded_{with_user()};
};

TEST_F(refused_release, names_the_missing_permission) {
    const std::vector<std::pair<std::string, words>> cases{
        {"hgetall", {"--shared"}}, {"del", {}}, {"hmget", {}}};
    for (const auto& [permission, options] : cases) {
        const auto running = run_without(permission, options);
        EXPECT_THAT(running->errors(),
                    HasSubstr("\"job\" could not be released (a permission is missing"));
        EXPECT_THAT(running->errors(), ::testing::ContainsRegex("(in `|')[^`]*(" + permission + "|" +
                                                                upper(permission) + ")"));
        EXPECT_THAT(running->errors(), HasSubstr("; it ends by itself within "));
        guarded_.cli({"ACL", "SETUSER", "alice", "+@all"});
        guarded_.cli({"DEL", "job"});
    }
}

/// The lock is free, though nobody can be told.
TEST_F(refused_release, is_none_without_the_permission_to_publish) {
    const auto running = run_without("publish", {"--json"});
    EXPECT_EQ(parse(running->last_error_line()).at("released").as_string(), "released");
    EXPECT_EQ(guarded_.cli({"EXISTS", "job"}), "0");
}

TEST_F(refused_release, is_told_in_json) {
    const auto report = parse(run_without("del", {"--json"})->last_error_line());
    EXPECT_EQ(report.at("outcome").as_string(), "completed");
    EXPECT_EQ(report.at("released").as_string(), "unknown");
    EXPECT_EQ(report.at("release_error").as_string(), "unauthorised");
    EXPECT_THAT(std::string{report.at("message").as_string()}, HasSubstr("a permission is missing"));
}

}  // namespace
}  // namespace holdfast::cli::testing
