#include <gmock/gmock.h>

#include <fstream>
#include <support/redis_servers.hpp>

#include "fixture.hpp"
#include "secrets.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;

TEST(passwords, are_taken_out_of_an_address) {
    EXPECT_EQ(without_passwords("redis://alice:s3cret@h:6379/2?prefix=a"),
              "redis://alice@h:6379/2?prefix=a");
    EXPECT_EQ(without_passwords("redis://:s3cret@h"), "redis://h");
    EXPECT_EQ(without_passwords("rediss+sentinel://:a:b@x,y,z/main"), "rediss+sentinel://x,y,z/main");
    EXPECT_EQ(
        without_passwords("quorum:?restart_grace=1s redis://:one@a  redis://u:two@b local:/x:y@z"),
        "quorum:?restart_grace=1s redis://a  redis://u@b local:/x:y@z");
}

TEST(passwords, that_are_none_stay) {
    for (const char* address : {"redis://h:6379", "redis://u@h:6379", "redis://h:6379?prefix=a:b@c",
                                "redis+unix:///run/a:b@c.sock", "local:/a:b@c", "memory:", ""}) {
        EXPECT_EQ(without_passwords(address), address);
    }
}

TEST(passwords, are_noticed_in_what_is_no_address_too) {
    EXPECT_TRUE(has_password("redis://:s3cret@h"));
    EXPECT_TRUE(has_password("quorum:redis://a redis://u:s3/cret@h"));
    EXPECT_TRUE(has_password("redis:user:s3cret@h"));
    EXPECT_TRUE(has_password("other://user:s3cret@h"));
    EXPECT_FALSE(has_password("redis://h:6379"));
    EXPECT_FALSE(has_password("redis://u@h:6379"));
    EXPECT_FALSE(has_password("local:/a:b@c"));
    EXPECT_FALSE(has_password(""));
}

class secret_passing : public cli_test {
protected:
    [[nodiscard]] std::string address(const std::string& user_info) const {
        return "redis://" + user_info + "127.0.0.1:" + std::to_string(server_.port()) + "?prefix=here:";
    }
    [[nodiscard]] program_options on_server() const {
        return {.environment = {{"HOLDFAST_STORE", address("default:s3cret@")}}};
    }
    /// Everything that can be read about a process under /proc.
    [[nodiscard]] static std::string seen_of(pid_t id) {
        const auto directory = std::filesystem::path{"/proc"} / std::to_string(id);
        return read_file(directory / "environ") + read_file(directory / "cmdline");
    }

    testing_support::redis_server server_{{.password = "s3cret"}};
};

TEST_F(secret_passing, are_not_in_the_environment_of_the_command) {
    const auto ran = finish({"run", "job", "--", "env"}, on_server());
    EXPECT_EQ(ran->wait(), 0) << ran->errors();
    EXPECT_THAT(ran->output(), HasSubstr("HOLDFAST_STORE=" + address("default@") + "\n"));
    EXPECT_THAT(ran->output(), Not(HasSubstr("s3cret")));
}

TEST_F(secret_passing, in_variables_of_their_own_are_not_passed_on_either) {
    const program_options options{.environment = {{"HOLDFAST_STORE", address("")},
                                                  {"HOLDFAST_REDIS_USER", "default"},
                                                  {"HOLDFAST_REDIS_PASSWORD", "s3cret"}}};
    const auto ran = finish({"run", "job", "--", "env"}, options);
    EXPECT_EQ(ran->wait(), 0) << ran->errors();
    EXPECT_THAT(ran->output(), HasSubstr("HOLDFAST_STORE=" + address("") + "\n"));
    EXPECT_THAT(ran->output(), Not(HasSubstr("HOLDFAST_REDIS_")));
    const auto passed = finish({"run", "job", "--pass-store", "--", "env"}, options);
    EXPECT_THAT(passed->output(), HasSubstr("HOLDFAST_REDIS_PASSWORD=s3cret\n"));
}

TEST_F(secret_passing, of_a_quorum_are_not_passed_on_either) {
    const testing_support::redis_server other{{.password = "t0psecret"}};
    const auto second = "127.0.0.1:" + std::to_string(other.port());
    const auto ran = finish({"run", "job", "--store", address(":s3cret@"), "--store",
                             "redis://:t0psecret@" + second, "--", "env"});
    EXPECT_EQ(ran->wait(), 0) << ran->errors();
    EXPECT_THAT(ran->output(),
                HasSubstr("HOLDFAST_STORE=quorum:" + address("") + " redis://" + second + "\n"));
    EXPECT_THAT(ran->output() + ran->errors(), Not(HasSubstr("s3cret")));
    EXPECT_THAT(ran->output() + ran->errors(), Not(HasSubstr("t0psecret")));
}

TEST_F(secret_passing, cannot_be_read_from_the_program_around_the_command) {
    auto options = on_server();
    const auto running = start(
        {"run", "job", "--json", "--verbose", "--", "sh", "-c", "echo ready; read line"}, options);
    running->wait_for_output("ready");
    EXPECT_THAT(seen_of(running->id()), HasSubstr("HOLDFAST_STORE=redis://default:******@"));
    EXPECT_THAT(seen_of(running->id()), Not(HasSubstr("s3cret")));
    running->close_input();
    EXPECT_EQ(running->wait(), 1);
    EXPECT_THAT(running->errors(), Not(HasSubstr("s3cret")));
}

TEST_F(secret_passing, in_variables_of_their_own_cannot_be_read_from_there_either) {
    const auto running = start(
        {"run", "job", "--", "sh", "-c", "echo ready; read line"},
        {.environment = {{"HOLDFAST_STORE", address("")}, {"HOLDFAST_REDIS_PASSWORD", "s3cret"}}});
    running->wait_for_output("ready");
    EXPECT_THAT(seen_of(running->id()), HasSubstr("HOLDFAST_REDIS_PASSWORD=******"));
    EXPECT_THAT(seen_of(running->id()), Not(HasSubstr("s3cret")));
}

TEST_F(secret_passing, on_the_command_line_are_overwritten) {
    const auto running = start({"run", "job", "--store", address("default:s3cret@"), "--", "sh", "-c",
                                "echo ready; read line"});
    running->wait_for_output("ready");
    EXPECT_THAT(seen_of(running->id()), Not(HasSubstr("s3cret")));
    EXPECT_THAT(running->errors(), HasSubstr("can be read by everybody"));
}

TEST_F(secret_passing, are_passed_on_when_the_command_shall_use_the_store) {
    const auto refused = finish({"run", "job", "--", program_path(), "check"}, on_server());
    EXPECT_EQ(refused->wait(), 77);
    EXPECT_THAT(refused->errors(), HasSubstr("--pass-store"));
    const auto passed =
        finish({"run", "job", "--pass-store", "--", program_path(), "check"}, on_server());
    EXPECT_EQ(passed->wait(), 0) << passed->errors();
}

TEST_F(secret_passing, in_a_file_serve_the_command_as_well) {
    const auto path = file("password");
    { std::ofstream{path} << "s3cret\n"; }
    const auto ran =
        finish({"run", "job", "--", program_path(), "check"},
               {.environment = {{"HOLDFAST_STORE", address("") + "&password_file=" + path.string()}}});
    EXPECT_EQ(ran->wait(), 0) << ran->errors();
}

}  // namespace
}  // namespace holdfast::cli::testing
