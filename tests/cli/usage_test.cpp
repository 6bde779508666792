#include <gmock/gmock.h>

#include <sstream>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;

struct misuse {
    const char* name;
    std::vector<std::string> arguments;
    const char* hint;
};

void PrintTo(const misuse& each, std::ostream* out) {
    *out << each.name;
}

class usage : public cli_test, public ::testing::WithParamInterface<misuse> {};

TEST_P(usage, is_explained_in_one_line_with_64) {
    const auto refused = finish(GetParam().arguments);
    EXPECT_EQ(refused->wait(), 64);
    EXPECT_EQ(refused->output(), "");
    EXPECT_THAT(refused->errors(), ::testing::StartsWith("holdfast: "));
    EXPECT_THAT(refused->errors(), HasSubstr(GetParam().hint));
    EXPECT_EQ(refused->errors().find('\n'), refused->errors().size() - 1);
}

INSTANTIATE_TEST_SUITE_P(
    wrong, usage,
    ::testing::Values(
        misuse{"nothing", {}, "holdfast run NAME -- COMMAND"},
        misuse{"command", {"dance"}, "no command \"dance\""},
        misuse{"help_for_nothing", {"help", "dance"}, "no command \"dance\""},
        misuse{"run_without_name", {"run", "--", "true"}, "which lock?"},
        misuse{"run_without_command", {"run", "job"}, "which command?"},
        misuse{"run_with_nothing_after_separator", {"run", "job", "--"}, "which command?"},
        misuse{"run_without_separator", {"run", "job", "true"}, "put -- before the command"},
        misuse{"two_names", {"run", "a", "b", "--", "true"}, "one NAME"},
        misuse{"unknown_option", {"run", "job", "--bogus", "--", "true"}, "--bogus"},
        misuse{"ttl_without_unit", {"run", "job", "--ttl", "30", "--", "true"}, "30 what? write 30s"},
        misuse{"ttl_zero", {"run", "job", "--ttl", "0s", "--", "true"}, "zero"},
        misuse{"ttl_too_short", {"run", "job", "--ttl", "1ms", "--grace", "0", "--", "true"}, "what?"},
        misuse{"wait_twice",
               {"run", "job", "--no-wait", "--wait", "1s", "--", "true"},
               "exclude each other"},
        misuse{"loud_and_quiet", {"run", "job", "-q", "-v", "--", "true"}, "exclude each other"},
        misuse{"shared_permits",
               {"run", "job", "--shared", "--permits", "2", "--", "true"},
               "exclude each other"},
        misuse{"no_permits", {"run", "job", "--permits", "0", "--", "true"}, "--permits"},
        misuse{"once_per_shared",
               {"run", "job", "--shared", "--once-per", "1h", "--", "true"},
               "--once-per"},
        misuse{"min_over_max",
               {"run", "job", "--min-hold", "2h", "--max-hold", "1h", "--", "true"},
               "--min-hold"},
        misuse{"on_lost", {"run", "job", "--on-lost", "cry", "--", "true"}, "term, kill, ignore"},
        misuse{"grace_without_term",
               {"run", "job", "--on-lost", "kill", "--grace", "1s", "--", "true"},
               "--grace"},
        misuse{"scope", {"run", "job", "--require", "galaxy", "--", "true"}, "fleet, host, process"},
        misuse{"control_character", {"run", "a\tb", "--", "true"}, "control character"},
        misuse{"not_utf8", {"run", "a\xff", "--", "true"}, "UTF-8"},
        misuse{"inspect_without_name", {"inspect"}, "which lock?"},
        misuse{"release_token", {"release", "job", "--token", "x"}, "token"},
        misuse{"release_owner", {"release", "job", "--owner", "x"}, "owner"},
        misuse{"list_two", {"list", "a", "b"}, "PREFIX"},
        misuse{"check_nothing", {"check"}, "which lock?"},
        misuse{"check_whom", {"check", "job"}, "--token"}),
    [](const auto& each) { return each.param.name; });

class configuration : public cli_test {};

TEST_F(configuration, a_grace_that_does_not_fit_the_ttl_gives_78_and_says_what_would) {
    const auto refused = finish({"run", "job", "--ttl", "30s", "--grace", "20s", "--", "true"});
    EXPECT_EQ(refused->wait(), 78);
    EXPECT_THAT(refused->errors(), HasSubstr("use --ttl 50s"));
    EXPECT_EQ(finish({"run", "job", "--ttl", "50s", "--grace", "20s", "--", "true"})->wait(), 0);
}

TEST_F(configuration, a_max_hold_shorter_than_the_end_gives_78) {
    EXPECT_EQ(finish({"run", "job", "--max-hold", "1s", "--", "true"})->wait(), 78);
}

TEST_F(configuration, a_ttl_the_store_cannot_keep_gives_64) {
    EXPECT_EQ(finish({"run", "job", "--ttl", "3660d", "--", "true"})->wait(), 64);
}

TEST_F(configuration, a_store_that_is_no_directory_gives_78) {
    const auto refused = finish({"list", "--store", "local:/etc/passwd"});
    EXPECT_EQ(refused->wait(), 78);
    EXPECT_THAT(refused->errors(), ::testing::StartsWith("holdfast: "));
}

TEST_F(configuration, a_store_we_may_not_create_gives_77) {
    EXPECT_EQ(finish({"list", "--store", "local:/sys/holdfast"})->wait(), 77);
}

class help : public cli_test, public ::testing::WithParamInterface<const char*> {};

TEST_P(help, fits_eighty_columns_and_has_the_usual_sections) {
    const auto shown = finish({GetParam(), "--help"});
    EXPECT_EQ(shown->wait(), 0);
    EXPECT_EQ(shown->errors(), "");
    for (const char* section :
         {"NAME\n", "SYNOPSIS\n", "DESCRIPTION\n", "OPTIONS\n", "EXIT STATUS\n", "EXAMPLES\n"}) {
        EXPECT_THAT(shown->output(), HasSubstr(section));
    }
    std::istringstream lines{shown->output()};
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), 80U) << line;
    }
}

INSTANTIATE_TEST_SUITE_P(of, help,
                         ::testing::Values("run", "list", "inspect", "release", "check", "doctor"));

TEST_F(configuration, the_overview_and_the_version_are_shown) {
    for (const auto& arguments : {words{"--help"}, words{"-h"}, words{"help"}}) {
        EXPECT_THAT(finish(arguments)->output(), HasSubstr("holdfast run NAME [OPTIONS] -- COMMAND"));
    }
    EXPECT_THAT(finish({"help", "run"})->output(), HasSubstr("--once-per"));
    EXPECT_THAT(finish({"version"})->output(),
                ::testing::MatchesRegex("holdfast [0-9]+\\.[0-9]+\\.[0-9]+\n"));
    EXPECT_EQ(finish({"--version"})->wait(), 0);
}

TEST_F(configuration, help_after_the_separator_belongs_to_the_command) {
    EXPECT_EQ(finish({"run", "job", "--", "printf", "%s", "--help"})->output(), "--help");
}

}  // namespace
}  // namespace holdfast::cli::testing
