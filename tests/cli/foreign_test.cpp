#include <gmock/gmock.h>

#include <csignal>
#include <support/redis_servers.hpp>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;

class foreign_holder : public cli_test {
protected:
    [[nodiscard]] program_options on_server() const {
        return {
            .environment = {{"HOLDFAST_STORE", "redis://127.0.0.1:" + std::to_string(server_.port())}}};
    }

    testing_support::redis_server server_;
};

TEST_F(foreign_holder, is_not_known_to_be_dead_so_its_lock_is_not_taken_without_force) {
    server_.cli({"HSET", "job", "9f0c1e52-4f0e-4a6e-8f0a-0123456789ab:47", "1"});
    server_.cli({"PEXPIRE", "job", "60000"});
    const auto refused = finish({"release", "job"}, on_server());
    EXPECT_EQ(refused->wait(), 75);
    EXPECT_THAT(refused->errors(), HasSubstr("--force"));
    EXPECT_EQ(server_.cli({"EXISTS", "job"}), "1");
    EXPECT_EQ(finish({"release", "job", "--force"}, on_server())->wait(), 0);
    EXPECT_EQ(server_.cli({"EXISTS", "job"}), "0");
}

TEST_F(foreign_holder, of_this_host_is_known_to_be_alive_or_dead) {
    const auto status = [&] {
        const auto lock = parse(finish({"inspect", "job", "--json"}, on_server())->output());
        return std::string{lock.at("holders").at(0).at("status").as_string()};
    };
    const auto holder = start(run_script("job", {}, "echo holding; read line"), on_server());
    holder->wait_for_output("holding");
    EXPECT_EQ(status(), "alive");
    holder->signal(SIGKILL);
    holder->wait();
    EXPECT_EQ(status(), "dead");
    EXPECT_EQ(finish({"release", "job"}, on_server())->wait(), 0);

    // Another boot, or another host with the same name.
    server_.cli({"HSET", "job", "9f0c1e52-4f0e-4a6e-8f0a-0123456789ab:47", "1"});
    server_.cli({"HSET", "holdfast_card:{9f0c1e52-4f0e-4a6e-8f0a-0123456789ab}", "host", "here", "pid",
                 "1", "process", "9f0c1e52-4f0e-4a6e-8f0a-0123456789ab 1 4026531836 9"});
    EXPECT_EQ(status(), "unknown");
}

/// It has the shape of a read/write lock, but no holder.
TEST_F(foreign_holder, a_mode_alone_is_no_lock) {
    for (const std::string mode : {"read", "write"}) {
        server_.cli({"HSET", "job", "mode", mode});
        for (const words& command : {words{"run", "job", "--no-wait", "--", "true"},
                                     words{"run", "job", "--shared", "--no-wait", "--", "true"},
                                     words{"inspect", "job"}, words{"release", "job", "--force"}}) {
            const auto refused = finish(command, on_server());
            EXPECT_EQ(refused->wait(), 78) << command.front() << " " << mode;
            EXPECT_EQ(refused->output(), "");
        }
        EXPECT_EQ(finish({"list"}, on_server())->output(), "");
        EXPECT_EQ(server_.cli({"HGETALL", "job"}), "mode\n" + mode);
        server_.cli({"DEL", "job"});
    }
}

}  // namespace
}  // namespace holdfast::cli::testing
