#include <gmock/gmock.h>

#include <csignal>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;

const std::string control_c = "\x03";
const std::string control_z = "\x1a";

class on_a_terminal : public cli_test {
protected:
    [[nodiscard]] std::unique_ptr<terminal_program> open(const words& arguments) const {
        words command{program_path()};
        command.insert(command.end(), arguments.begin(), arguments.end());
        return std::make_unique<terminal_program>(command, environment());
    }
    /// An interactive shell with job control.
    [[nodiscard]] std::unique_ptr<terminal_program> open_shell() const {
        auto variables = environment();
        variables["PS1"] = "ready> ";
        variables["ENV"] = "";
        auto shell = std::make_unique<terminal_program>(
            words{"/bin/bash", "--norc", "--noprofile", "-i"}, variables);
        shell->wait_for("ready> ");
        return shell;
    }
};

TEST_F(on_a_terminal, the_reach_of_a_local_store_is_mentioned) {
    const auto running = open({"run", "job", "--", "true"});
    running->wait_for("excludes this host only");
    EXPECT_EQ(running->wait(), 0);
}

TEST_F(on_a_terminal, control_c_ends_the_wait) {
    const auto holder = hold("job");
    const auto waiting = open({"run", "job", "--", "echo", "ran"});
    wait_for_waiters("job", 1);
    waiting->type(control_c);
    EXPECT_EQ(waiting->wait(), 128 + SIGINT);
    wait_for_waiters("job", 0);
}

TEST_F(on_a_terminal, control_c_reaches_the_command_once) {
    const auto running =
        open(run_script("job", {},
                        "n=0; trap 'n=$((n+1)); echo got $n' INT; trap 'exit 33' USR1; echo begin; "
                        "while :; do sleep 0.05; done"));
    running->wait_for("begin");
    running->type(control_c);
    running->wait_for("got 1");
    ::kill(running->id(), SIGUSR1);
    EXPECT_EQ(running->wait(), 33);
    EXPECT_THAT(running->screen(), Not(HasSubstr("got 2")));
}

TEST_F(on_a_terminal, control_c_ends_command_and_program) {
    const auto running = open(run_script("job", {}, "echo begin; exec sleep 60"));
    running->wait_for("begin");
    running->type(control_c);
    EXPECT_EQ(running->wait(), 128 + SIGINT);
    EXPECT_TRUE(inspect("job").at("free").as_bool());
}

TEST_F(on_a_terminal, control_c_ends_the_script_around_the_program) {
    const auto script = program_path() + " run job -- sh -c 'echo begin; exec sleep 60'; echo went on";
    terminal_program shell{{"/bin/bash", "-c", script}, environment()};
    shell.wait_for("begin");
    shell.type(control_c);
    EXPECT_EQ(shell.wait(), 128 + SIGINT);
    EXPECT_THAT(shell.screen(), Not(HasSubstr("went on")));
}

TEST_F(on_a_terminal, the_command_reads_from_it) {
    const auto running = open(run_script("job", {}, "echo begin; read line; echo \"<$line>\""));
    running->wait_for("begin");
    running->type("typed words\n");
    running->wait_for("<typed words>");
    EXPECT_EQ(running->wait(), 0);
}

TEST_F(on_a_terminal, a_command_behind_a_pipe_gets_it_when_it_asks) {
    const auto script =
        program_path() + " run job -- sh -c 'echo begin; read line; echo \"<$line>\"' | cat";
    terminal_program shell{{"/bin/sh", "-c", script}, environment()};
    shell.wait_for("begin");
    shell.type("typed words\n");
    shell.wait_for("<typed words>");
    EXPECT_EQ(shell.wait(), 0);
}

TEST_F(on_a_terminal, it_is_given_back_to_the_shell) {
    const auto shell = open_shell();
    shell->type(program_path() + " run job -- sh -c 'exit 3'; echo status $?\n");
    shell->wait_for("status 3");
    shell->type("read word; echo \"<$word>\"\n");
    shell->type("still here\n");
    shell->wait_for("<still here>");
}

TEST_F(on_a_terminal, it_is_given_back_to_a_script) {
    const auto script = program_path() + " run job -- sh -c 'exit 3'; read word; echo \"<$word>\"";
    terminal_program shell{{"/bin/sh", "-c", script}, environment()};
    shell.type("typed words\n");
    shell.wait_for("<typed words>");
    EXPECT_EQ(shell.wait(), 0);
}

TEST_F(on_a_terminal, control_z_stops_both_and_fg_continues_both) {
    const auto shell = open_shell();
    shell->type(program_path() +
                " run job --ttl 60s -- sh -c 'echo be\"\"gin; read line; echo \"<$line>\"; exit 4'\n");
    shell->wait_for("begin");
    shell->type(control_z);
    shell->wait_for("Stopped");
    shell->type("fg; echo status $?\n");
    shell->wait_for("run job");
    shell->type("typed words\n");
    shell->wait_for("<typed words>");
    shell->wait_for("status 4");
}

TEST_F(on_a_terminal, a_command_stopped_past_its_lease_is_not_continued) {
    const auto beats = file("beats");
    const auto shell = open_shell();
    shell->type(program_path() + " run job --ttl 1s -- sh -c 'while :; do echo >> " + beats.string() +
                "; done'\n");
    static_cast<void>(wait_for_line(beats));
    shell->type(control_z);
    shell->wait_for("Stopped");
    const auto beaten = std::filesystem::file_size(beats);
    EXPECT_EQ(finish({"run", "job", "--wait", "15s", "--", "true"})->wait(), 0);
    shell->type("fg; echo status $?\n");
    shell->wait_for("status 76");
    EXPECT_EQ(std::filesystem::file_size(beats), beaten);
}

TEST_F(on_a_terminal, control_z_without_a_shell_to_come_back_from_has_no_effect) {
    const auto running = open(run_script("job", {}, "echo begin; read line; echo \"<$line>\""));
    running->wait_for("begin");
    running->type(control_z);
    running->type("typed words\n");
    running->wait_for("<typed words>");
    EXPECT_EQ(running->wait(), 0);
}

TEST_F(on_a_terminal, control_z_stops_a_waiting_program) {
    const auto holder = hold("job");
    const auto shell = open_shell();
    shell->type(program_path() + " run job -- echo m\"\"ine\n");
    wait_for_waiters("job", 1);
    shell->type(control_z);
    shell->wait_for("Stopped");
    shell->type("fg\n");
    holder->close_input();
    shell->wait_for("mine");
}

TEST_F(on_a_terminal, release_asks_and_takes_yes_for_an_answer) {
    const auto holder = hold("job");
    const auto asking = open({"release", "job"});
    asking->wait_for("Type yes to go on: ");
    EXPECT_THAT(asking->screen(), HasSubstr("pid " + std::to_string(holder->id())));
    asking->type("yes\n");
    EXPECT_EQ(asking->wait(), 0);
    EXPECT_EQ(holder->wait(), 76);
}

TEST_F(on_a_terminal, release_takes_nothing_else_for_a_yes) {
    const auto holder = hold("job");
    const auto asking = open({"release", "job"});
    asking->wait_for("Type yes to go on: ");
    asking->type("y\n");
    EXPECT_EQ(asking->wait(), 75);
    EXPECT_FALSE(inspect("job").at("free").as_bool());
}

TEST_F(on_a_terminal, release_leaves_a_lock_alone_that_changed_hands_while_it_asked) {
    const auto first = hold("job");
    const auto asking = open({"release", "job"});
    asking->wait_for("Type yes to go on: ");
    first->close_input();
    ASSERT_EQ(first->wait(), 0);
    const auto second = hold("job");
    asking->type("yes\n");
    EXPECT_EQ(asking->wait(), 75);
    EXPECT_EQ(holder_of("job").at("pid").as_int64(), second->id());
}

}  // namespace
}  // namespace holdfast::cli::testing
