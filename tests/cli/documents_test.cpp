#include <gmock/gmock.h>

#include <algorithm>
#include <regex>
#include <set>

#include "fixture.hpp"
#include "help.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;

class documents : public cli_test {
protected:
    [[nodiscard]] static std::filesystem::path source(const std::string& name) {
        return std::filesystem::path{HOLDFAST_SOURCE_DIR} / name;
    }
    /// All long options that the program's own help names.
    [[nodiscard]] static std::set<std::string> options() {
        std::set<std::string> found;
        for (const char* command : {"", "run", "list", "inspect", "release", "check", "doctor"}) {
            const std::string text{help_text(command)};
            const std::regex option{"--[a-z][a-z-]*"};
            for (std::sregex_iterator each{text.begin(), text.end(), option}, end; each != end;
                 ++each) {
                found.insert(each->str());
            }
        }
        return found;
    }
    /// What bash would offer for the last of these words.
    [[nodiscard]] std::string complete(const words& line) const {
        std::string array;
        for (const auto& word : line) {
            array += " '" + word + "'";
        }
        const auto script =
            "holdfast() { " + program_path() + " \"$@\"; }; source " +
            source("packaging/completions/holdfast.bash").string() + "; COMP_WORDS=(" + array +
            "); COMP_CWORD=" + std::to_string(line.size() - 1) +
            "; COMP_LINE=\"${COMP_WORDS[*]}\"; _holdfast; printf '%s\\n' \"${COMPREPLY[@]}\"";
        program shell{{"/bin/bash", "-c", script}, {.environment = environment(), .input = ""}};
        EXPECT_EQ(shell.wait(), 0) << shell.errors();
        return shell.output();
    }
};

TEST_F(documents, the_man_page_knows_every_option) {
    auto page = read_file(source("docs/man/holdfast.1"));
    page.erase(std::remove(page.begin(), page.end(), '\\'), page.end());
    for (const auto& option : options()) {
        EXPECT_THAT(page, HasSubstr(option));
    }
}

TEST_F(documents, the_completions_know_every_option) {
    const auto bash = read_file(source("packaging/completions/holdfast.bash"));
    const auto zsh = read_file(source("packaging/completions/holdfast.zsh"));
    const auto fish = read_file(source("packaging/completions/holdfast.fish"));
    for (const auto& option : options()) {
        EXPECT_THAT(bash, HasSubstr(option));
        EXPECT_THAT(zsh, HasSubstr(option));
        EXPECT_THAT(fish, HasSubstr("-l " + option.substr(2)));
    }
}

TEST_F(documents, bash_completes_commands_and_options) {
    EXPECT_EQ(complete({"holdfast", "ins"}), "inspect\n");
    EXPECT_EQ(complete({"holdfast", "run", "job", "--once"}), "--once-per\n");
    EXPECT_EQ(complete({"holdfast", "run", "job", "--on-lost", "k"}), "kill\n");
    EXPECT_EQ(complete({"holdfast", "list", "--once"}), "\n");
}

TEST_F(documents, bash_completes_the_names_of_locks) {
    const auto holder = hold("nightly backup");
    EXPECT_EQ(complete({"holdfast", "inspect", "nig"}), "nightly\\ backup\n");
}

TEST_F(documents, bash_completes_commands_after_the_separator) {
    EXPECT_THAT(complete({"holdfast", "run", "job", "--", "printen"}), HasSubstr("printenv\n"));
}

}  // namespace
}  // namespace holdfast::cli::testing
