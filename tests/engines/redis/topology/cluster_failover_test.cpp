#include <gtest/gtest.h>

#include <engines/redis/topology/clusters.hpp>

namespace holdfast::engines::redis {
namespace {

TEST(redis_cluster_failover, work_resumes_when_a_master_is_killed) {
    redis_cluster servers;
    const auto through = connected(address_of(servers));
    counting count{*through, {"foo", "bar", "hello"}};
    ASSERT_TRUE(count.goes_on("foo", 5s));
    EXPECT_EQ(through->replicas_of(slot_of("foo")), 1U);
    const auto old = servers.kill_master_of(slot_of("foo"));
    servers.wait_for_new_master(slot_of("foo"), old);
    EXPECT_TRUE(count.goes_on("foo", 1s));
    EXPECT_TRUE(count.goes_on("bar", 1s));
    EXPECT_TRUE(count.goes_on("hello", 1s));
    count.stop();
    EXPECT_EQ(count.surprise(), "");
    EXPECT_GT(count.refused("foo") + count.uncertain("foo"), 0);
    EXPECT_EQ(through->replicas_of(slot_of("foo")), 1U);
}

TEST(redis_cluster_failover, the_other_masters_do_not_wait_for_the_one_that_is_gone) {
    redis_cluster servers{{.server = {.arguments = {"--cluster-require-full-coverage", "no"}}}};
    const auto through = connected(address_of(servers));
    counting count{*through, {"foo", "bar"}};
    ASSERT_TRUE(count.goes_on("bar", 5s));
    ASSERT_TRUE(count.goes_on("foo", 5s));
    const auto old = servers.kill_master_of(slot_of("foo"));
    servers.wait_for_new_master(slot_of("foo"), old);
    count.stop();
    EXPECT_EQ(count.refused("bar") + count.uncertain("bar"), 0);
}

TEST(redis_cluster_failover, a_master_that_steps_down_sends_us_to_the_next) {
    redis_cluster servers;
    const auto through = connected(address_of(servers));
    counting count{*through, {"foo", "bar"}};
    ASSERT_TRUE(count.goes_on("foo", 5s));
    const auto now = servers.failover(slot_of("foo"));
    EXPECT_TRUE(count.goes_on("foo", 1s));
    count.stop();
    EXPECT_EQ(count.surprise(), "");
    EXPECT_EQ(count.uncertain("foo"), 0);
    EXPECT_EQ(servers.server(now).cli({"GET", "foo"}), std::to_string(count.done("foo")));
}

TEST(redis_cluster_failover, a_hung_master_is_left_when_another_has_taken_its_place) {
    redis_cluster servers;
    auto where = address_of(servers);
    where.connection.connect_timeout = 30s;
    const auto through = connected(where);
    counting count{*through, {"foo"}};
    ASSERT_TRUE(count.goes_on("foo", 5s));
    auto& old = servers.node_of_slot(slot_of("foo"));
    old.pause();
    std::promise<errc> ended;
    through->send(slot_of("foo"), router::lane::confirmed, encoded({{"GET", "foo"}}),
                  {clock::now() + 60s, caller::must_not_block},
                  [&](const connection::result& result) { ended.set_value(result.error.code); });
    EXPECT_TRUE(count.goes_on("foo", 15s));
    // What waited for it is told, though not that we are done.
    auto told = ended.get_future();
    ASSERT_EQ(told.wait_for(15s), std::future_status::ready);
    EXPECT_EQ(told.get(), errc::outcome_unknown);
    old.resume();
    EXPECT_TRUE(count.goes_on("foo", 1s));
    count.stop();
    EXPECT_EQ(count.surprise(), "");
}

TEST(redis_cluster_failover, all_the_servers_of_the_address_may_be_gone_by_then) {
    redis_cluster servers;
    auto where = address_of(servers);
    const auto slot = slot_of("foo");
    where.nodes = {local(servers.node_of_slot(slot).port())};
    const auto through = connected(where);
    ASSERT_TRUE(works(*through, {"SET", "foo", "1"}));
    const auto old = servers.kill_master_of(slot);
    servers.wait_for_new_master(slot, old);
    EXPECT_TRUE(became_true([&] { return works(*through, {"SET", "foo", "2"}); }, 1s));
}

}  // namespace
}  // namespace holdfast::engines::redis
