#include <algorithm>
#include <string>
#include <vector>

#include <integration/redis/redis_stage.hpp>

/// What `client::examine` finds out about real servers.
namespace holdfast::testing {

namespace {

[[nodiscard]] std::size_t warnings_about(const std::vector<finding>& findings, std::string_view word) {
    return static_cast<std::size_t>(
        std::count_if(findings.begin(), findings.end(), [&](const finding& each) {
            const bool warns = each.level == finding::severity::warning;
            return warns && each.text.find(word) != std::string::npos;
        }));
}

TEST(redis_examination, a_server_that_may_forget_locks_is_warned_of) {
    const redis_server server{{.arguments = {"--maxmemory-policy", "allkeys-lru"}}};
    client client{address_of(server.port())};

    const auto found = client.examine();

    EXPECT_EQ(warnings_about(found, "allkeys-lru"), 1U);
    EXPECT_EQ(warnings_about(found, "appendonly is off"), 1U);
    ASSERT_FALSE(found.empty());
    EXPECT_NE(found.front().text.find(server.info("run_id")), std::string::npos);
}

TEST(redis_examination, a_server_that_keeps_what_it_granted_is_not) {
    const redis_server server{{.arguments = {"--appendonly", "yes", "--appendfsync", "always"}}};
    client client{address_of(server.port())};

    EXPECT_EQ(warnings_about(client.examine(), ""), 0U);
    server.cli({"CONFIG", "SET", "appendfsync", "everysec"});
    EXPECT_EQ(warnings_about(client.examine(), "everysec"), 1U);
}

}  // namespace

}  // namespace holdfast::testing
