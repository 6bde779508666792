#include <algorithm>
#include <string>
#include <vector>

#include <integration/redis/redis_stage.hpp>

/// What `client::examine` finds out about real servers.
namespace holdfast::testing {

namespace {

using testing_support::redis_cluster;

[[nodiscard]] std::size_t findings_about(const std::vector<finding>& findings, finding::severity level,
                                         std::string_view word) {
    return static_cast<std::size_t>(
        std::count_if(findings.begin(), findings.end(), [&](const finding& each) {
            return each.level == level && each.text.find(word) != std::string::npos;
        }));
}

[[nodiscard]] std::size_t warnings_about(const std::vector<finding>& findings, std::string_view word) {
    return findings_about(findings, finding::severity::warning, word);
}

[[nodiscard]] bool is_warned_of(const std::vector<finding>& findings, const std::string& server) {
    return std::any_of(findings.begin(), findings.end(), [&](const finding& each) {
        return each.level == finding::severity::warning && each.server == server;
    });
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
    server.cli({"CONFIG", "SET", "appendfsync", "no"});
    EXPECT_EQ(warnings_about(client.examine(), "appendfsync is no"), 1U);
}

TEST(redis_examination, a_server_that_refuses_writes_is_warned_of_in_the_words_of_the_refusal) {
    const redis_server server{{.arguments = {"--appendonly", "yes", "--appendfsync", "always"}}};
    client client{address_of(server.port())};
    const auto expect = [&](const std::string& words) {
        const auto found = client.examine();
        EXPECT_EQ(warnings_about(found, "no lock can be had now: " + words), 1U);
        EXPECT_EQ(warnings_about(found, ""), 1U);
    };
    server.cli({"CONFIG", "SET", "min-replicas-to-write", "1"});
    expect("the server refuses writes because it has too few replicas (NOREPLICAS");
    // Also when the user may not run the first command that the server would refuse.
    server.cli({"ACL", "SETUSER", "default", "-set"});
    EXPECT_EQ(warnings_about(client.examine(), "too few replicas"), 1U);
    server.cli({"ACL", "SETUSER", "default", "+set"});
    server.cli({"CONFIG", "SET", "min-replicas-to-write", "0"});
    server.cli({"CONFIG", "SET", "maxmemory", "1"});
    expect("the server has reached its maxmemory");
    server.cli({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_EQ(warnings_about(client.examine(), ""), 0U);
}

TEST(redis_examination, a_server_that_loads_its_data_is_warned_of_and_not_for_its_settings) {
    redis_server server{
        {.arguments = {"--enable-debug-command", "local", "--appendonly", "yes", "--appendfsync",
                       "always", "--loading-process-events-interval-bytes", "1024"}}};
    client client{address_of(server.port())};
    server.cli({"DEBUG", "POPULATE", "4000", "filler", "100"});
    server.cli({"BGREWRITEAOF"});
    EXPECT_TRUE(eventually([&] { return server.info("aof_rewrite_in_progress") == "0"; }));
    server.cli({"CONFIG", "SET", "key-load-delay", "400"});
    // Meanwhile the server answers as it does when it starts.
    auto loading = in_background([&] { return server.cli({"DEBUG", "LOADAOF"}); });
    EXPECT_TRUE(eventually([&] { return server.ask({"GET", "x"}).text.starts_with("LOADING"); }));

    const auto found = client.examine();
    server.cli({"CONFIG", "SET", "key-load-delay", "0"});
    EXPECT_EQ(loading.get(), "OK");

    EXPECT_EQ(warnings_about(found, "the server is loading its data; no lock can be had until"), 1U);
    EXPECT_EQ(warnings_about(found, ""), 1U);
    EXPECT_TRUE(std::none_of(found.begin(), found.end(), [](const finding& each) {
        return each.level == finding::severity::unchecked;
    }));
    EXPECT_EQ(warnings_about(client.examine(), ""), 0U);
}

TEST(redis_examination,
     a_master_that_sentinels_watch_alone_is_warned_of_and_one_that_stands_alone_not) {
    const redis_server master;
    const redis_server sentinel{redis_server_options{
        .arguments = {"--sentinel"},
        .configuration =
            "sentinel monitor service 127.0.0.1 " + std::to_string(master.port()) + " 1\n"}};
    client watched{"redis+sentinel://127.0.0.1:" + std::to_string(sentinel.port()) + "/service"};
    const auto found = watched.examine();
    EXPECT_EQ(warnings_about(found, "no replica is connected"), 1U);
    EXPECT_EQ(findings_about(found, finding::severity::advice, "knows of no other sentinel"), 1U);
    client alone{address_of(master.port())};
    EXPECT_EQ(warnings_about(alone.examine(), "no replica is connected"), 0U);
    master.cli({"CONFIG", "SET", "tcp-keepalive", "0"});
    EXPECT_EQ(warnings_about(alone.examine(), "tcp-keepalive is 0"), 1U);
}

/// On behalf of a user of the sentinels who may ask for what the documentation says.
[[nodiscard]] std::string sentinel_address(const testing_support::redis_sentinels& servers,
                                           const std::string& options = {}) {
    std::string nodes;
    for (const auto port : servers.sentinel_ports()) {
        nodes += (nodes.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
    }
    return "redis+sentinel://" + nodes + "/" + servers.service() + options;
}

TEST(redis_examination, sentinels_that_cannot_replace_their_master_are_warned_of_by_name) {
    using level = finding::severity;
    testing_support::redis_sentinels servers;
    const auto sentinel = [&](std::size_t index) {
        return "sentinel 127.0.0.1:" + std::to_string(servers.sentinel(index).port());
    };
    const auto well = client{sentinel_address(servers)}.examine();
    EXPECT_EQ(findings_about(well, level::fact, "(OK 3 usable Sentinels"), 3U);
    EXPECT_EQ(findings_about(well, level::advice, "sentinel"), 0U);
    for (std::size_t index = 0; index < 3; ++index) {
        EXPECT_FALSE(is_warned_of(well, sentinel(index)));
    }

    servers.sentinel(1).kill_hard();
    servers.sentinel(2).pause();
    const auto& left = servers.sentinel(0);
    EXPECT_TRUE(eventually([&] {
        return left.cli({"SENTINEL", "CKQUORUM", servers.service()}).starts_with("NOQUORUM 1 usable");
    }));
    const auto found = client{sentinel_address(servers)}.examine();
    EXPECT_EQ(warnings_about(found, "does not answer"), 2U);
    EXPECT_TRUE(is_warned_of(found, sentinel(1)));
    EXPECT_TRUE(is_warned_of(found, sentinel(2)));
    EXPECT_EQ(warnings_about(found, "(NOQUORUM 1 usable Sentinels. "), 1U);

    left.cli({"ACL", "SETUSER", "watcher", "on", ">w", "&+switch-master",
              "+sentinel|get-master-addr-by-name", "+sentinel|master", "+subscribe", "+unsubscribe"});
    ::setenv("HOLDFAST_TEST_SENTINEL_PASSWORD", "w", 1);
    const auto blind = client{sentinel_address(servers,
                                               "?sentinel_user=watcher&sentinel_password_env="
                                               "HOLDFAST_TEST_SENTINEL_PASSWORD")}
                           .examine();
    EXPECT_EQ(warnings_about(blind, "NOQUORUM"), 0U);
    EXPECT_EQ(findings_about(blind, level::unchecked, "ACL SETUSER watcher +sentinel|ckquorum"), 1U);
}

TEST(redis_examination, a_cluster_needs_more_permissions) {
    redis_cluster cluster{{.masters = 1, .replicas_each = 0}};
    auto& server = cluster.node(0);
    server.cli(
        {"ACL", "SETUSER", "locker", "on", ">secret", "~*", "&*", "+@all", "-asking", "-ssubscribe"});
    client client{"redis+cluster://locker:secret@127.0.0.1:" + std::to_string(server.port())};
    EXPECT_EQ(warnings_about(client.examine(), "ACL SETUSER locker +asking +ssubscribe"), 1U);
    server.cli({"ACL", "SETUSER", "locker", "+asking", "+ssubscribe"});
    const auto found = client.examine();
    EXPECT_EQ(warnings_about(found, "ACL SETUSER"), 0U);
    EXPECT_EQ(warnings_about(found, "no replica is connected"), 1U);
    EXPECT_EQ(server.cli({"KEYS", "holdfast_doctor*"}), "");
}

}  // namespace

}  // namespace holdfast::testing
