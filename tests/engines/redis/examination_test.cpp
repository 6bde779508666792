#include <gtest/gtest.h>

#include <redis/examination.hpp>

#include <algorithm>
#include <string>

/// What INFO says about a server.
namespace holdfast::engines::redis {
namespace {

std::string info_of(const std::string& versions) {
    return "# Server\r\n" + versions +
           "run_id:abc\r\nuptime_in_seconds:7\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n"
           "connected_slaves:2\r\n";
}

std::size_t warnings_in(const std::vector<finding>& all) {
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const finding& each) {
        return each.level == finding::severity::warning;
    }));
}

std::vector<finding> judged(const std::string& versions) {
    return judge_server(info_of(versions), "always");
}

TEST(redis_server_judgement, supported_versions_are_named_and_not_warned_of) {
    for (const auto* number : {"6.2.0", "6.2.14", "7.0.15", "7.4.1", "8.2.0", "10.0.0"}) {
        const auto found = judged("redis_version:" + std::string{number} + "\r\n");
        EXPECT_EQ(warnings_in(found), 0U) << number;
        EXPECT_TRUE(found.front().text.starts_with("Redis " + std::string{number} + ", up for 7 s"))
            << found.front().text;
    }
}

TEST(redis_server_judgement, valkey_is_called_so) {
    const auto found = judged("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n");
    EXPECT_EQ(warnings_in(found), 0U);
    EXPECT_TRUE(found.front().text.starts_with("Valkey 8.0.1 (like Redis 7.2.4), up for"))
        << found.front().text;
}

TEST(redis_server_judgement, versions_that_are_too_old_are_refused) {
    for (const auto* number : {"6.0.16", "5.0.14", "2.8.24", "", "unstable"}) {
        const auto found = judged("redis_version:" + std::string{number} + "\r\n");
        ASSERT_EQ(warnings_in(found), 1U) << number;
        EXPECT_NE(found.back().text.find("6.2 or newer"), std::string::npos) << found.back().text;
    }
}

TEST(redis_server_judgement, servers_that_only_speak_like_redis_are_refused_by_name) {
    const auto found = judged("redis_version:7.2.0\r\ndragonfly_version:df-v1.23.0\r\n");
    ASSERT_EQ(warnings_in(found), 1U);
    EXPECT_NE(found.back().text.find("Dragonfly df-v1.23.0"), std::string::npos) << found.back().text;
}

}  // namespace
}  // namespace holdfast::engines::redis
