#include <gmock/gmock.h>

#include <csignal>
#include <iterator>
#include <sstream>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

class signals : public cli_test {
protected:
    /// The numbers that a program prints.
    [[nodiscard]] static std::vector<pid_t> finish_program(const words& command) {
        program ran{command};
        ran.wait();
        std::istringstream text{ran.output()};
        return {std::istream_iterator<pid_t>{text}, {}};
    }
};

class forwarded : public cli_test, public ::testing::WithParamInterface<std::pair<int, const char*>> {};

TEST_P(forwarded, to_the_command) {
    const auto [number, name] = GetParam();
    const auto running =
        start(run_script("job", {},
                         std::string{"trap 'echo got; exit 42' "} + name +
                             "; echo ready; while :; do read line || sleep 0.05; done"));
    running->wait_for_output("ready");
    running->signal(number);
    EXPECT_EQ(running->wait(), 42);
    EXPECT_THAT(running->output(), ::testing::HasSubstr("got"));
}

INSTANTIATE_TEST_SUITE_P(signals, forwarded,
                         ::testing::Values(std::pair{SIGHUP, "HUP"}, std::pair{SIGINT, "INT"},
                                           std::pair{SIGQUIT, "QUIT"}, std::pair{SIGTERM, "TERM"},
                                           std::pair{SIGUSR1, "USR1"}, std::pair{SIGUSR2, "USR2"},
                                           std::pair{SIGWINCH, "WINCH"}, std::pair{SIGTSTP, "TSTP"},
                                           std::pair{SIGCONT, "CONT"}),
                         [](const auto& each) { return each.param.second; });

TEST_F(signals, reach_every_process_of_the_group) {
    const auto grandchild = file("grandchild");
    const auto running =
        start(run_script("job", {}, "sleep 60 & echo $! > " + grandchild.string() + "; wait"));
    const auto id = static_cast<pid_t>(std::stol(wait_for_line(grandchild)));
    running->signal(SIGTERM);
    EXPECT_EQ(running->wait(), 128 + SIGTERM);
    wait_until("the grandchild's end", [&] { return !exists(id); });
}

TEST_F(signals, end_the_command_and_give_its_status) {
    const auto running = start(run_script("job", {}, "echo ready; exec sleep 60"));
    running->wait_for_output("ready");
    running->signal(SIGTERM);
    EXPECT_EQ(running->wait(), 128 + SIGTERM);
    EXPECT_TRUE(inspect("job").at("free").as_bool());
}

TEST_F(signals, a_command_that_handles_term_decides_about_its_status) {
    const auto running =
        start(run_script("job", {}, "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"));
    running->wait_for_output("ready");
    running->signal(SIGTERM);
    EXPECT_EQ(running->wait(), 0);
}

class cancelled : public cli_test, public ::testing::WithParamInterface<int> {};

TEST_P(cancelled, while_waiting_and_nothing_is_left_behind) {
    const auto holder = hold("job");
    const auto waiting = start({"run", "job", "--", "echo", "ran"});
    wait_for_waiters("job", 1);
    waiting->signal(GetParam());
    EXPECT_EQ(waiting->wait(), 128 + GetParam());
    EXPECT_EQ(waiting->output(), "");
    wait_for_waiters("job", 0);
    holder->close_input();
    EXPECT_EQ(holder->wait(), 0);
    EXPECT_TRUE(inspect("job").at("free").as_bool());
}

INSTANTIATE_TEST_SUITE_P(signals, cancelled, ::testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT));

TEST_F(signals, that_were_ignored_at_the_start_stay_ignored) {
    const auto holder = hold("job");
    const auto waiting =
        start(run_script("job", {}, "kill -HUP $$; echo ran"), {.ignored_signal = SIGHUP});
    wait_for_waiters("job", 1);
    waiting->signal(SIGHUP);
    holder->close_input();
    EXPECT_EQ(waiting->wait(), 0);
    EXPECT_EQ(waiting->output(), "ran\n");
}

TEST_F(signals, a_stopped_command_does_not_stop_renewal) {
    const auto pid = file("pid");
    const auto running =
        start(run_script("job", {"--ttl", "1s"}, "echo $$ > " + pid.string() + "; read line; exit 7"));
    const auto child = static_cast<pid_t>(std::stol(wait_for_line(pid)));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds{2500};
    ::kill(child, SIGSTOP);
    wait_until("more than two ttls", [&] { return std::chrono::steady_clock::now() > deadline; });
    EXPECT_EQ(finish({"run", "job", "--no-wait", "--", "true"})->wait(), 75);
    running->signal(SIGCONT);
    running->close_input();
    EXPECT_EQ(running->wait(), 7);
}

TEST_F(signals, kill_of_the_program_kills_the_command) {
    const auto pid = file("pid");
    const auto running = start(run_script("job", {}, "echo $$ > " + pid.string() + "; exec sleep 60"));
    const auto child = static_cast<pid_t>(std::stol(wait_for_line(pid)));
    running->signal(SIGKILL);
    EXPECT_EQ(running->wait(), 128 + SIGKILL);
    wait_until("the command's end", [&] { return !exists(child); });
    EXPECT_EQ(finish({"run", "job", "--wait", "15s", "--", "true"})->wait(), 0);
}

TEST_F(signals, kill_of_the_program_kills_the_group_of_the_command) {
    const auto pid = file("pid");
    const auto running =
        start(run_script("job", {}, "sleep 60 & echo $! > " + pid.string() + "; wait"));
    const auto grandchild = static_cast<pid_t>(std::stol(wait_for_line(pid)));
    running->signal(SIGKILL);
    wait_until("the end of the group", [&] { return !exists(grandchild); });
}

TEST_F(signals, kill_of_the_program_kills_a_command_that_the_kernel_would_let_live) {
    // As after a change of the user.
    const auto pid = file("pid");
    const auto running = start(
        {"run", "job", "--", "setpriv", "--pdeathsig", "clear", "sh", "-c",
         "echo $$ > " + pid.string() + "; while [ -e " + pid.string() + " ]; do sleep 0.05; done"});
    const auto child = static_cast<pid_t>(std::stol(wait_for_line(pid)));
    running->signal(SIGKILL);
    wait_until("the command's end", [&] { return !exists(child); });
}

TEST_F(signals, kill_of_the_program_kills_the_command_without_the_process_that_watches) {
    const auto pid = file("pid");
    const auto running = start(run_script("job", {}, "echo $$ > " + pid.string() + "; exec sleep 60"));
    const auto child = static_cast<pid_t>(std::stol(wait_for_line(pid)));
    const auto others = finish_program(
        {"sh", "-c", "pgrep -g " + std::to_string(child) + " -P " + std::to_string(running->id())});
    for (const auto id : others) {
        if (id != child) {
            ::kill(id, SIGKILL);
        }
    }
    EXPECT_EQ(others.size(), 2U);
    running->signal(SIGKILL);
    wait_until("the command's end", [&] { return !exists(child); });
}

TEST_F(signals, the_process_that_watches_is_gone_when_the_program_is) {
    const auto ran = finish(run_script("job", {}, "echo $$; sleep 60 > /dev/null & echo $!"));
    std::istringstream numbers{ran->output()};
    pid_t group = 0;
    pid_t left = 0;
    numbers >> group >> left;
    EXPECT_EQ(finish_program({"pgrep", "-g", std::to_string(group)}), std::vector{left});
    ::kill(left, SIGKILL);
}

TEST_F(signals, the_status_is_the_commands_when_the_death_of_children_was_ignored) {
    EXPECT_EQ(start(run_script("job", {}, "exit 5"), {.ignored_signal = SIGCHLD})->wait(), 5);
}

}  // namespace
}  // namespace holdfast::cli::testing
