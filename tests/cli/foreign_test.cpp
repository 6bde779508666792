#include <gmock/gmock.h>

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
    EXPECT_EQ(refused->wait(), 64);
    EXPECT_THAT(refused->errors(), HasSubstr("--force"));
    EXPECT_EQ(server_.cli({"EXISTS", "job"}), "1");
    EXPECT_EQ(finish({"release", "job", "--force"}, on_server())->wait(), 0);
    EXPECT_EQ(server_.cli({"EXISTS", "job"}), "0");
}

}  // namespace
}  // namespace holdfast::cli::testing
