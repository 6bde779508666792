#include <gmock/gmock.h>

#include <support/redis_servers.hpp>

#include "fixture.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;

class time_limits : public cli_test {
protected:
    [[nodiscard]] std::string on_server() const {
        return "redis://127.0.0.1:" + std::to_string(server_.port());
    }

    testing_support::redis_server server_;
};

TEST_F(time_limits, a_server_that_hangs_costs_no_more_than_the_timeout) {
    server_.pause();
    for (const auto& arguments : {words{"list"}, words{"inspect", "job"}, words{"release", "job"},
                                  words{"check", "job", "--token", "1"}, words{"doctor"}}) {
        auto all = arguments;
        all.insert(all.end(), {"--store", on_server(), "--timeout", "100ms", "--json"});
        const auto failed = finish(all);
        EXPECT_EQ(failed->wait(), 69);
        EXPECT_THAT(failed->errors(), HasSubstr("did not answer within --timeout 100ms"));
        EXPECT_EQ(parse(failed->output()).at("error").as_string(), "unavailable");
    }
    server_.resume();
}

TEST_F(time_limits, a_list_that_is_too_long_for_the_timeout_says_so) {
    server_.cli({"EVAL", "for i = 1, 200000 do redis.call('SET', 'key:' .. i, i) end", "0"});
    for (int attempt = 0; attempt < 8; ++attempt) {
        const auto listed = finish({"list", "--store", on_server(), "--timeout", "60ms"});
        EXPECT_EQ(listed->wait(), 69);
        EXPECT_THAT(listed->errors(), HasSubstr("did not answer within --timeout 60ms"));
    }
}

TEST_F(time_limits, an_address_without_its_scheme_is_told_with_it) {
    const auto failed = finish({"list", "--store", "redis.example:6379"});
    EXPECT_EQ(failed->wait(), 78);
    EXPECT_THAT(failed->errors(), HasSubstr("write redis://redis.example:6379;"));
}

TEST_F(time_limits, an_answer_in_time_is_given) {
    const auto listed = finish({"list", "--store", on_server(), "--timeout", "1m"});
    EXPECT_EQ(listed->wait(), 0);
    EXPECT_THAT(listed->errors(), HasSubstr("no locks are held"));
}

TEST_F(time_limits, a_reader_that_is_slow_does_not_count) {
    // More than a pipe holds: the program still writes when its time is over.
    const auto script = program_path() + " list --timeout 3s --json --store " + on_server() +
                        " | { sleep 3.5; wc -c; }";
    server_.cli({"EVAL",
                 "for i = 1, 400 do local name = string.rep('x', 200) .. i; "
                 "redis.call('HSET', name, '9f0c1e52-4f0e-4a6e-8f0a-0123456789ab:47', 1); "
                 "redis.call('PEXPIRE', name, 60000) end",
                 "0"});
    program slow{{"/bin/bash", "-o", "pipefail", "-c", script},
                 {.environment = environment(), .input = ""}};
    EXPECT_EQ(slow.wait(), 0) << slow.errors();
    EXPECT_GT(std::stol(slow.output()), 100'000);
}

}  // namespace
}  // namespace holdfast::cli::testing
