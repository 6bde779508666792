#include <gmock/gmock.h>

#include <csignal>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class locks : public cli_test {};

TEST_F(locks, list_of_an_empty_store_is_friendly) {
    const auto listed = finish({"list"});
    EXPECT_EQ(listed->wait(), 0);
    EXPECT_EQ(listed->output(), "");
    EXPECT_THAT(listed->errors(), HasSubstr("no locks are held in local:"));
}

TEST_F(locks, list_shows_every_holder) {
    const auto one = hold("billing:rollup");
    const auto two = hold("pool", {"--permits", "3"});
    const auto listed = finish({"list"});
    EXPECT_THAT(listed->output(),
                ContainsRegex("^NAME +MODE +HOLDER +SINCE +TTL-LEFT +TOKEN +WAITERS +STATUS\n"));
    EXPECT_THAT(listed->output(), ContainsRegex("billing:rollup +exclusive +[^ ]+:" +
                                                std::to_string(one->id()) + " sh .* alive\n"));
    EXPECT_THAT(listed->output(),
                ContainsRegex("pool +permit 1/3 +[^ ]+:" + std::to_string(two->id()) + " sh "));
}

TEST_F(locks, list_shows_labels) {
    const auto holder = hold("job", {"--label", "shard 7"});
    EXPECT_THAT(finish({"list"})->output(), ContainsRegex("job +exclusive +[^ ]+ sh \"shard 7\" "));
}

TEST_F(locks, list_takes_a_prefix) {
    const auto one = hold("billing:rollup");
    const auto two = hold("other");
    const auto listed = finish({"list", "billing:"});
    EXPECT_THAT(listed->output(), HasSubstr("billing:rollup"));
    EXPECT_THAT(listed->output(), Not(HasSubstr("other")));
}

TEST_F(locks, list_is_json_if_asked) {
    const auto one = hold("job");
    const auto listed = parse(finish({"list", "--json"})->output());
    EXPECT_EQ(listed.at("store").at("scope").as_string(), "host");
    EXPECT_EQ(listed.at("locks").at(0).at("name").as_string(), "job");
    EXPECT_EQ(listed.at("locks").at(0).at("holders").at(0).at("pid").as_int64(), one->id());
}

TEST_F(locks, inspect_shows_the_holder) {
    const auto holder = hold("job", {"--label", "shard 7"});
    const auto shown = finish({"inspect", "job"});
    EXPECT_EQ(shown->wait(), 0);
    for (const char* text :
         {"job\n", "held", "this host only", "(sh) \"shard 7\"", "exclusive", "alive", "takeover"}) {
        EXPECT_THAT(shown->output(), HasSubstr(text));
    }
}

TEST_F(locks, inspect_of_a_free_lock_says_so) {
    const auto shown = finish({"inspect", "nothing"});
    EXPECT_EQ(shown->wait(), 0);
    EXPECT_THAT(shown->output(), HasSubstr("free"));
    EXPECT_TRUE(inspect("nothing").at("free").as_bool());
}

TEST_F(locks, inspect_shows_the_last_revocation) {
    const auto holder = hold("job");
    ASSERT_EQ(finish({"release", "job", "--force", "--reason", "host on fire"})->wait(), 0);
    EXPECT_THAT(finish({"inspect", "job"})->output(), HasSubstr("host on fire"));
    EXPECT_EQ(inspect("job").at("last_revocation").at("reason").as_string(), "host on fire");
}

TEST_F(locks, release_without_a_terminal_needs_force) {
    const auto holder = hold("job");
    const auto refused = finish({"release", "job"});
    EXPECT_EQ(refused->wait(), 75);
    EXPECT_THAT(refused->errors(), HasSubstr("--force"));
    EXPECT_FALSE(inspect("job").at("free").as_bool());
}

TEST_F(locks, release_of_a_free_lock_gives_75) {
    const auto released = finish({"release", "job", "--force"});
    EXPECT_EQ(released->wait(), 75);
    EXPECT_THAT(released->errors(), HasSubstr("free"));
}

TEST_F(locks, release_with_another_token_leaves_the_lock_alone) {
    const auto holder = hold("job");
    EXPECT_EQ(finish({"release", "job", "--force", "--token", "999999"})->wait(), 75);
    EXPECT_FALSE(inspect("job").at("free").as_bool());
}

TEST_F(locks, release_with_the_right_owner_and_token_works) {
    const auto holder = hold("job");
    const auto card = holder_of("job");
    const std::string owner{card.at("owner").as_string()};
    const auto token = std::to_string(card.at("token").to_number<std::uint64_t>());
    const auto released =
        finish({"release", "job", "--force", "--owner", owner, "--token", token, "--json"});
    EXPECT_EQ(released->wait(), 0);
    EXPECT_TRUE(parse(released->output()).at("released").as_bool());
    EXPECT_EQ(holder->wait(), 76);
}

TEST_F(locks, release_of_one_among_several_holders_needs_its_owner) {
    const auto one = hold("job", {"--shared"});
    const auto two = hold("job", {"--shared"});
    const auto refused = finish({"release", "job", "--force"});
    EXPECT_EQ(refused->wait(), 64);
    EXPECT_THAT(refused->errors(), HasSubstr("--owner"));
    const std::string owner{holder_of("job").at("owner").as_string()};
    EXPECT_EQ(finish({"release", "job", "--force", "--owner", owner})->wait(), 0);
    EXPECT_EQ(inspect("job").at("holders").as_array().size(), 1U);
}

TEST_F(locks, check_inside_the_command_needs_no_arguments) {
    const auto ran = finish(run_script("job", {}, program_path() + " check"));
    EXPECT_EQ(ran->wait(), 0);
    EXPECT_EQ(ran->errors(), "");
}

TEST_F(locks, check_gives_76_when_the_lock_is_held_no_longer) {
    const auto ran = finish(
        run_script("job", {"--on-lost", "ignore"},
                   program_path() + " release job --force 2> /dev/null; " + program_path() + " check"));
    EXPECT_EQ(ran->wait(), 76);
    EXPECT_THAT(ran->errors(), HasSubstr("no longer held"));
}

TEST_F(locks, check_from_outside_takes_name_and_token) {
    const auto holder = hold("job");
    const auto token = holder_of("job").at("token").to_number<std::uint64_t>();
    EXPECT_EQ(finish({"check", "job", "--token", std::to_string(token)})->wait(), 0);
    EXPECT_EQ(finish({"check", "job", "--token", std::to_string(token + 100'000)})->wait(), 76);
    EXPECT_EQ(finish({"check", "free", "--token", "1", "-q"})->wait(), 76);
}

TEST_F(locks, check_of_another_name_does_not_use_the_token_of_the_environment) {
    const auto ran = finish(run_script("job", {}, program_path() + " check other"));
    EXPECT_EQ(ran->wait(), 64);
}

TEST_F(locks, no_name_or_label_can_drive_the_terminal) {
    // Names cannot hold control characters, but they can hold format characters.
    const std::string name = "invoice\u202Efdp.exe";
    const auto holder = hold(name, {"--label", "a\u2066b\u0085c\x1b[31m"});
    const auto wanted = [&](const program& shown) {
        EXPECT_THAT(shown.output() + shown.errors(), Not(HasSubstr("\u202E")));
        EXPECT_THAT(shown.output() + shown.errors(), Not(HasSubstr("\u2066")));
        EXPECT_THAT(shown.output() + shown.errors(), Not(HasSubstr("\u0085")));
        EXPECT_THAT(shown.output() + shown.errors(), Not(HasSubstr("\x1b")));
    };
    for (const auto& arguments :
         {words{"list"}, words{"inspect", name}, words{"release", name}, words{"list", "--json"},
          words{"inspect", name, "--json"}, words{"check", name, "--token", "1"},
          words{"run", name, "--no-wait", "--", "true"},
          words{"run", name, "--no-wait", "--json", "--", "true"}}) {
        wanted(*finish(arguments));
    }
    EXPECT_EQ(parse(finish({"inspect", name, "--json"})->output()).at("name").as_string(), name);
    ASSERT_EQ(finish({"release", name, "--force", "--reason", "a\u202Eb"})->wait(), 0);
    wanted(*finish({"inspect", name}));
}

TEST_F(locks, check_without_a_store_that_answers_is_not_a_yes) {
    const auto ran = finish({"check", "job", "--token", "1", "--store", "nosuch:"});
    EXPECT_EQ(ran->wait(), 78);
}

TEST_F(locks, looking_at_a_path_that_cannot_be_a_store_is_refused) {
    std::filesystem::create_symlink("loop", file("loop"));
    for (const auto& path : {std::string{"/etc/passwd/x"}, "/tmp/" + std::string(300, 'x') + "/y",
                             file("loop").string() + "/x"}) {
        for (const char* command : {"list", "doctor"}) {
            const auto refused = finish({command, "--store", "local:" + path});
            EXPECT_EQ(refused->wait(), 78) << path.substr(0, 40) << refused->errors();
        }
    }
}

TEST_F(locks, looking_at_a_store_that_is_not_there_makes_nothing) {
    const auto absent = file("some/where");
    for (const auto& address : {"local:" + absent.string(), "quorum:local:" + absent.string() +
                                                                " local:" + file("a").string() +
                                                                " local:" + file("b").string()}) {
        const auto look = [&](words arguments) {
            arguments.insert(arguments.end(), {"--store", address});
            return finish(arguments);
        };
        const auto listed = look({"list"});
        EXPECT_EQ(listed->wait(), 0) << listed->errors();
        EXPECT_THAT(listed->errors(), HasSubstr("no locks are held"));
        EXPECT_EQ(look({"list", "--json"})->wait(), 0);
        EXPECT_EQ(look({"inspect", "job"})->wait(), 0);
        EXPECT_EQ(look({"check", "job", "--token", "1"})->wait(), 76);
        EXPECT_EQ(look({"release", "job"})->wait(), 75);
        const auto examined = look({"doctor"});
        EXPECT_EQ(examined->wait(), 0) << examined->output();
        EXPECT_THAT(examined->output(), HasSubstr("nobody has used this store yet"));
    }
    for (const auto* const each : {"some", "a", "b"}) {
        EXPECT_FALSE(std::filesystem::exists(file(each)));
    }
    std::filesystem::create_directory(file("empty"));
    EXPECT_EQ(finish({"list", "--store", "local:" + file("empty").string()})->wait(), 0);
    EXPECT_TRUE(std::filesystem::is_empty(file("empty")));
    EXPECT_EQ(finish({"list", "--store", "local:/tmp"})->wait(), 78);
}

}  // namespace
}  // namespace holdfast::cli::testing
