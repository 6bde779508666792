// The program in an environment that lacks what programs usually have.
#include <gmock/gmock.h>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

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
    for (const char* closed : {">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
        EXPECT_EQ(status_of({"list"}, closed), 0) << closed;
        EXPECT_EQ(status_of({"inspect", "job"}, closed), 0) << closed;
        EXPECT_EQ(status_of({"dance"}, closed), 64) << closed;
        EXPECT_EQ(status_of({"run", "other", "--", "sh", "-c", "echo lost; exit 3"}, closed), 3)
            << closed;
    }
    EXPECT_EQ(inspect("job").at("holders").as_array().size(), 1U);
}

TEST_F(cold, a_home_that_cannot_be_written_to_is_named) {
    const auto refused = finish(
        {"run", "job", "--", "true"},
        {.environment = {{"HOLDFAST_STORE", ""}, {"XDG_STATE_HOME", ""}, {"HOME", "/proc/self"}}});
    EXPECT_NE(refused->wait(), 0);
    EXPECT_THAT(refused->errors(), ::testing::HasSubstr("/proc/self/.local"));
    EXPECT_THAT(refused->errors(), ::testing::HasSubstr("create it yourself, or name another"));
}

}  // namespace
}  // namespace holdfast::cli::testing
