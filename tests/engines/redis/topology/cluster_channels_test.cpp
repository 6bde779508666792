#include <gtest/gtest.h>

#include <engines/redis/topology/clusters.hpp>

namespace holdfast::engines::redis {
namespace {

const std::string channel = "news:{foo}";
const std::string general = "general:{foo}";

channel_place sharded_place() {
    return {channel, slot_of(channel), channel_style::sharded};
}

channel_place classic_place() {
    return {general, slot_of(general), channel_style::classic};
}

/// Published again and again until it is heard, because it may be heard by those who are there only.
bool comes_through(ear& hears, redis_server& at, const std::string& command, const std::string& where,
                   const std::string& message, std::chrono::milliseconds limit = 5s) {
    return became_true(
        [&] {
            at.cli({command, where, message});
            return hears.has_heard(where, message);
        },
        limit);
}

TEST(redis_cluster_channels,
     they_are_sharded_exactly_when_the_servers_can_unless_the_address_says_otherwise) {
    auto where = address_of(undisturbed());
    EXPECT_EQ(connected(where)->publish_command(), "spublish");
    where.sharded = address::sharding::off;
    EXPECT_EQ(connected(where)->publish_command(), "publish");
    where.sharded = address::sharding::on;
    EXPECT_EQ(connected(where)->publish_command(), "spublish");
}

TEST(redis_cluster_channels, whoever_may_not_ask_uses_classic_ones) {
    auto& servers = undisturbed();
    for (std::size_t index = 0; index < servers.size(); ++index) {
        servers.node(index).cli(
            {"ACL", "SETUSER", "plain", "on", ">p", "~*", "&*", "+@all", "-pubsub"});
    }
    auto where = address_of(servers);
    where.connection.login = {"plain", "p"};
    EXPECT_EQ(connected(where)->publish_command(), "publish");
}

TEST(redis_cluster_channels, a_sharded_channel_is_heard_at_the_owner_of_its_slot) {
    auto& servers = undisturbed();
    ear hears;
    const auto through = connected(address_of(servers), hears.events());
    through->subscribe(sharded_place());
    ASSERT_TRUE(became_true([&] { return hears.times_subscribed(channel) == 1; }));
    EXPECT_TRUE(through->subscribed(sharded_place()));
    auto& owner = servers.node_of_slot(slot_of(channel));
    EXPECT_EQ(owner.cli({"PUBSUB", "SHARDNUMSUB", channel}), channel + "\n1");
    owner.cli({"SPUBLISH", channel, "hello"});
    EXPECT_TRUE(became_true([&] { return hears.has_heard(channel, "hello"); }));
    through->unsubscribe(sharded_place());
    EXPECT_FALSE(through->subscribed(sharded_place()));
}

TEST(redis_cluster_channels, a_classic_channel_is_heard_from_everywhere) {
    auto& servers = undisturbed();
    ear hears;
    const auto through = connected(address_of(servers), hears.events());
    through->subscribe(classic_place());
    ASSERT_TRUE(became_true([&] { return hears.times_subscribed(general) == 1; }));
    servers.node_without_slot(slot_of(general)).cli({"PUBLISH", general, "hello"});
    EXPECT_TRUE(became_true([&] { return hears.has_heard(general, "hello"); }));
}

TEST(redis_cluster_channels, a_sharded_channel_follows_its_slot) {
    redis_cluster servers{{.masters = 3, .replicas_each = 0}};
    ear hears;
    const auto through = connected(address_of(servers), hears.events());
    through->subscribe(sharded_place());
    ASSERT_TRUE(became_true([&] { return hears.times_subscribed(channel) == 1; }));
    const auto slot = slot_of(channel);
    auto fastest = std::chrono::nanoseconds::max();
    for (int round = 1; round <= 3; ++round) {
        wait_for_agreement(servers);
        auto& to = servers.node_without_slot(slot);
        servers.migrate_slot(slot, to);
        // Nobody asks for anything: the server's word that it is over must be enough.
        const auto moved = clock::now();
        EXPECT_TRUE(became_true([&] { return hears.times_subscribed(channel) > round; }, 3s));
        fastest = std::min<std::chrono::nanoseconds>(fastest, clock::now() - moved);
        EXPECT_TRUE(through->subscribed(sharded_place()));
        EXPECT_TRUE(comes_through(hears, to, "SPUBLISH", channel, "round " + std::to_string(round)));
    }
    EXPECT_LT(fastest, 900ms) << "sooner than the look that is taken once a second";
}

TEST(redis_cluster_channels, channels_follow_a_failover) {
    redis_cluster servers;
    ear hears;
    const auto through = connected(address_of(servers), hears.events());
    through->subscribe(sharded_place());
    through->subscribe(classic_place());
    ASSERT_TRUE(became_true([&] { return through->subscribed(sharded_place()); }));
    ASSERT_TRUE(became_true([&] { return through->subscribed(classic_place()); }));
    const auto slot = slot_of(channel);
    const auto old = servers.kill_master_of(slot);
    const auto now = servers.wait_for_new_master(slot, old);
    // Nobody asks for anything.
    EXPECT_TRUE(comes_through(hears, servers.server(now), "SPUBLISH", channel, "hello", 2s));
    EXPECT_TRUE(comes_through(hears, servers.server(now), "PUBLISH", general, "hello", 2s));
    EXPECT_GE(hears.times_subscribed(channel), 2);
    EXPECT_GE(hears.times_subscribed(general), 2);
}

TEST(redis_cluster_channels, a_classic_channel_leaves_a_server_that_does_not_answer) {
    redis_cluster servers{{.masters = 3,
                           .replicas_each = 0,
                           .server = {.arguments = {"--cluster-require-full-coverage", "no"}}}};
    ear hears;
    const auto through = connected(address_of(servers), hears.events());
    through->subscribe(classic_place());
    ASSERT_TRUE(became_true([&] { return through->subscribed(classic_place()); }));
    auto& other = servers.node_without_slot(slot_of(general));
    servers.kill_master_of(slot_of(general));
    EXPECT_TRUE(comes_through(hears, other, "PUBLISH", general, "hello", 12s));
}

}  // namespace
}  // namespace holdfast::engines::redis
