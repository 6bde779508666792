#include <gtest/gtest.h>

#include <engines/redis/topology/routing.hpp>
#include <support/redis_servers.hpp>

namespace holdfast::engines::redis {
namespace {

using testing_support::redis_sentinels;
using testing_support::redis_server;

node_address local(std::uint16_t port) {
    return {"127.0.0.1", port, {}};
}

address address_of(const redis_sentinels& servers) {
    address where;
    where.topology = topology_kind::sentinel;
    where.service = redis_sentinels::service();
    for (const auto port : servers.sentinel_ports()) {
        where.nodes.push_back(local(port));
    }
    return where;
}

failure try_to_connect(const address& where) {
    return make_sentinel(where, {})->connect(clock::now() + 3s);
}

std::unique_ptr<router> connected(const address& where, router::events told = {}) {
    auto made = make_sentinel(where, std::move(told));
    if (const auto why = made->connect(clock::now() + 5s)) {
        throw std::runtime_error{"cannot connect: " + why.detail};
    }
    return made;
}

/// For tests that leave the servers as they are.
redis_sentinels& undisturbed() {
    static redis_sentinels servers;
    return servers;
}

TEST(redis_sentinel, commands_reach_the_master) {
    auto& servers = undisturbed();
    const auto through = connected(address_of(servers));
    EXPECT_TRUE(works(*through, {"SET", "here", "1"}));
    EXPECT_EQ(servers.master().cli({"GET", "here"}), "1");
    EXPECT_FALSE(through->clustered());
    EXPECT_EQ(through->publish_command(), "publish");
    EXPECT_EQ(through->replicas_of(0), 2U);
    EXPECT_GE(through->commands_sent(), 1U);
}

TEST(redis_sentinel, a_sentinel_that_is_not_there_does_no_harm) {
    auto where = address_of(undisturbed());
    where.nodes.front() = local(testing_support::free_port());
    EXPECT_TRUE(works(*connected(where), {"SET", "a", "1"}));
}

TEST(redis_sentinel, a_name_that_is_not_known_does_no_harm) {
    auto where = address_of(undisturbed());
    where.nodes.front().host = "nobody.invalid";
    EXPECT_TRUE(works(*connected(where), {"SET", "a", "1"}));
}

TEST(redis_sentinel, without_any_sentinel_the_store_is_unavailable) {
    auto where = address_of(undisturbed());
    where.nodes = {local(testing_support::free_port())};
    const auto why = try_to_connect(where);
    EXPECT_EQ(why.code, errc::store_unavailable);
    EXPECT_NE(why.detail.find("sentinel 127.0.0.1:"), std::string::npos) << why.detail;
}

TEST(redis_sentinel, a_service_that_nobody_knows_is_a_wrong_address) {
    auto where = address_of(undisturbed());
    where.service = "elsewhere";
    EXPECT_EQ(try_to_connect(where).code, errc::bad_configuration);
}

TEST(redis_sentinel, a_server_that_is_no_sentinel_is_a_wrong_address) {
    const redis_server alone;
    auto where = address_of(undisturbed());
    where.nodes = {local(alone.port())};
    const auto why = try_to_connect(where);
    EXPECT_EQ(why.code, errc::bad_configuration);
    EXPECT_NE(why.detail.find("not a sentinel"), std::string::npos) << why.detail;
}

TEST(redis_sentinel, a_wrong_password_for_the_sentinels_is_reported) {
    auto where = address_of(undisturbed());
    where.sentinel_login = {"nobody", "wrong-one"};
    const auto why = try_to_connect(where);
    EXPECT_EQ(why.code, errc::unauthorised);
    EXPECT_NE(why.detail.find("sentinel"), std::string::npos) << why.detail;
    EXPECT_EQ(why.detail.find("wrong-one"), std::string::npos) << why.detail;
}

TEST(redis_sentinel, a_wrong_password_for_the_servers_is_reported) {
    auto where = address_of(undisturbed());
    where.connection.login = {"nobody", "wrong-one"};
    const auto why = try_to_connect(where);
    EXPECT_EQ(why.code, errc::unauthorised);
    EXPECT_EQ(why.detail.find("wrong-one"), std::string::npos) << why.detail;
}

TEST(redis_sentinel, it_logs_in_at_sentinels_and_servers_separately_and_needs_few_rights) {
    auto& servers = undisturbed();
    for (std::size_t index = 0; index < 3; ++index) {
        servers.sentinel(index).cli({"ACL", "SETUSER", "watcher", "on", ">w", "&+switch-master",
                                     "-@all", "+sentinel|get-master-addr-by-name", "+sentinel|master",
                                     "+subscribe", "+unsubscribe"});
    }
    servers.master().cli({"ACL", "SETUSER", "locker", "on", ">l", "~*", "-@all", "+time", "+role",
                          "+client|setname", "+set"});
    auto where = address_of(servers);
    where.sentinel_login = {"watcher", "w"};
    where.connection.login = {"locker", "l"};
    EXPECT_TRUE(works(*connected(where), {"SET", "a", "1"}));
}

TEST(redis_sentinel, without_leave_to_listen_at_the_sentinels_it_never_opens_and_says_why) {
    auto& servers = undisturbed();
    auto where = address_of(servers);
    where.sentinel_login = {"deaf", "d"};
    const auto expect_refused = [&](const std::string& right, const std::string& words) {
        for (std::size_t index = 0; index < 3; ++index) {
            servers.sentinel(index).cli({"ACL", "SETUSER", "deaf", "reset", "on", ">d", right,
                                         "+sentinel|get-master-addr-by-name", "+sentinel|master",
                                         "+unsubscribe"});
        }
        for (int time = 0; time < 10; ++time) {
            const auto why = try_to_connect(where);
            EXPECT_EQ(why.code, errc::unauthorised) << why.detail;
            EXPECT_NE(why.detail.find(words), std::string::npos) << why.detail;
        }
    };
    expect_refused("&+switch-master", "+subscribe");
    expect_refused("+subscribe", "ACL SETUSER deaf &+switch-master");
}

TEST(redis_sentinel, what_is_pending_at_the_end_is_told_of_the_shutdown) {
    auto through = connected(address_of(undisturbed()));
    std::promise<errc> ended;
    through->send(0, router::lane::common, encoded({{"BLPOP", "never", "0"}}),
                  {clock::now() + 60s, caller::must_not_block},
                  [&](const connection::result& result) { ended.set_value(result.error.code); });
    through.reset();
    EXPECT_EQ(ended.get_future().get(), errc::shut_down);
}

TEST(redis_sentinel, work_resumes_when_the_master_is_killed) {
    redis_sentinels servers;
    const auto through = connected(address_of(servers));
    counting count{*through, {"a", "b", "c"}};
    ASSERT_TRUE(count.goes_on("a", 5s));
    const auto old = servers.kill_master();
    servers.wait_for_new_master(old);
    EXPECT_TRUE(count.goes_on("a", 1s));
    EXPECT_TRUE(count.goes_on("b", 1s));
    EXPECT_TRUE(count.goes_on("c", 1s));
    count.stop();
    EXPECT_EQ(count.surprise(), "");
    EXPECT_GT(count.refused("a") + count.uncertain("a"), 0);
    EXPECT_EQ(through->replicas_of(0), 2U);
}

TEST(redis_sentinel, the_new_master_is_used_as_soon_as_the_sentinels_tell) {
    redis_sentinels servers;
    ear hears;
    const auto through = connected(address_of(servers), hears.events());
    through->subscribe({"news", 0});
    ASSERT_TRUE(became_true([&] { return hears.times_subscribed("news") == 1; }));
    counting count{*through, {"a"}};
    const auto old = servers.master().port();
    ASSERT_EQ(servers.sentinel(0).cli({"SENTINEL", "FAILOVER", redis_sentinels::service()}), "OK");
    const auto now = servers.wait_for_new_master(old);
    EXPECT_TRUE(count.goes_on("a", 1s));
    EXPECT_TRUE(works(*through, {"SET", "after", "1"}));
    EXPECT_EQ(servers.server(now).cli({"GET", "after"}), "1");
    // Channels follow, and those who wait are told that they may have missed something.
    EXPECT_TRUE(became_true([&] { return hears.times_subscribed("news") >= 2; }));
    EXPECT_TRUE(through->subscribed({"news", 0}));
    servers.server(now).cli({"PUBLISH", "news", "hello"});
    EXPECT_TRUE(became_true([&] { return hears.has_heard("news", "hello"); }));
    count.stop();
    EXPECT_EQ(count.surprise(), "");
}

TEST(redis_sentinel, a_hung_master_is_not_used_any_more_when_it_wakes_up) {
    redis_sentinels servers;
    auto where = address_of(servers);
    where.connection.connect_timeout = 30s;
    const auto through = connected(where);
    ASSERT_TRUE(works(*through, {"SET", "before", "1"}));
    auto& old = servers.master();
    old.pause();
    // These wait for connections to the old master; when it wakes up they must not reach it.
    std::promise<errc> ended;
    through->send(0, router::lane::confirmed, encoded({{"SET", "lost", "1"}}),
                  {clock::now() + 20s, caller::must_not_block},
                  [&](const connection::result& result) { ended.set_value(result.error.code); });
    auto blocked = std::async(std::launch::async, [&] {
        return ask(*through, 0, {{"SET", "lost", "1"}}, 20s, caller::may_block,
                   router::lane::confirmed);
    });
    const auto now = servers.wait_for_new_master(old.port());
    EXPECT_TRUE(became_true([&] { return works(*through, {"SET", "after", "1"}); }, 2s));
    old.resume();
    EXPECT_EQ(blocked.get().error.code, errc::store_unavailable);
    EXPECT_NE(ended.get_future().get(), errc::shut_down);
    int taken_for_master = 0;
    for (int written = 0; written < 200; ++written) {
        const auto key = "key" + std::to_string(written);
        ASSERT_TRUE(works(*through, {"SET", key, "1"}));
        if (old.cli({"ROLE"}).starts_with("master")) {
            ++taken_for_master;
            ASSERT_EQ(old.cli({"EXISTS", "after", "lost", key}), "0");
        }
    }
    EXPECT_GT(taken_for_master, 0) << "the old master gave up too early for this test";
    EXPECT_EQ(servers.server(now).cli({"EXISTS", "key0", "key199"}), "2");
}

TEST(redis_sentinel, what_waited_for_the_old_master_is_told_though_not_of_a_shutdown) {
    redis_sentinels servers;
    auto where = address_of(servers);
    where.connection.connect_timeout = 30s;
    const auto through = connected(where);
    auto& old = servers.master();
    old.pause();
    std::promise<errc> ended;
    through->send(0, router::lane::confirmed, encoded({{"SET", "lost", "1"}}),
                  {clock::now() + 60s, caller::must_not_block},
                  [&](const connection::result& result) { ended.set_value(result.error.code); });
    servers.wait_for_new_master(old.port());
    auto told = ended.get_future();
    ASSERT_EQ(told.wait_for(5s), std::future_status::ready);
    EXPECT_EQ(told.get(), errc::outcome_unknown);
    old.resume();
}

TEST(redis_sentinel, a_restarted_master_that_takes_itself_for_one_is_refused) {
    redis_sentinels servers;
    const auto old = servers.kill_master();
    const auto now = servers.wait_for_new_master(old);
    servers.server(old).start_again();
    ASSERT_TRUE(servers.server(old).cli({"ROLE"}).starts_with("master"));
    const auto through = connected(address_of(servers));
    EXPECT_TRUE(works(*through, {"SET", "a", "1"}));
    EXPECT_EQ(servers.server(now).cli({"GET", "a"}), "1");
}

TEST(redis_sentinel, one_hung_sentinel_delays_nothing) {
    redis_sentinels servers;
    const auto through = connected(address_of(servers));
    counting count{*through, {"a"}};
    ASSERT_TRUE(count.goes_on("a", 5s));
    const auto old = servers.master().port();
    servers.sentinel(0).pause();
    servers.server(old).kill_hard();
    EXPECT_TRUE(count.goes_on("a", 15s));
    servers.sentinel(0).resume();
}

}  // namespace
}  // namespace holdfast::engines::redis
