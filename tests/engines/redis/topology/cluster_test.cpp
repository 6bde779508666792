#include <gtest/gtest.h>

#include <set>

#include <engines/redis/topology/clusters.hpp>

namespace holdfast::engines::redis {
namespace {

TEST(redis_cluster, every_key_reaches_the_server_that_has_its_slot) {
    auto& servers = undisturbed();
    const auto through = connected(address_of(servers));
    for (const std::string key : {"foo", "bar", "hello", "123456789"}) {
        EXPECT_TRUE(works(*through, {"SET", key, "1"}));
        EXPECT_EQ(servers.node_of_slot(slot_of(key)).cli({"GET", key}), "1");
    }
    EXPECT_TRUE(through->clustered());
}

TEST(redis_cluster, one_slot_of_each_master_is_known) {
    auto& servers = undisturbed();
    const auto slots = connected(address_of(servers))->a_slot_of_each_master();
    ASSERT_EQ(slots.size(), 3U);
    std::set<std::uint16_t> ports;
    for (const auto slot : slots) {
        ports.insert(servers.node_of_slot(slot).port());
    }
    EXPECT_EQ(ports.size(), 3U);
}

TEST(redis_cluster, one_server_is_enough_to_find_the_others) {
    auto where = address_of(undisturbed());
    where.nodes.resize(1);
    const auto through = connected(where);
    EXPECT_TRUE(works(*through, {"SET", "foo", "1"}));
    EXPECT_TRUE(works(*through, {"SET", "bar", "1"}));
    EXPECT_TRUE(works(*through, {"SET", "hello", "1"}));
}

TEST(redis_cluster, a_server_that_is_not_there_does_no_harm) {
    auto where = address_of(undisturbed());
    where.nodes.insert(where.nodes.begin(), local(testing_support::free_port()));
    EXPECT_TRUE(works(*connected(where), {"SET", "foo", "1"}));
}

TEST(redis_cluster, a_hung_server_leaves_time_for_the_others) {
    redis_server hung;
    auto where = address_of(undisturbed());
    where.nodes.insert(where.nodes.begin(), local(hung.port()));
    hung.pause();
    EXPECT_FALSE(try_to_connect(where));
    hung.resume();
}

TEST(redis_cluster, without_any_server_the_store_is_unavailable) {
    address where;
    where.nodes = {local(testing_support::free_port())};
    EXPECT_EQ(try_to_connect(where).code, errc::store_unavailable);
}

TEST(redis_cluster, a_server_that_stands_alone_is_a_wrong_address) {
    const redis_server alone;
    address where;
    where.nodes = {local(alone.port())};
    const auto why = try_to_connect(where);
    EXPECT_EQ(why.code, errc::bad_configuration);
    EXPECT_NE(why.detail.find("use redis://127.0.0.1:" + std::to_string(alone.port())),
              std::string::npos)
        << why.detail;
}

TEST(redis_cluster, a_cluster_of_which_too_much_is_missing_is_unavailable) {
    const redis_server lonely{{.arguments = {"--cluster-enabled", "yes"}}};
    address where;
    where.nodes = {local(lonely.port())};
    EXPECT_EQ(try_to_connect(where).code, errc::store_unavailable);
    lonely.cli({"CLUSTER", "ADDSLOTS", "1"});
    EXPECT_EQ(try_to_connect(where).code, errc::store_unavailable);
}

TEST(redis_cluster, a_database_is_refused) {
    auto where = address_of(undisturbed());
    where.connection.database = 1;
    EXPECT_EQ(try_to_connect(where).code, errc::bad_configuration);
}

TEST(redis_cluster, a_wrong_password_is_reported) {
    auto where = address_of(undisturbed());
    where.connection.login = {"nobody", "wrong-one"};
    const auto why = try_to_connect(where);
    EXPECT_EQ(why.code, errc::unauthorised);
    EXPECT_EQ(why.detail.find("wrong-one"), std::string::npos) << why.detail;
}

TEST(redis_cluster, errors_of_the_command_itself_are_answers) {
    const auto through = connected(address_of(undisturbed()));
    ASSERT_TRUE(works(*through, {"SET", "foo", "text"}));
    const auto result = ask(*through, {"INCR", "foo"});
    EXPECT_FALSE(result.error);
    EXPECT_TRUE(result.replies.front().is_error());
}

TEST(redis_cluster, what_is_pending_at_the_end_is_told_of_the_shutdown) {
    auto through = connected(address_of(undisturbed()));
    std::promise<errc> ended;
    through->send(slot_of("never"), router::lane::common, encoded({{"BLPOP", "never", "0"}}),
                  {clock::now() + 60s, caller::must_not_block},
                  [&](const connection::result& result) { ended.set_value(result.error.code); });
    through.reset();
    EXPECT_EQ(ended.get_future().get(), errc::shut_down);
}

TEST(redis_cluster, who_asks_on_in_a_completion_is_told_of_the_shutdown) {
    auto through = connected(address_of(undisturbed()));
    std::promise<errc> ended;
    through->send(
        slot_of("never"), router::lane::common, encoded({{"BLPOP", "never", "0"}}),
        {clock::now() + 60s, caller::must_not_block},
        [&, same = through.get()](const connection::result&) {
            same->send(slot_of("foo"), router::lane::common, encoded({{"GET", "foo"}}),
                       {clock::now() + 60s, caller::must_not_block},
                       [&](const connection::result& result) { ended.set_value(result.error.code); });
        });
    through.reset();
    EXPECT_EQ(ended.get_future().get(), errc::shut_down);
}

TEST(redis_cluster, servers_that_are_learned_of_are_reached_with_tls_too) {
    redis_cluster servers{{.masters = 3,
                           .replicas_each = 0,
                           .server = {.arguments = {"--tls-cluster", "yes"},
                                      .tls = testing_support::tls_use::server_certificate}}};
    auto where = address_of(servers);
    where.nodes.resize(1);
    where.connection.tls.emplace().ca_file = testing_support::test_certificates().ca;
    const auto through = connected(where);
    EXPECT_TRUE(works(*through, {"SET", "foo", "1"}));
    EXPECT_TRUE(works(*through, {"SET", "bar", "1"}));
    EXPECT_TRUE(works(*through, {"SET", "hello", "1"}));
}

TEST(redis_cluster, a_moved_slot_is_followed) {
    redis_cluster servers{{.masters = 3, .replicas_each = 0}};
    const auto through = connected(address_of(servers));
    const auto slot = slot_of("foo");
    ASSERT_TRUE(works(*through, {"SET", "foo", "1"}));
    auto& to = servers.node_without_slot(slot);
    servers.migrate_slot(slot, to);
    const auto result = ask(*through, slot, {{"GET", "foo"}, {"APPEND", "foo", "2"}});
    ASSERT_FALSE(result.error) << result.error.detail;
    EXPECT_EQ(result.replies[0].text, "1");
    EXPECT_EQ(to.cli({"GET", "foo"}), "12");
}

TEST(redis_cluster, a_slot_on_its_way_is_asked_for_at_both_ends) {
    redis_cluster servers{{.masters = 3, .replicas_each = 0}};
    const auto through = connected(address_of(servers));
    const auto slot = slot_of("{foo}");
    auto& from = servers.node_of_slot(slot);
    auto& to = servers.node_without_slot(slot);
    ASSERT_TRUE(works(*through, {"SET", "{foo}stays", "1"}));
    servers.begin_migration(slot, to);
    // What is there is served there, what is not is made at the other end; both commands of a pair.
    EXPECT_TRUE(works(*through, {"APPEND", "{foo}stays", "2"}));
    const auto made =
        ask(*through, slot, {{"HSET", "{foo}new", "a", "b"}, {"PEXPIRE", "{foo}new", "60000"}});
    ASSERT_FALSE(made.error) << made.error.detail;
    ASSERT_EQ(made.replies.size(), 2U);
    EXPECT_EQ(made.replies[0].integer, 1);
    EXPECT_EQ(made.replies[1].integer, 1);
    const auto waited = ask(*through, slot, {{"INCR", "{foo}count"}, {"WAIT", "0", "1"}}, 2s,
                            caller::must_not_block, router::lane::confirmed);
    ASSERT_EQ(waited.replies.size(), 2U) << waited.error.detail;
    EXPECT_EQ(waited.replies[0].integer, 1);
    EXPECT_EQ(waited.replies[1].type, value::kind::integer);
    EXPECT_EQ(from.cli({"CLUSTER", "COUNTKEYSINSLOT", std::to_string(slot)}), "1");
    EXPECT_EQ(to.cli({"CLUSTER", "COUNTKEYSINSLOT", std::to_string(slot)}), "2");
    // The map has not changed: the owner is still asked first.
    EXPECT_EQ(ask(*through, {"GET", "{foo}stays"}).replies.front().text, "12");
}

TEST(redis_cluster, what_goes_ahead_of_a_command_is_ignored_also_where_it_is_asked_for_at_both_ends) {
    redis_cluster servers{{.masters = 3, .replicas_each = 0}};
    const auto through = connected(address_of(servers));
    const auto slot = slot_of("{foo}");
    const auto append = [&] {
        auto answered = std::make_shared<std::promise<connection::result>>();
        through->send(
            slot, router::lane::common,
            [](std::string& out, const server_facts&) {
                append_command(out, std::vector<std::string_view>{"PING"});
                append_command(out, std::vector<std::string_view>{"APPEND", "{foo}new", "x"});
                return connection::expected{.wanted = 1, .ignored = 1};
            },
            {clock::now() + 2s, caller::may_block},
            [answered](auto got) { answered->set_value(std::move(got)); });
        return answered->get_future().get();
    };
    auto& to = servers.node_without_slot(slot);
    servers.begin_migration(slot, to);
    for (const std::int64_t length : {1, 2}) {
        const auto answer = append();
        ASSERT_EQ(answer.replies.size(), 1U) << answer.error.detail;
        EXPECT_EQ(answer.replies[0].integer, length);
    }
    servers.finish_migration(slot, to);
    EXPECT_EQ(append().replies.at(0).integer, 3);  // moved
}

TEST(redis_cluster, keys_at_both_ends_are_refused_for_a_while) {
    redis_cluster servers{{.masters = 3, .replicas_each = 0}};
    const auto through = connected(address_of(servers));
    const auto slot = slot_of("{foo}");
    auto& to = servers.node_without_slot(slot);
    ASSERT_TRUE(works(*through, {"SET", "{foo}a", "1"}));
    servers.begin_migration(slot, to);
    const auto refused = [&] {
        const auto result = ask(*through, slot, {{"MGET", "{foo}a", "{foo}b"}});
        EXPECT_FALSE(result.error) << result.error.detail;
        return !result.replies.empty() && result.replies[0].error_code() == "TRYAGAIN";
    };
    EXPECT_TRUE(refused());
    servers.migrate_keys(slot, to);
    servers.finish_migration(slot, to);
    EXPECT_TRUE(became_true([&] { return !refused(); }, 5s));
}

TEST(redis_cluster, nothing_is_done_twice_or_lost_while_slots_move) {
    redis_cluster servers{{.masters = 3, .replicas_each = 0}};
    const auto through = connected(address_of(servers));
    const std::vector<std::string> keys{"{foo}1", "{foo}2", "{foo}3", "bar"};
    const auto slot = slot_of("{foo}");
    counting count{*through, keys};
    for (int round = 0; round < 10; ++round) {
        wait_for_agreement(servers);
        servers.migrate_slot(slot, servers.node_without_slot(slot));
        ASSERT_TRUE(count.goes_on("{foo}1", 5s));
    }
    count.stop();
    EXPECT_EQ(count.surprise(), "");
    for (const auto& key : keys) {
        EXPECT_EQ(count.uncertain(key), 0);
        EXPECT_EQ(servers.node_of_slot(slot_of(key)).cli({"GET", key}),
                  std::to_string(count.done(key)));
    }
}

TEST(redis_cluster, servers_that_send_us_round_in_circles_are_given_up) {
    redis_cluster servers{{.masters = 3, .replicas_each = 0}};
    const auto through = connected(address_of(servers));
    const auto slot = slot_of("foo");
    auto& from = servers.node_of_slot(slot);
    auto& to = servers.node_without_slot(slot);
    // The owner says "over there"; there, nobody knows of it.
    const auto id = to.cli({"CLUSTER", "MYID"});
    from.cli({"CLUSTER", "SETSLOT", std::to_string(slot), "MIGRATING", id});
    const auto result = ask(*through, {"GET", "foo"});
    EXPECT_EQ(result.error.code, errc::store_unavailable);
    EXPECT_NE(result.error.detail.find("circles"), std::string::npos) << result.error.detail;
}

}  // namespace
}  // namespace holdfast::engines::redis
