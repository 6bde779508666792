#include <gmock/gmock.h>

#include <map>
#include <sstream>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
        misuse{"option_first",
               {"--store=redis://:hunter2@h", "list"},
               "options come after the command: holdfast COMMAND --store …"},
        misuse{"help_for_nothing", {"help", "dance"}, "no command \"dance\""},
        misuse{"help_for_two",
               {"help", "run", "list"},
               "one command is enough, but there is also \"list\""},
        misuse{
            "version_of_something", {"version", "x"}, "version takes no argument, but there is \"x\""},
        misuse{"version_with_an_option", {"version", "--wait"}, "there is \"--wait\""},
        misuse{"version_option_of_something", {"--version", "x"}, "there is \"x\""},
        misuse{"run_without_name", {"run", "--", "true"}, "which lock?"},
        misuse{"run_without_command", {"run", "job"}, "which command?"},
        misuse{"run_with_nothing_after_separator", {"run", "job", "--"}, "which command?"},
        misuse{"run_without_separator", {"run", "job", "true"}, "put -- before the command"},
        misuse{"two_names", {"run", "a", "b", "--", "true"}, "one NAME"},
        misuse{"unknown_option", {"run", "job", "--bogus", "--", "true"}, "unknown option: --bogus"},
        misuse{
            "no_value", {"run", "job", "--ttl", "--", "true"}, "--ttl needs a value: --ttl DURATION"},
        misuse{"no_store", {"list", "--store"}, "--store needs a value: --store ADDRESS"},
        misuse{"twice", {"list", "--timeout", "1s", "--timeout", "2s"}, "more than once"},
        misuse{"ttl_without_unit", {"run", "job", "--ttl", "30", "--", "true"}, "30 what? write 30s"},
        misuse{"ttl_zero", {"run", "job", "--ttl", "0s", "--", "true"}, "zero"},
        misuse{"ttl_too_short", {"run", "job", "--ttl", "1ms", "--grace", "0", "--", "true"}, "what?"},
        misuse{"wait_zero", {"run", "job", "--wait", "0s", "--", "true"}, "--no-wait gives up at once"},
        misuse{"switch_with_no",
               {"run", "job", "--no-wait=false", "--", "true"},
               "--no-wait takes no value, but has \"false\""},
        misuse{"switch_with_a_number", {"list", "--json=5"}, "--json takes no value, but has \"5\""},
        misuse{"switch_with_nothing", {"run", "job", "--shared=", "--", "true"}, "takes no value"},
        misuse{"switch_with_a_word", {"run", "job", "--shared=maybe", "--", "true"}, "takes no value"},
        misuse{"help_with_a_value", {"run", "--help=yes"}, "--help takes no value"},
        misuse{"wait_twice",
               {"run", "job", "--no-wait", "--wait", "1s", "--", "true"},
               "exclude each other"},
        misuse{"loud_and_quiet", {"run", "job", "-q", "-v", "--", "true"}, "exclude each other"},
        misuse{"shared_permits",
               {"run", "job", "--shared", "--permits", "2", "--", "true"},
               "exclude each other"},
        misuse{"again_without_once_per", {"run", "job", "--again", "--", "true"}, "--once-per"},
        misuse{"ttl_too_long",
               {"run", "job", "--ttl", "367d", "--", "true"},
               "--ttl: \"367d\" is too long; at most 366 days"},
        misuse{"min_hold_too_long",
               {"run", "job", "--min-hold", "3660d", "--", "true"},
               "at most 366 days"},
        misuse{"empty_store", {"list", "--store", ""}, "the address is empty"},
        misuse{"empty_store_before_a_prefix", {"list", "--store=", "memory:"}, "the address is empty"},
        misuse{"empty_owner", {"release", "job", "--owner=", "--force"}, "\"\" is no owner"},
        misuse{"two_plus_signs", {"run", "job", "++", "--no-wait", "--", "true"}, "one NAME"},
        misuse{"timeout", {"list", "--timeout", "5"}, "5 what? write 5s"},
        misuse{"option_of_another_command", {"list", "--force"}, "--force"},
        misuse{"no_permits", {"run", "job", "--permits", "0", "--", "true"}, "--permits"},
        misuse{"once_per_shared",
               {"run", "job", "--shared", "--once-per", "1h", "--", "true"},
               "--once-per"},
        misuse{"min_over_max",
               {"run", "job", "--min-hold", "2h", "--max-hold", "1h", "--", "true"},
               "--min-hold"},
        misuse{"grace_over_ttl", {"run", "job", "--grace", "20s", "--", "true"}, "use --ttl 50s"},
        misuse{"max_hold_without_time",
               {"run", "job", "--max-hold", "10ms", "--", "true"},
               "--max-hold 10ms leaves the command no time"},
        misuse{"ttl_out_of_range", {"run", "job", "--ttl", "1ms", "--", "true"}, "out of range"},
        misuse{"on_lost", {"run", "job", "--on-lost", "cry", "--", "true"}, "term, kill, ignore"},
        misuse{"grace_without_term",
               {"run", "job", "--on-lost", "kill", "--grace", "1s", "--", "true"},
               "--grace"},
        misuse{"scope", {"run", "job", "--require", "galaxy", "--", "true"}, "fleet, host, process"},
        misuse{"control_character", {"run", "a\tb", "--", "true"}, "control character"},
        misuse{"not_utf8", {"run", "a\xff", "--", "true"}, "UTF-8"},
        misuse{"label_too_long",
               {"run", "job", "--label", std::string(1025, 'x'), "--", "true"},
               "--label has 1025 bytes; at most 1024 are allowed"},
        misuse{
            "label_not_utf8", {"run", "job", "--label", "a\xff", "--", "true"}, "--label is not UTF-8"},
        misuse{"inspect_without_name", {"inspect"}, "which lock?"},
        misuse{"release_token", {"release", "job", "--token", "x"}, "token"},
        misuse{"release_owner", {"release", "job", "--owner", "x"}, "owner"},
        misuse{"list_two", {"list", "a", "b"}, "PREFIX"},
        misuse{"check_nothing", {"check"}, "which lock?"},
        misuse{"check_whom", {"check", "job"}, "--token"}),
    [](const auto& each) { return each.param.name; });

class configuration : public cli_test {};

TEST_F(configuration, a_grace_that_does_not_fit_the_ttl_gives_64_and_says_what_would) {
    const auto refused = finish({"run", "job", "--ttl", "30s", "--grace", "20s", "--", "true"});
    EXPECT_EQ(refused->wait(), 64);
    EXPECT_THAT(refused->errors(), HasSubstr("use --ttl 50s"));
    EXPECT_EQ(finish({"run", "job", "--ttl", "50s", "--grace", "20s", "--", "true"})->wait(), 0);
}

TEST_F(configuration, a_max_hold_shorter_than_the_end_gives_64) {
    EXPECT_EQ(finish({"run", "job", "--max-hold", "1s", "--grace", "1s", "--", "true"})->wait(), 64);
}

TEST_F(configuration, a_short_max_hold_needs_no_other_option) {
    for (const char* limit : {"2s", "4s", "8s"}) {
        EXPECT_EQ(finish({"run", "job", "--max-hold", limit, "--", "true"})->wait(), 0) << limit;
    }
}

TEST_F(configuration, a_variable_that_is_set_but_empty_is_refused_with_78) {
    for (const char* variable : {"HOLDFAST_STORE", "HOLDFAST_REQUIRE"}) {
        for (const auto& arguments : {words{"list"}, words{"run", "job", "--", "true"},
                                      words{"check", "job", "--token", "1"}}) {
            words command{"/usr/bin/env", std::string{variable} + "=", program_path()};
            command.insert(command.end(), arguments.begin(), arguments.end());
            program refused{command, {.environment = environment(), .input = ""}};
            EXPECT_EQ(refused.wait(), 78);
            EXPECT_THAT(refused.errors(), HasSubstr(std::string{variable} + " is set, but empty"));
        }
    }
}

/// A script whose own variable was not set must not log in without a password.
TEST_F(configuration, empty_credentials_in_the_environment_are_refused_with_78) {
    for (const char* variable : {"HOLDFAST_REDIS_PASSWORD", "HOLDFAST_REDIS_USER"}) {
        const std::string assignment = std::string{variable} + "=";
        program refused{{"/usr/bin/env", "HOLDFAST_REDIS_PASSWORD=x", assignment, program_path(),
                         "list", "--store", "redis://127.0.0.1:1"},
                        {.environment = environment(), .input = ""}};
        EXPECT_EQ(refused.wait(), 78);
        EXPECT_THAT(refused.errors(), HasSubstr(std::string{variable} + " is set, but empty"));
        program listed{{"/usr/bin/env", assignment, program_path(), "list", "--store", store()},
                       {.input = ""}};
        EXPECT_EQ(listed.wait(), 0) << "this store has no password";
    }
}

TEST_F(configuration, a_variable_with_a_wrong_value_is_refused_with_78) {
    const std::vector<std::pair<std::string, words>> cases{
        {"HOLDFAST_REQUIRE", {"list"}},
        {"HOLDFAST_REQUIRE", {"run", "a", "--", "b"}},
        {"HOLDFAST_TOKEN", {"check"}},
        {"HOLDFAST_OWNER", {"check"}}};
    for (const auto& [variable, arguments] : cases) {
        std::map<std::string, std::string> variables{{"HOLDFAST_NAME", "job"}, {variable, "foo"}};
        const auto refused = finish(arguments, {.environment = variables});
        EXPECT_EQ(refused->wait(), 78) << variable;
        EXPECT_THAT(refused->errors(), HasSubstr(variable + ": \"foo\" is no"));
    }
}

TEST_F(configuration, an_empty_variable_does_not_matter_where_an_option_says_it) {
    program listed{{"/usr/bin/env", "HOLDFAST_STORE=", program_path(), "list", "--store", store()},
                   {.input = ""}};
    EXPECT_EQ(listed.wait(), 0);
}

TEST_F(configuration, a_variable_that_holds_an_address_by_mistake_is_not_repeated) {
    const std::string address{"redis://u:SEKRET@h"};
    const std::vector<std::pair<std::string, words>> cases{
        {"HOLDFAST_REQUIRE", {"list"}},
        {"HOLDFAST_REQUIRE", {"run", "job", "--", "true"}},
        {"HOLDFAST_TOKEN", {"check"}},
        {"HOLDFAST_OWNER", {"check"}},
        {"HOLDFAST_NAME", {"check", "--token", "1"}},
        {"HOLDFAST_NAME", {"check", "other"}},
        {"HOLDFAST_OWNERS", {"run", "job", "--", "true"}},
        {"HOLDFAST_REDIS_USER", {"list"}},
    };
    for (auto [variable, arguments] : cases) {
        SCOPED_TRACE(variable + " of " + arguments.front());
        std::map<std::string, std::string> variables{{"HOLDFAST_NAME", "job"}};
        variables[variable] = address;
        const auto said = finish(arguments, {.environment = variables});
        EXPECT_THAT(said->output() + said->errors(), Not(HasSubstr("SEKRET")));
        arguments.insert(arguments.begin() + 1, "--json");
        const auto as_json = finish(arguments, {.environment = variables});
        EXPECT_THAT(as_json->output() + as_json->errors(), Not(HasSubstr("SEKRET")));
    }
    const auto refused = finish({"list"}, {.environment = {{"HOLDFAST_REQUIRE", address}}});
    EXPECT_THAT(refused->errors(), HasSubstr("HOLDFAST_REQUIRE: \"...\" is none of"));
}

TEST_F(configuration, a_ttl_the_store_cannot_keep_gives_64) {
    EXPECT_EQ(finish({"run", "job", "--ttl", "366d1ms", "--", "true"})->wait(), 64);
}

TEST_F(configuration, a_store_that_is_no_directory_gives_78) {
    const auto refused = finish({"list", "--store", "local:/etc/passwd"});
    EXPECT_EQ(refused->wait(), 78);
    EXPECT_THAT(refused->errors(), ::testing::StartsWith("holdfast: "));
}

TEST_F(configuration, a_store_we_may_not_create_gives_77) {
    EXPECT_EQ(finish({"run", "job", "--store", "local:/sys/holdfast", "--", "true"})->wait(), 77);
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

TEST_F(configuration, check_of_another_lock_inside_run_says_which_lock_is_held) {
    const auto checked = finish({"run", "job", "--", program_path(), "check", "other"});
    EXPECT_EQ(checked->wait(), 64);
    EXPECT_THAT(checked->errors(),
                ::testing::HasSubstr("this command runs under \"job\", not under \"other\""));
}

TEST_F(configuration, the_list_of_known_schemes_has_no_colon_too_many) {
    for (const char* store : {"nosuch:x", "nonsense"}) {
        const auto refused = finish({"list", "--store", store});
        EXPECT_THAT(refused->errors(), HasSubstr(", rediss+cluster: bad configuration")) << store;
        EXPECT_THAT(refused->errors(), Not(HasSubstr("::")));
    }
}

TEST_F(configuration, a_store_without_a_scheme_is_answered_with_the_right_form) {
    const std::vector<std::pair<std::string, std::string>> stores{
        {"127.0.0.1:6379", "redis://127.0.0.1:6379"},
        {"redis.example.com:6379/2", "redis://host:port"},
        {"localhost", "redis://host:port"},
        {"[::1]:6379", "redis://host:port"}};
    for (const auto& [store, advice] : stores) {
        const auto refused = finish({"list", "--store", store});
        EXPECT_EQ(refused->wait(), 78);
        EXPECT_THAT(refused->errors(), ::testing::HasSubstr(advice)) << store;
    }
}

}  // namespace
}  // namespace holdfast::cli::testing
