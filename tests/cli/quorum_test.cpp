#include <gmock/gmock.h>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;

/// Three embedded stores, and a program that is given all of them.
class quorum : public cli_test {
protected:
    [[nodiscard]] std::string member(int index) const {
        return "local:" + file("member" + std::to_string(index)).string();
    }
    [[nodiscard]] words on_all(words arguments) const {
        for (const int index : {1, 2, 3}) {
            arguments.insert(arguments.begin() + 1, {"--store", member(index)});
        }
        return arguments;
    }
    [[nodiscard]] std::string held_in(int index) const {
        return finish({"list", "--store", member(index)})->output();
    }
};

TEST_F(quorum, several_stores_hold_a_lock_together) {
    const auto script = "echo holding; read line; " + program_path() + " check";
    const auto holder = start(on_all(run_script("job", {"-v"}, script)));
    holder->wait_for_output("holding");
    EXPECT_THAT(holder->errors(), HasSubstr("this quorum of 3 stores (2 needed)"));
    EXPECT_EQ(finish(on_all({"run", "job", "--no-wait", "--", "true"}))->wait(), 75);
    for (const int index : {1, 2, 3}) {
        EXPECT_THAT(held_in(index), HasSubstr("job "));
    }
    EXPECT_THAT(finish(on_all({"list"}))->output(), HasSubstr("job "));
    EXPECT_THAT(finish(on_all({"inspect", "job"}))->output(),
                HasSubstr("this quorum of 3 stores (2 needed)"));
    holder->close_input();
    EXPECT_EQ(holder->wait(), 0) << "the command checks on the quorum too: " << holder->errors();
    EXPECT_EQ(held_in(2), "");
}

TEST_F(quorum, a_lock_is_taken_away_from_all_of_them) {
    const auto holder = start(on_all(run_script("job", {}, "echo holding; read line")));
    holder->wait_for_output("holding");
    EXPECT_EQ(finish(on_all({"release", "job", "--force", "--reason", "test"}))->wait(), 0);
    EXPECT_EQ(holder->wait(), 76);
    EXPECT_EQ(held_in(1), "");
}

TEST_F(quorum, may_be_named_in_the_environment) {
    const auto text = "quorum:" + member(1) + " " + member(2) + " " + member(3);
    const auto run = finish({"run", "job", "--", "printenv", "HOLDFAST_STORE"},
                            {.environment = {{"HOLDFAST_STORE", text}}});
    EXPECT_EQ(run->wait(), 0);
    EXPECT_EQ(run->output(), text + "\n");
}

TEST_F(quorum, doctor_speaks_of_every_member) {
    const auto looked = finish(on_all({"doctor"}));
    EXPECT_EQ(looked->wait(), 0) << looked->output();
    EXPECT_THAT(looked->output(), HasSubstr("this quorum of 3 stores (2 needed)"));
    EXPECT_THAT(finish(on_all({"doctor", "--json"}))->output(), HasSubstr("\"findings\""));
    EXPECT_EQ(finish({"doctor", "job"})->wait(), 64);
}

TEST_F(quorum, no_message_repeats_a_password_of_an_address_that_is_not_understood) {
    for (const std::string bad :
         {"redis:ann:hunter2@h", "redis://:hunter2?x@h", "redis://ann:hunter2", "hunter2@h:6379",
          "redis://ann:x/hunter2@h", "redis://h?password_file=hunter2", "redis:/:hunter2@h",
          "redis//:hunter2@h", "redis://h/?password=hunter2", "hunter2", "local:redis://:hunter2@h"}) {
        for (const auto& address : {bad, "quorum:" + bad + " " + member(1) + " " + member(2)}) {
            for (const std::vector<std::string>& command :
                 {std::vector<std::string>{"list"},
                  {"run", "--json", "--no-wait", "job", "--", "true"},
                  {"inspect", "--json", "job"}}) {
                const auto refused = finish(command, {.environment = {{"HOLDFAST_STORE", address}}});
                EXPECT_EQ(refused->wait(), 78) << refused->errors();
                EXPECT_THAT(refused->errors() + refused->output(),
                            ::testing::Not(HasSubstr("hunter2")));
            }
        }
    }
}

TEST_F(quorum, permits_are_refused_with_the_reason) {
    const auto refused = finish(on_all({"run", "job", "--permits", "2", "--", "true"}));
    EXPECT_EQ(refused->wait(), 78);
    EXPECT_THAT(refused->errors(), HasSubstr("three clients can each have a majority"));
}

}  // namespace
}  // namespace holdfast::cli::testing
