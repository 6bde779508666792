#include <gmock/gmock.h>

#include <regex>

#include "arguments.hpp"
#include "command_table.hpp"
#include "fixture.hpp"
#include "help.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;

class documents : public cli_test {
protected:
    [[nodiscard]] static std::filesystem::path page(const std::string& name) {
        return std::filesystem::path{HOLDFAST_PAGES_DIR} / name;
    }
    /// The man page as a terminal would show it, without line breaks and emphasis.
    [[nodiscard]] static std::string manual() {
        program formatter{
            {"/usr/bin/groff", "-man", "-Tascii", "-P-cbou", "-rLL=200n", page("holdfast.1").string()},
            {.input = ""}};
        EXPECT_EQ(formatter.wait(), 0);
        EXPECT_EQ(formatter.errors(), "");
        return joined(formatter.output());
    }
    [[nodiscard]] static std::string joined(const std::string& text) {
        return std::regex_replace(text, std::regex{"\\s+"}, " ");
    }
    /// The schemes that this build can open, from its own words.
    [[nodiscard]] std::vector<std::string> known_schemes() const {
        const auto said = finish({"list", "--store", "nosuch:x"})->errors();
        const auto text = said.substr(said.find("this build knows "));
        std::vector<std::string> schemes;
        const std::regex scheme{"[a-z+]+(?=[,:])"};
        for (std::sregex_iterator each{text.begin(), text.end(), scheme}, end; each != end; ++each) {
            schemes.push_back(each->str() + ":");
        }
        return schemes;
    }
    /// What bash would offer for the last of these words.
    [[nodiscard]] std::string complete(const words& line) const {
        std::string array;
        for (const auto& word : line) {
            array += " '" + word + "'";
        }
        const auto script =
            "holdfast() { " + program_path() + " \"$@\"; }; source " + page("holdfast.bash").string() +
            "; COMP_WORDS=(" + array + "); COMP_CWORD=" + std::to_string(line.size() - 1) +
            "; COMP_LINE=\"${COMP_WORDS[*]}\"; _holdfast; printf '%s\\n' \"${COMPREPLY[@]}\"";
        program shell{{"/bin/bash", "-c", script}, {.environment = environment(), .input = ""}};
        EXPECT_EQ(shell.wait(), 0) << shell.errors();
        return shell.output();
    }
};

TEST_F(documents, the_man_page_knows_every_option_and_every_store) {
    const auto text = manual();
    for (const auto& option : option_entries()) {
        EXPECT_THAT(text, HasSubstr(joined(std::string{option.name} + " " + std::string{option.value} +
                                           " " + std::string{option.text})));
    }
    for (const auto& store : store_entries()) {
        EXPECT_THAT(text,
                    HasSubstr(joined(std::string{store.address} + " " + std::string{store.text})));
    }
}

TEST_F(documents, the_completions_know_every_option) {
    const auto bash = read_file(page("holdfast.bash"));
    const auto zsh = read_file(page("holdfast.zsh"));
    const auto fish = read_file(page("holdfast.fish"));
    for (const auto& option : option_entries()) {
        EXPECT_THAT(bash, HasSubstr(std::string{option.name}));
        EXPECT_THAT(zsh, HasSubstr(std::string{option.name}));
        EXPECT_THAT(fish, HasSubstr("-l " + std::string{option.name.substr(2)} + " "));
    }
    for (const auto& text : {bash, zsh, fish}) {
        EXPECT_THAT(text, Not(HasSubstr("\n@")));
    }
}

TEST_F(documents, every_store_that_can_be_opened_is_in_the_help) {
    const auto schemes = known_schemes();
    ASSERT_THAT(schemes, ::testing::IsSupersetOf({"local:", "quorum:"}));
    for (const char* command : {"", "run"}) {
        const auto text = help_text(command);
        for (const auto& scheme : schemes) {
            EXPECT_THAT(text, HasSubstr("\n  " + scheme));
        }
    }
}

TEST_F(documents, every_option_of_a_command_is_in_its_help_and_is_understood) {
    for (const auto& option : option_entries()) {
        for (const auto& command : command_entries()) {
            const auto text = help_text(command.name);
            if (!command.name.empty() && takes(command.name, option)) {
                EXPECT_THAT(text,
                            HasSubstr(std::string{option.name} + (option.value.empty() ? "" : " ") +
                                      std::string{option.value}));
            }
        }
    }
    for (const auto& command : command_entries().subspan(1)) {
        for (const auto& option : option_entries()) {
            if (!takes(command.name, option)) {
                continue;
            }
            words arguments{std::string{command.name}, std::string{option.name}};
            if (option.value == "DURATION") {
                arguments.emplace_back("1s");
            } else if (option.value == "N") {
                arguments.emplace_back("7");
            } else if (option.value == "OWNER") {
                arguments.emplace_back("9f0c1e52-7d1b-4c54-9c0a-5f6e7d8c9b0a:47");
            } else if (!option.value.empty()) {
                arguments.emplace_back(option.choices.substr(0, option.choices.find(' ')));
                arguments.back() += option.choices.empty() ? "memory:" : "";
            }
            arguments.emplace_back("--help");
            EXPECT_TRUE(std::holds_alternative<help_request>(parse_arguments(arguments)));
        }
    }
}

TEST_F(documents, bash_completes_commands_and_options) {
    EXPECT_EQ(complete({"holdfast", "ins"}), "inspect\n");
    EXPECT_EQ(complete({"holdfast", "run", "job", "--once"}), "--once-per\n");
    EXPECT_EQ(complete({"holdfast", "run", "job", "--on-lost", "k"}), "kill\n");
    EXPECT_EQ(complete({"holdfast", "list", "--once"}), "\n");
    EXPECT_EQ(complete({"holdfast", "list", "--time"}), "--timeout\n");
    EXPECT_EQ(complete({"holdfast", "list", "--store", "redis+c"}), "redis+cluster://\n");
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
