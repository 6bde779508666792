#include "processes.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Forks, and runs `body` in a process whose orphaned descendants become its children. True if `body`
/// returned true.
[[nodiscard]] bool in_a_subreaper(const std::function<bool()>& body) {
    const auto id = ::fork();
    if (id == 0) {
        ::prctl(PR_SET_CHILD_SUBREAPER, 1);
        ::_exit(body() ? 0 : 1);
    }
    int status = 0;
    ::waitpid(id, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// A child with a child of its own, each in its own session; both sleep. Returns the child.
[[nodiscard]] pid_t start_family() {
    int ends[2]{};
    if (::pipe(ends) != 0) {
        return -1;
    }
    const auto child = ::fork();
    if (child == 0) {
        ::setsid();
        if (::fork() == 0) {
            ::setsid();
        }
        [[maybe_unused]] const auto written = ::write(ends[1], "", 1);
        ::close(ends[0]);
        ::close(ends[1]);
        for (;;) {
            ::pause();
        }
    }
    char byte{};
    const bool both = ::read(ends[0], &byte, 1) == 1 && ::read(ends[0], &byte, 1) == 1;
    ::close(ends[0]);
    ::close(ends[1]);
    return both ? child : -1;
}

/// Kills until waitpid says that nobody is left.
[[nodiscard]] bool kill_all_children(pid_t oldest) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < deadline) {
        signal_children(oldest, 0, SIGKILL);
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        if (::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) {
            return true;
        }
    }
    return false;
}

TEST(processes, below_this_one_are_all_found) {
    EXPECT_TRUE(in_a_subreaper([] {
        const auto child = start_family();
        const auto tree = descendants();
        for (const auto& one : tree.found) {
            send_signal(one, SIGKILL);
        }
        return child > 0 && tree.complete && tree.found.size() == 2;
    }));
}

TEST(processes, without_descriptors_the_tree_is_not_complete_but_children_can_be_killed) {
    EXPECT_TRUE(in_a_subreaper([] {
        const auto child = start_family();
        const rlimit none{0, 0};
        return child > 0 && ::setrlimit(RLIMIT_NOFILE, &none) == 0 && !descendants().complete &&
               kill_all_children(child);
    }));
}

TEST(processes, of_the_spared_group_get_no_signal) {
    EXPECT_TRUE(in_a_subreaper([] {
        const auto child = start_family();
        signal_children(child, child, SIGKILL);
        return child > 0 && ::waitpid(child, nullptr, WNOHANG) == 0 && kill_all_children(child);
    }));
}

TEST(processes, older_than_the_command_get_no_signal) {
    EXPECT_TRUE(in_a_subreaper([] {
        const auto older = start_family();
        const auto child = start_family();
        signal_children(child, 0, SIGKILL);
        return older > 0 && ::waitpid(child, nullptr, 0) == child &&
               ::waitpid(older, nullptr, WNOHANG) == 0 && kill_all_children(older);
    }));
}

TEST(processes, have_their_own_number_in_our_proc) {
    EXPECT_EQ(number_in_proc(::getpid()), ::getpid());
}

/// `holdfast run` in namespaces where /proc is not what it seems.
class strange_proc : public cli_test {
protected:
    void SetUp() override {
        if (program{{"unshare", "-Urpf", "--kill-child", "true"}}.wait() != 0) {
            GTEST_SKIP() << "this needs namespaces, which we may not make";
        }
    }
    /// Runs a script as the first process of a pid namespace. HOLDFAST names the program.
    [[nodiscard]] std::unique_ptr<program> in_namespace(const std::string& script,
                                                        const words& options = {}) const {
        words command{"unshare", "-Urpf", "--kill-child"};
        command.insert(command.end(), options.begin(), options.end());
        command.insert(command.end(), {"sh", "-c", script});
        auto surroundings = environment();
        surroundings["HOLDFAST"] = program_path();
        surroundings["FILES"] = file("").string();
        return std::make_unique<program>(command, program_options{.environment = surroundings});
    }
    /// In a script: the next process gets this number.
    [[nodiscard]] static std::string next_number(const std::string& number) {
        return "echo $((" + number + " - 1)) > /proc/sys/kernel/ns_last_pid; ";
    }
    /// A command that ignores TERM and has a descendant in another session, which does so, too. All
    /// of them hold a lock on the file `alive`.
    [[nodiscard]] static std::string stubborn_family() {
        return "\"$HOLDFAST\" run job --ttl 2s --max-hold 1s --grace 100ms --json -- sh -c '"
               "exec 9> $FILES/alive; flock 9; trap \"\" TERM; "
               "(setsid sh -c \"while [ -d $FILES ]; do sleep 0.05; done\" &); "
               "while [ -d $FILES ]; do sleep 0.05; done'";
    }
    [[nodiscard]] bool family_is_gone() const {
        const int alive = ::open(file("alive").c_str(), O_RDWR | O_CLOEXEC);
        const bool gone = alive >= 0 && ::flock(alive, LOCK_EX | LOCK_NB) == 0;
        ::close(alive);
        return gone;
    }
};

TEST_F(strange_proc, of_an_outer_namespace_hides_no_descendant) {
    // Its number means a process without children outside.
    const program childless{{"sleep", "60"}};
    const auto ran = in_namespace(next_number(std::to_string(childless.id())) + stubborn_family() +
                                  "; echo ended $?; read line");
    ran->wait_for_output("ended 76");
    EXPECT_TRUE(family_is_gone());
    EXPECT_EQ(parse(ran->last_error_line()).at("command").at("left_behind").as_int64(), 0);
}

TEST_F(strange_proc, that_is_not_there_hides_no_descendant) {
    const auto ran = in_namespace("export HOLDFAST_STORE=memory:; mount -t tmpfs none /proc && " +
                                      stubborn_family() + "; echo ended $?; read line",
                                  {"-m"});
    ran->wait_for_output("ended 76");
    EXPECT_TRUE(family_is_gone());
    EXPECT_EQ(parse(ran->last_error_line()).at("command").at("left_behind").as_int64(), 0);
}

TEST_F(strange_proc, of_an_outer_namespace_sends_a_signal_once) {
    const auto ran = in_namespace(
        "\"$HOLDFAST\" run job --ttl 4s --max-hold 2s --grace 500ms -- sh -c '"
        "trap \"echo told\" TERM; while [ -d $FILES ]; do sleep 0.05; done' 2> /dev/null; "
        "echo ended $?; read line");
    ran->wait_for_output("ended 76");
    EXPECT_EQ(ran->output(), "told\nended 76\n");
}

TEST_F(strange_proc, of_an_outer_namespace_names_no_stranger_to_be_killed) {
    // Outside, `parent` has a child. Inside, holdfast gets the number of `parent`, and a process that
    // has nothing to do with it gets the number of the child.
    const program parent{{"sh", "-c", "sleep 60 & echo $! > " + file("child").string() + "; wait"}};
    const auto child = wait_for_line(file("child"));
    const auto ran = in_namespace(
        next_number(child) + "sleep 60 & stranger=$!; " + next_number(std::to_string(parent.id())) +
        "\"$HOLDFAST\" run job --ttl 2s --max-hold 500ms --grace 100ms -- sleep 60 2> /dev/null & "
        "program=$!; wait $program; echo ended $?; "
        "kill -0 $stranger && echo numbers $program $stranger; read line");
    ran->wait_for_output("ended 76");
    ran->wait_for_output("numbers " + std::to_string(parent.id()) + " " + child + "\n");
}

}  // namespace
}  // namespace holdfast::cli::testing
