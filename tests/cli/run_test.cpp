#include <gmock/gmock.h>

#include <csignal>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class run : public cli_test {};

class run_exit_code : public cli_test, public ::testing::WithParamInterface<int> {};

TEST_P(run_exit_code, of_the_command_is_passed_through) {
    const auto ran = finish({"run", "job", "--", "sh", "-c", "exit " + std::to_string(GetParam())});
    EXPECT_EQ(ran->wait(), GetParam());
    EXPECT_EQ(ran->errors(), "");
}

INSTANTIATE_TEST_SUITE_P(samples, run_exit_code,
                         ::testing::Values(0, 1, 2, 64, 75, 76, 127, 128, 200, 255));

TEST_F(run, a_command_that_dies_of_a_signal_gives_128_plus_its_number) {
    EXPECT_EQ(finish({"run", "job", "--", "sh", "-c", "kill -KILL $$"})->wait(), 128 + SIGKILL);
    EXPECT_EQ(finish({"run", "job", "--", "sh", "-c", "kill -USR1 $$"})->wait(), 128 + SIGUSR1);
}

TEST_F(run, a_command_that_is_not_there_gives_127) {
    const auto ran = finish({"run", "job", "--", "/nonexistent/command"});
    EXPECT_EQ(ran->wait(), 127);
    EXPECT_THAT(ran->errors(),
                HasSubstr("holdfast: cannot execute \"/nonexistent/command\": No such file"));
    EXPECT_TRUE(inspect("job").at("free").as_bool());
}

TEST_F(run, a_command_that_is_not_executable_gives_126) {
    const auto ran = finish({"run", "job", "--", "/etc/passwd"});
    EXPECT_EQ(ran->wait(), 126);
    EXPECT_TRUE(inspect("job").at("free").as_bool());
}

TEST_F(run, arguments_reach_the_command_as_they_are) {
    const auto ran = finish({"run", "job", "--", "printf", "[%s]", "a b", "$HOME", "*", "--", ""});
    EXPECT_EQ(ran->output(), "[a b][$HOME][*][--][]");
}

TEST_F(run, a_name_is_taken_as_it_is) {
    for (const char* name : {"[a]", "[a,b]", "[[aa]]", "{}", "a,b", "++", "%%", "a=b", "-"}) {
        const auto ran = finish({"run", name, "--no-wait", "--", "printenv", "HOLDFAST_NAME"});
        EXPECT_EQ(ran->output(), std::string{name} + "\n") << ran->errors();
    }
    EXPECT_EQ(finish({"inspect", "--json", "--", "-v"})->wait(), 0);
}

TEST_F(run, standard_input_reaches_the_command) {
    const auto ran = finish({"run", "job", "--", "cat"}, {.input = "one\ntwo\n"});
    EXPECT_EQ(ran->output(), "one\ntwo\n");
}

TEST_F(run, the_command_has_a_process_group_of_its_own) {
    const auto ran = finish({"run", "job", "--", "sh", "-c", "echo $$; ps -o pgid= -p $$"});
    std::istringstream numbers{ran->output()};
    pid_t id = 0;
    pid_t group = 0;
    numbers >> id >> group;
    EXPECT_EQ(id, group);
    EXPECT_NE(group, ran->id());
}

TEST_F(run, no_descriptor_of_the_program_reaches_the_command) {
    const auto ran = finish({"run", "job", "--", "sh", "-c", "ls -l /proc/$$/fd"});
    EXPECT_THAT(ran->output(), Not(HasSubstr(file("store").string())));
    EXPECT_THAT(ran->output(), Not(HasSubstr("anon_inode")));
}

TEST_F(run, the_command_learns_its_lock_and_inherited_values_are_overridden) {
    const std::string script =
        "echo $HOLDFAST_NAME,$HOLDFAST_TOKEN,$HOLDFAST_OWNER,$HOLDFAST_STORE,$HOLDFAST_DEADLINE";
    program_options outer;
    outer.environment = {{"HOLDFAST_NAME", "outer"},
                         {"HOLDFAST_TOKEN", "999"},
                         {"HOLDFAST_OWNER", "nobody"},
                         {"HOLDFAST_DEADLINE", "1"}};
    const auto before = epoch_now();
    const auto ran = finish(run_script("job", {"--ttl", "30s"}, script), outer);
    EXPECT_THAT(ran->output(),
                ContainsRegex("^job,[0-9]+,[0-9a-f-]+:[0-9]+,local:[^,]*/store,[0-9]+\n$"));
    EXPECT_THAT(ran->output(), Not(HasSubstr(",999,")));
    const auto deadline = std::stoll(ran->output().substr(ran->output().rfind(',') + 1));
    EXPECT_GT(deadline, before + 20'000);
    EXPECT_LE(deadline, epoch_now() + 30'000);
}

TEST_F(run, a_nested_run_sees_the_inner_lock) {
    const auto ran = finish({"run", "outer", "--", program_path(), "run", "inner", "--", "sh", "-c",
                             "echo $HOLDFAST_NAME"});
    EXPECT_EQ(ran->output(), "inner\n");
}

TEST_F(run, a_nested_run_of_the_same_lock_does_not_wait_for_itself) {
    const auto ran = finish({"run", "job", "--", program_path(), "run", "job", "--", "true"});
    EXPECT_EQ(ran->wait(), 64);
    EXPECT_THAT(ran->errors(), HasSubstr("wait for itself"));
}

TEST_F(run, a_run_deep_inside_a_run_of_the_same_lock_does_not_wait_for_itself) {
    const auto ran = finish({"run", "job", "--", program_path(), "run", "other", "--", program_path(),
                             "run", "job", "--", "true"});
    EXPECT_EQ(ran->wait(), 64);
    EXPECT_THAT(ran->errors(), HasSubstr("already runs under \"job\""));
}

TEST_F(run, a_nested_run_waits_for_itself_only_if_it_has_all_permits) {
    const auto nested = [this](const std::string& permits) {
        return finish({"run", "job", "--permits", permits, "--", program_path(), "run", "job",
                       "--permits", permits, "--", "echo", "ran"});
    };
    EXPECT_EQ(nested("1")->wait(), 64);
    EXPECT_EQ(nested("2")->output(), "ran\n");
}

TEST_F(run, a_relative_store_is_refused_with_the_whole_path) {
    program_options options;
    options.environment = {{"HOLDFAST_STORE", "local:here"}};
    options.working_directory = file("");
    const auto refused = finish({"run", "job", "--", "true"}, options);
    EXPECT_EQ(refused->wait(), 78);
    EXPECT_THAT(refused->errors(),
                HasSubstr("local:" + std::filesystem::canonical(file("")).string() + "/here"));
    EXPECT_FALSE(std::filesystem::exists(file("here")));
}

TEST_F(run, tokens_rise) {
    std::uint64_t last = 0;
    for (int i = 0; i < 5; ++i) {
        const auto token = std::stoull(finish(run_script("job", {}, "echo $HOLDFAST_TOKEN"))->output());
        EXPECT_GT(token, last);
        last = token;
    }
}

TEST_F(run, no_wait_gives_75_and_names_the_holder) {
    const auto holder = hold("nightly");
    const auto refused = finish({"run", "nightly", "--no-wait", "--", "true"});
    EXPECT_EQ(refused->wait(), 75);
    EXPECT_THAT(refused->errors(),
                ContainsRegex("^holdfast: \"nightly\" is held by .* pid " +
                              std::to_string(holder->id()) + " \\(sh\\) since ..:..:.., for "));
}

TEST_F(run, quiet_says_nothing_when_busy) {
    const auto holder = hold("nightly");
    const auto refused = finish({"run", "nightly", "--no-wait", "-q", "--", "true"});
    EXPECT_EQ(refused->wait(), 75);
    EXPECT_EQ(refused->errors(), "");
}

TEST_F(run, wait_gives_up_after_its_time) {
    const auto holder = hold("job");
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(finish({"run", "job", "--wait", "200ms", "--", "true"})->wait(), 75);
    EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds{200});
}

TEST_F(run, waits_without_limit_and_gets_the_lock_when_it_is_free) {
    const auto holder = hold("job");
    const auto waiting = start({"run", "job", "--", "echo", "mine"});
    wait_for_waiters("job", 1);
    EXPECT_EQ(waiting->output(), "");
    holder->close_input();
    EXPECT_EQ(waiting->wait(), 0);
    EXPECT_EQ(waiting->output(), "mine\n");
    EXPECT_EQ(holder->wait(), 0);
}

TEST_F(run, shared_holders_run_together_and_keep_an_exclusive_one_out) {
    const auto first = hold("job", {"--shared"});
    const auto second = hold("job", {"--shared"});
    EXPECT_EQ(finish({"run", "job", "--no-wait", "--", "true"})->wait(), 75);
    first->close_input();
    second->close_input();
    EXPECT_EQ(finish({"run", "job", "--", "true"})->wait(), 0);
}

TEST_F(run, permits_let_that_many_in) {
    const auto first = hold("job", {"--permits", "2"});
    const auto second = hold("job", {"--permits", "2"});
    EXPECT_EQ(finish({"run", "job", "--permits", "2", "--no-wait", "--", "true"})->wait(), 75);
    first->close_input();
    EXPECT_EQ(finish({"run", "job", "--permits", "2", "--", "true"})->wait(), 0);
}

TEST_F(run, another_permit_limit_is_bad_configuration) {
    const auto first = hold("job", {"--permits", "2"});
    EXPECT_EQ(finish({"run", "job", "--permits", "3", "--no-wait", "--", "true"})->wait(), 78);
}

TEST_F(run, a_store_that_does_not_reach_far_enough_is_refused) {
    const auto refused = finish({"run", "job", "--require", "fleet", "--", "true"});
    EXPECT_EQ(refused->wait(), 78);
    EXPECT_THAT(refused->errors(), HasSubstr("fleet"));
    EXPECT_EQ(finish({"run", "job", "--require", "host", "--", "true"})->wait(), 0);
    EXPECT_EQ(
        finish({"run", "job", "--", "true"}, {.environment = {{"HOLDFAST_REQUIRE", "fleet"}}})->wait(),
        78);
}

TEST_F(run, a_store_nobody_knows_is_bad_configuration) {
    EXPECT_EQ(finish({"run", "job", "--store", "nosuch://x", "--", "true"})->wait(), 78);
}

TEST_F(run, the_option_wins_over_the_environment) {
    const auto ran = finish(
        run_script("job", {"--store", "local:" + file("other").string()}, "echo $HOLDFAST_STORE"));
    EXPECT_THAT(ran->output(), HasSubstr("/other"));
}

TEST_F(run, verbose_tells_what_the_store_excludes) {
    EXPECT_THAT(finish({"run", "job", "-v", "--", "true"})->errors(),
                HasSubstr("excludes this host only"));
    EXPECT_EQ(finish({"run", "job", "--", "true"})->errors(), "");
}

TEST_F(run, the_label_is_shown) {
    const auto holder = hold("job", {"--label", "shard 7 äöü"});
    EXPECT_EQ(holder_of("job").at("label").as_string(), "shard 7 äöü");
}

TEST_F(run, names_with_spaces_and_utf8_work) {
    const auto ran = finish(
        run_script("Lager Süd 東京", {}, "echo $HOLDFAST_NAME; exec " + program_path() + " check"));
    EXPECT_EQ(ran->wait(), 0);
    EXPECT_EQ(ran->output(), "Lager Süd 東京\n");
}

TEST_F(run, json_tells_a_completed_run) {
    const auto ran =
        finish({"run", "job", "--json", "--", "sh", "-c", "echo out; echo noise >&2; exit 76"});
    EXPECT_EQ(ran->wait(), 76);
    EXPECT_EQ(ran->output(), "out\n");
    const auto report = parse(ran->last_error_line());
    EXPECT_EQ(report.at("outcome").as_string(), "completed");
    EXPECT_EQ(report.at("command").at("exit_code").as_int64(), 76);
    EXPECT_EQ(report.at("name").as_string(), "job");
    EXPECT_EQ(report.at("released").as_string(), "released");
}

TEST_F(run, json_tells_the_other_outcomes) {
    const auto holder = hold("job");
    const auto busy = finish({"run", "job", "--json", "--no-wait", "--", "true"});
    const auto report = parse(busy->errors());
    EXPECT_EQ(report.at("outcome").as_string(), "not_acquired");
    EXPECT_EQ(report.at("status").as_int64(), 75);
    EXPECT_EQ(report.at("held_by").at(0).at("pid").as_int64(), holder->id());
    const auto missing = finish({"run", "other", "--json", "--", "/nonexistent/command"});
    EXPECT_EQ(parse(missing->errors()).at("outcome").as_string(), "not_started");
    const auto failed = finish({"run", "job", "--json", "--store", "nosuch:", "--", "true"});
    EXPECT_EQ(parse(failed->errors()).at("outcome").as_string(), "failed");
}

}  // namespace
}  // namespace holdfast::cli::testing
