#include <gtest/gtest.h>

#include <redis/examination.hpp>
#include <redis/layout/keys.hpp>

#include <algorithm>
#include <string>

/// What INFO says about a server.
namespace holdfast::engines::redis {
namespace {

std::string info_of(const std::string& versions) {
    return "# Server\r\n" + versions +
           "run_id:abc\r\nuptime_in_seconds:7\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n"
           "connected_slaves:1\r\nmin_slaves_good_slaves:1\r\n"
           "slave0:ip=10.0.0.7,port=6379,state=online,offset=12,lag=0\r\n";
}

std::size_t warnings_in(const std::vector<finding>& all) {
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const finding& each) {
        return each.level == finding::severity::warning;
    }));
}

std::vector<finding> judged(const std::string& versions) {
    return judge_server(info_of(versions), {"yes", "always", "0", "300"});
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

std::string changed(std::string info, const std::string& from, const std::string& to) {
    return info.replace(info.find(from), from.size(), to);
}

void expect_warning(const std::string& info, const std::string& words, bool fails_over = false) {
    const auto found = judge_server(info, {"yes", "always", "0", "300", fails_over});
    EXPECT_EQ(warnings_in(found), 1U) << words;
    EXPECT_NE(found.back().text.find(words), std::string::npos) << found.back().text;
}

TEST(redis_server_judgement, replicas_that_may_lack_locks_are_warned_of) {
    const auto well = info_of("redis_version:7.0.15\r\n");
    const auto unlimited = changed(well, "min_slaves_good_slaves:1\r\n", "");
    expect_warning(unlimited, "min-replicas-to-write is 0");
    expect_warning(unlimited, "stops granting and renewing locks");
    expect_warning(changed(well, "lag=0", "lag=17"), "10.0.0.7:6379 is 17 s behind");
    expect_warning(changed(well, "online", "wait_bgsave"), "not in step");
}

TEST(redis_server_judgement, a_master_that_should_fail_over_needs_a_replica) {
    auto alone = info_of("redis_version:7.0.15\r\n");
    alone = changed(alone.substr(0, alone.find("slave0")), "connected_slaves:1", "connected_slaves:0");
    EXPECT_EQ(warnings_in(judge_server(alone, {"yes", "always", "0", "300"})), 0U);
    expect_warning(alone, "no replica is connected", true);
}

TEST(redis_server_judgement, settings_are_judged_where_they_are_known) {
    const auto well = info_of("redis_version:7.0.15\r\n");
    EXPECT_EQ(warnings_in(judge_server(well, {"yes", "always", "300", "300"})), 1U);
    EXPECT_EQ(warnings_in(judge_server(well, {"yes", "no", "0", "300"})), 1U);
    const auto every_second = judge_server(well, {"yes", "everysec", "0", "300"});
    EXPECT_EQ(warnings_in(every_second), 0U);
    EXPECT_EQ(every_second.back().level, finding::severity::advice);
    const auto without_keepalive = judge_server(well, {"yes", "always", "0", "0"});
    EXPECT_EQ(warnings_in(without_keepalive), 1U);
    EXPECT_NE(without_keepalive.back().text.find("tcp-keepalive is 0"), std::string::npos);
    const auto blind = judge_server(well, {});
    EXPECT_EQ(warnings_in(blind), 0U);
    EXPECT_EQ(blind.back().level, finding::severity::unchecked);
    EXPECT_NE(blind.back().text.find("not checked"), std::string::npos) << blind.back().text;
}

/// A server says so while it reads its data, whatever its settings are.
TEST(redis_server_judgement, a_server_that_loads_its_data_is_not_taken_for_forgetful_or_alone) {
    auto loading =
        changed(info_of("redis_version:7.0.15\r\nloading:1\r\n"), "aof_enabled:1", "aof_enabled:0");
    loading =
        changed(loading.substr(0, loading.find("slave0")), "connected_slaves:1", "connected_slaves:0");
    EXPECT_EQ(warnings_in(judge_server(loading, {"yes", "always", "0", "300", true})), 0U);
    EXPECT_EQ(warnings_in(judge_server(loading, {"no", "always", "0", "300", true})), 1U);
    const auto blind = judge_server(loading, {});
    EXPECT_EQ(warnings_in(blind), 0U);
    EXPECT_EQ(blind.back().level, finding::severity::unchecked);
    EXPECT_TRUE(blind.back().text.starts_with("appendonly, appendfsync, timeout and tcp-keepalive"))
        << blind.back().text;
}

value text_reply(std::string text) {
    value reply;
    reply.type = value::kind::text;
    reply.text = std::move(text);
    return reply;
}

TEST(redis_cluster_judgement, open_slots_are_named_with_the_way_to_close_them) {
    const auto well = text_reply("cluster_state:ok\r\ncluster_slots_ok:16384\r\n");
    const std::string other{"bbb 10.0.0.2:7002@17002 master - 0 1 2 connected 8192-16383\n"};
    const std::string self{"aaa 10.0.0.1:7001@17001,host myself,master - 0 1 1 connected 0-8191"};
    EXPECT_TRUE(judge_cluster(well, text_reply(self + "\n" + other)).empty());
    const auto open = judge_cluster(well, text_reply(self + " [77->-bbb] [9000-<-bbb]\n" + other));
    ASSERT_EQ(warnings_in(open), 1U);
    for (const auto* words : {"77 (MIGRATING to 10.0.0.2:7002)", "9000 (IMPORTING from 10.0.0.2:7002)",
                              "redis-cli --cluster fix 10.0.0.1:7001"}) {
        EXPECT_NE(open.front().text.find(words), std::string::npos) << open.front().text;
    }
}

/// The server that a slot comes from decides whether anything is granted.
TEST(redis_cluster_judgement, open_slots_are_said_to_be_blocked_only_where_they_are) {
    const auto well = text_reply("cluster_state:ok\r\ncluster_slots_ok:16384\r\n");
    const std::string self{"aaa 10.0.0.1:7001@17001,host myself,master - 0 1 1 connected 0-8191"};
    const auto said_of = [&](const std::string& moves) {
        return judge_cluster(well, text_reply(self + moves + "\n")).front().text;
    };
    const std::string blocked{"nothing is granted in slots that are MIGRATING"};
    EXPECT_NE(said_of(" [77->-bbb]").find(blocked), std::string::npos) << said_of(" [77->-bbb]");
    EXPECT_EQ(said_of(" [77-<-bbb]").find(blocked), std::string::npos) << said_of(" [77-<-bbb]");
}

/// A move that was cancelled leaves the counter on the server that imported the slot, and `fix` stops
/// there.
TEST(redis_cluster_judgement, the_counter_that_a_cancelled_move_left_behind_is_named) {
    const auto well = text_reply("cluster_state:ok\r\ncluster_slots_ok:16384\r\n");
    const std::string self{"aaa 10.0.0.1:7001@17001 myself,master - 0 1 1 connected 0-8191"};
    const std::string other{"bbb 10.0.0.2:7002@17002 master - 0 1 2 connected 8192-16383\n"};
    const auto said_of = [&](const std::string& moves) {
        return judge_cluster(well, text_reply(self + moves + "\n" + other)).front().text;
    };
    for (const auto* moves : {" [77->-bbb]", " [77-<-bbb]"}) {
        const auto text = said_of(moves);
        EXPECT_NE(text.find("\"Target key exists\""), std::string::npos) << text;
        EXPECT_NE(text.find("ASKING, DEL " + token_counter(77)), std::string::npos) << text;
        EXPECT_NE(text.find("not --cluster-replace"), std::string::npos) << text;
    }
    EXPECT_NE(said_of(" [77->-bbb]").find("in one connection to 10.0.0.2:7002"), std::string::npos);
    EXPECT_NE(said_of(" [77-<-bbb]").find("in one connection to 10.0.0.1:7001"), std::string::npos);
}

TEST(redis_cluster_judgement, a_cluster_that_is_not_whole_is_warned_of) {
    const auto nodes = text_reply("");
    EXPECT_EQ(warnings_in(
                  judge_cluster(text_reply("cluster_state:fail\r\ncluster_slots_ok:16384\r\n"), nodes)),
              1U);
    EXPECT_EQ(
        warnings_in(judge_cluster(text_reply("cluster_state:ok\r\ncluster_slots_ok:10922\r\n"), nodes)),
        1U);
}

sentinel_checkup checkup(std::uint16_t port, std::optional<std::uint32_t> others, std::string quorum) {
    sentinel_checkup said;
    said.where = {"10.0.0.1", port, {}};
    said.others = others;
    said.quorum = text_reply(std::move(quorum));
    if (!said.quorum.text.starts_with("OK")) {
        said.quorum.type = value::kind::error;
    }
    return said;
}

sentinel_checkup silence(std::uint16_t port, failure why) {
    sentinel_checkup said;
    said.where = {"10.0.0.1", port, {}};
    said.silence = std::move(why);
    return said;
}

using level = finding::severity;

TEST(redis_sentinel_judgement, sentinels_that_agree_are_fine) {
    const auto found = judge_sentinels(
        {checkup(1, 2, "OK 3 usable Sentinels."), checkup(2, {}, "OK 3 usable Sentinels.")}, "");
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].level, level::fact);
    EXPECT_EQ(found[1].level, level::fact);
    EXPECT_EQ(found[1].server, "sentinel 10.0.0.1:2");
}

TEST(redis_sentinel_judgement, a_group_that_cannot_replace_its_master_is_warned_of_in_its_own_words) {
    const auto found =
        judge_sentinels({checkup(1, 2, "NOQUORUM 1 usable Sentinels."),
                         silence(2, {errc::store_unavailable, "10.0.0.1:2: connection refused"}),
                         silence(3, {errc::store_unavailable, "does not answer"}),
                         silence(4, {errc::bad_configuration, "does not know a service called \"x\""})},
                        "");
    ASSERT_EQ(warnings_in(found), 4U);
    EXPECT_NE(found[0].text.find("(NOQUORUM 1 usable Sentinels.)"), std::string::npos) << found[0].text;
    EXPECT_EQ(found[1].server, "sentinel 10.0.0.1:2");
    EXPECT_TRUE(found[1].text.starts_with("does not answer (connection refused); ")) << found[1].text;
    EXPECT_TRUE(found[2].text.starts_with("does not answer; ")) << found[2].text;
    EXPECT_TRUE(found[3].text.starts_with("is of no use: does not know")) << found[3].text;
}

TEST(redis_sentinel_judgement, what_the_user_may_not_ask_is_unknown) {
    const auto found = judge_sentinels({checkup(1, {}, "NOPERM this user has no permissions"),
                                        checkup(2, {}, "ERR No such master with that name")},
                                       "watcher");
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].level, level::unchecked);
    EXPECT_TRUE(found[0].text.ends_with("run: ACL SETUSER watcher +sentinel|ckquorum"))
        << found[0].text;
    EXPECT_EQ(found[1].level, level::unchecked);
}

TEST(redis_sentinel_judgement, one_sentinel_alone_is_advised_against) {
    const auto expect_advice = [](const std::vector<sentinel_checkup>& all, std::string_view words) {
        const auto found = judge_sentinels(all, "");
        EXPECT_EQ(warnings_in(found), 0U);
        EXPECT_EQ(found.back().level, level::advice);
        EXPECT_NE(found.back().text.find(words), std::string::npos) << found.back().text;
    };
    expect_advice({checkup(1, 0, "OK 1 usable Sentinels.")}, "knows of no other sentinel");
    expect_advice({checkup(1, 2, "OK 3 usable Sentinels.")}, "the only one in the address");
    expect_advice({checkup(1, {}, "OK 3 usable Sentinels.")}, "the only one in the address");
}

}  // namespace
}  // namespace holdfast::engines::redis
