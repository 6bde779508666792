// The program in an environment that lacks what programs usually have.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;

class cold : public cli_test {
protected:
    /// `holdfast` with these arguments, started by a shell that does `redirections` first.
    [[nodiscard]] int status_of(const words& arguments, const std::string& redirections) const {
        words command{"/bin/sh", "-c", "exec \"$0\" \"$@\" " + redirections, program_path()};
        command.insert(command.end(), arguments.begin(), arguments.end());
        program shell{command, {.environment = environment(), .input = ""}};
        return shell.wait();
    }
};

TEST_F(cold, what_is_printed_to_closed_streams_does_not_get_into_the_store) {
    const auto holder = hold("job");
    const std::vector<std::pair<const char*, int>> ways{
        {">&-", 74}, {"2>&-", 0}, {">&- 2>&-", 74}, {"<&- >&- 2>&-", 74}};
    for (const auto& [closed, looked] : ways) {
        EXPECT_EQ(status_of({"list"}, closed), looked) << closed;
        EXPECT_EQ(status_of({"inspect", "job"}, closed), looked) << closed;
        EXPECT_EQ(status_of({"dance"}, closed), 64) << closed;
        EXPECT_EQ(status_of({"run", "other", "--", "sh", "-c", "echo lost; exit 3"}, closed), 3)
            << closed;
    }
    EXPECT_EQ(inspect("job").at("holders").as_array().size(), 1U);
}

TEST_F(cold, an_answer_that_cannot_be_written_is_no_success) {
    const auto holder = hold("job");
    const std::vector<words> commands{{"list"},
                                      {"list", "--json"},
                                      {"inspect", "job"},
                                      {"inspect", "job", "--json"},
                                      {"doctor"},
                                      {"doctor", "--json"},
                                      {"--version"},
                                      {"--help"},
                                      {"check", "job", "--token", "1", "--json"}};
    for (const auto& command : commands) {
        SCOPED_TRACE(command.front());
        EXPECT_EQ(status_of(command, ">/dev/full"), 74);
    }
    EXPECT_EQ(status_of({"run", "other", "--", "true"}, ">/dev/full"), 0) << "that is its command's";
    EXPECT_EQ(status_of({"list"}, "| head -c 0"), 0) << "nobody wants to read it";
}

/// A limit of the user's processes; root has none.
TEST_F(cold, too_few_processes_are_told_at_once) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can become a user who has no other processes";
    }
    // Nobody else uses this number. The store is in memory, so that no directory needs to be his.
    const auto status = [&](int limit) {
        words command{"setpriv",
                      "--reuid",
                      "54321",
                      "--clear-groups",
                      "bash",
                      "-c",
                      "ulimit -u " + std::to_string(limit) + "; exec \"$0\" \"$@\"",
                      program_path(),
                      "run",
                      "job",
                      "--store",
                      "memory:cold",
                      "--",
                      "true"};
        program shell{command, {.environment = environment(), .input = ""}};
        return shell.wait();
    };
    for (const int limit : {2, 5, 6, 7, 8}) {
        EXPECT_EQ(status(limit), 71) << limit;
    }
    EXPECT_EQ(status(64), 0);
}

TEST_F(cold, a_home_that_cannot_be_written_to_is_named) {
    const auto refused = finish(
        {"run", "job", "--", "true"},
        {.environment = {{"HOLDFAST_STORE", ""}, {"XDG_STATE_HOME", ""}, {"HOME", "/proc/self"}}});
    EXPECT_NE(refused->wait(), 0);
    EXPECT_THAT(refused->errors(), HasSubstr("/proc/self/.local"));
    EXPECT_THAT(refused->errors(), HasSubstr("create it yourself, or name another"));
}

#if defined(__has_feature)
#define HOLDFAST_TEST_HAS_FEATURE(name) __has_feature(name)
#else
#define HOLDFAST_TEST_HAS_FEATURE(name) 0
#endif

/// Sanitizers reserve terabytes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    HOLDFAST_TEST_HAS_FEATURE(address_sanitizer) || HOLDFAST_TEST_HAS_FEATURE(thread_sanitizer)
constexpr bool memory_can_be_limited = false;
#else
constexpr bool memory_can_be_limited = true;
#endif

/// It does not wait for memory that nobody would ever give it.
TEST_F(cold, too_little_memory_is_told_at_once_and_a_little_is_enough) {
    if (!memory_can_be_limited) {
        GTEST_SKIP() << "not with a sanitizer";
    }
    for (const auto& address : {store(), std::string{"memory:"}}) {
        for (::rlim_t megabytes = 16; megabytes <= 200; megabytes += megabytes < 60 ? 1 : 5) {
            const ::rlimit few{megabytes << 20, megabytes << 20};
            const auto limited = finish({"run", "--store", address, "job", "--", "true"},
                                        {.prepare = [&few] { ::setrlimit(RLIMIT_AS, &few); }});
            const int status = limited->wait();
            const auto what = address + " " + std::to_string(megabytes) + " MB: " + limited->errors();
            if (status == 127) {
                EXPECT_THAT(what, HasSubstr("while loading shared libraries"));
            } else if (status != 0) {
                EXPECT_EQ(status, 71) << what;
                EXPECT_THAT(what, HasSubstr("ulimit -v"));
            }
            EXPECT_TRUE(status == 0 || megabytes < 100) << what;
        }
    }
}

}  // namespace
}  // namespace holdfast::cli::testing
