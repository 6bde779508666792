#include <gtest/gtest.h>

#include <support/redis_servers.hpp>

namespace holdfast::testing_support {
namespace {

/// "foo" falls into this one.
constexpr std::uint16_t foo_slot = 12182;

bool answers_on_port(std::uint16_t port) {
    try {
        return redis_client{port}.command({"PING"}).text == "PONG";
    } catch (const std::runtime_error&) {
        return false;
    }
}

TEST(redis_server, answers_on_its_port_and_its_socket) {
    const redis_server server;
    EXPECT_LT(server.port(), 32768);
    EXPECT_EQ(server.cli({"SET", "a", "b"}), "OK");
    EXPECT_EQ(redis_client{server.port()}.command({"GET", "a"}).text, "b");
    EXPECT_EQ(redis_client{server.unix_socket()}.command({"GET", "a"}).text, "b");
}

TEST(redis_server, replies_read_like_those_of_redis_cli) {
    const redis_server server;
    EXPECT_EQ(server.cli({"RPUSH", "l", "a", "b"}), "2");
    EXPECT_EQ(server.cli({"LRANGE", "l", "0", "-1"}), "a\nb");
    EXPECT_EQ(server.cli({"GET", "nothing"}), "");
    EXPECT_TRUE(server.cli({"GET", "l"}).starts_with("WRONGTYPE"));
    EXPECT_EQ(server.info("role"), "master");
}

TEST(redis_server, two_at_a_time_do_not_meet) {
    const redis_server one;
    const redis_server other;
    EXPECT_NE(one.port(), other.port());
    EXPECT_EQ(one.cli({"SET", "a", "b"}), "OK");
    EXPECT_EQ(other.cli({"GET", "a"}), "");
}

TEST(redis_server, a_stopped_server_is_gone_and_can_be_started_again) {
    redis_server server;
    const auto port = server.port();
    server.stop();
    EXPECT_FALSE(server.running());
    EXPECT_FALSE(answers_on_port(port));
    server.start_again();
    EXPECT_EQ(server.port(), port);
    EXPECT_TRUE(answers_on_port(port));
}

TEST(redis_server, what_was_saved_is_there_again_unless_it_is_removed) {
    redis_server server;
    server.cli({"SET", "a", "b"});
    server.cli({"SAVE"});
    server.kill_hard();
    server.start_again(data_files::kept);
    EXPECT_EQ(server.cli({"GET", "a"}), "b");
    server.kill_hard();
    server.start_again(data_files::removed);
    EXPECT_EQ(server.cli({"GET", "a"}), "");
}

TEST(redis_server, a_killed_server_has_forgotten_everything) {
    redis_server server;
    server.cli({"SET", "a", "b"});
    server.kill_hard();
    EXPECT_FALSE(server.running());
    server.start_again();
    EXPECT_EQ(server.cli({"GET", "a"}), "");
}

TEST(redis_server, a_paused_server_answers_when_it_is_resumed) {
    redis_server server;
    auto client = server.connect();
    server.pause();
    EXPECT_TRUE(became_true([&] {
        return read_file("/proc/" + std::to_string(server.pid()) + "/stat").find(") T ") !=
               std::string::npos;
    }));
    server.resume();
    EXPECT_EQ(client.command({"PING"}).text, "PONG");
}

TEST(redis_server, connections_of_one_kind_are_cut) {
    const redis_server server;
    auto normal = server.connect();
    auto listener = server.connect();
    listener.command({"SUBSCRIBE", "news"});
    server.client_kill("pubsub");
    EXPECT_THROW(listener.next_message(), std::runtime_error);
    EXPECT_EQ(normal.command({"PING"}).text, "PONG");
    server.client_kill("normal");
    EXPECT_THROW(normal.command({"PING"}), std::runtime_error);
}

TEST(redis_server, a_password_is_asked_for) {
    const redis_server server{{.password = "s3cret"}};
    redis_client stranger{server.port()};
    EXPECT_TRUE(stranger.command({"GET", "a"}).text.starts_with("NOAUTH"));
    EXPECT_EQ(stranger.command({"AUTH", "s3cret"}).text, "OK");
    EXPECT_EQ(server.cli({"SET", "a", "b"}), "OK");
}

TEST(redis_server, an_acl_file_decides_who_may_do_what) {
    const redis_server server{{.acl = "user default off\nuser reader on >pw ~a* &* +get"}};
    redis_client reader{server.port()};
    EXPECT_EQ(reader.command({"AUTH", "reader", "pw"}).text, "OK");
    EXPECT_TRUE(reader.command({"GET", "a"}).is_nil());
    EXPECT_TRUE(reader.command({"SET", "a", "b"}).text.starts_with("NOPERM"));
    EXPECT_EQ(server.cli({"SET", "a", "b"}), "OK");
}

TEST(redis_server, tls_is_spoken_and_only_tls) {
    const redis_server server{{.tls = tls_use::server_certificate}};
    const auto& files = test_certificates();
    EXPECT_FALSE(answers_on_port(server.port()));
    run_tool({"redis-cli", "-e", "-h", "localhost", "-p", std::to_string(server.port()), "--tls",
              "--cacert", files.ca.string(), "SET", "a", "b"});
    EXPECT_EQ(server.cli({"GET", "a"}), "b");
    EXPECT_THROW(run_tool({"redis-cli", "-e", "-p", std::to_string(server.port()), "--tls", "--cacert",
                           files.other_ca.string(), "PING"}),
                 std::runtime_error);
}

TEST(redis_server, tls_may_need_a_clients_certificate) {
    const redis_server server{{.tls = tls_use::both_certificates}};
    const auto& files = test_certificates();
    const std::vector<std::string> bare{
        "redis-cli", "-e", "-p", std::to_string(server.port()), "--tls", "--cacert", files.ca.string()};
    auto with_certificate = bare;
    with_certificate.insert(with_certificate.end(), {"--cert", files.client_certificate.string(),
                                                     "--key", files.client_key.string(), "PING"});
    auto without = bare;
    without.emplace_back("PING");
    EXPECT_NO_THROW(run_tool(with_certificate));
    EXPECT_THROW(run_tool(without), std::runtime_error);
}

TEST(redis_server, one_that_cannot_start_says_why) {
    try {
        const redis_server server{{.arguments = {"--no-such-option", "1"}}};
        FAIL() << "it started";
    } catch (const std::runtime_error& error) {
        EXPECT_NE(std::string{error.what()}.find("no-such-option"), std::string::npos) << error.what();
    }
}

TEST(redis_replicas, what_the_master_is_told_the_replicas_know) {
    redis_replicas servers{2};
    servers.master().cli({"SET", "a", "b"});
    auto client = servers.master().connect();
    client.command({"SET", "a", "c"});
    EXPECT_EQ(client.command({"WAIT", "2", "20000"}).integer, 2);
    EXPECT_EQ(servers.replica(0).cli({"GET", "a"}), "c");
    EXPECT_EQ(servers.replica(1).cli({"GET", "a"}), "c");
    EXPECT_TRUE(servers.replica(0).cli({"SET", "a", "b"}).starts_with("READONLY"));
}

TEST(redis_sentinels, a_new_master_takes_over_from_a_killed_one) {
    redis_sentinels servers;
    EXPECT_EQ(servers.sentinel_ports().size(), 3U);
    servers.master().cli({"SET", "a", "b"});
    const auto old_port = servers.kill_master();
    const auto new_port = servers.wait_for_new_master(old_port);
    EXPECT_NE(new_port, old_port);
    EXPECT_EQ(servers.master().port(), new_port);
    EXPECT_EQ(servers.server(new_port).cli({"SET", "a", "c"}), "OK");
}

class redis_cluster_test : public testing::Test {
protected:
    static void SetUpTestSuite() { cluster_ = std::make_unique<redis_cluster>(); }
    static void TearDownTestSuite() { cluster_.reset(); }
    [[nodiscard]] static redis_cluster& cluster() { return *cluster_; }

private:
    static inline std::unique_ptr<redis_cluster> cluster_;
};

TEST_F(redis_cluster_test, every_key_has_a_home) {
    EXPECT_EQ(cluster().size(), 6U);
    EXPECT_EQ(cluster().node_of_slot(foo_slot).cli({"SET", "foo", "1"}), "OK");
    EXPECT_EQ(cluster().node_without_slot(foo_slot).cli({"GET", "foo"}),
              "MOVED 12182 127.0.0.1:" + std::to_string(cluster().node_of_slot(foo_slot).port()));
}

TEST_F(redis_cluster_test, a_slot_moves_with_its_keys) {
    auto& from = cluster().node_of_slot(foo_slot);
    auto& to = cluster().node_without_slot(foo_slot);
    from.cli({"SET", "foo", "1"});
    cluster().migrate_slot(foo_slot, to);
    EXPECT_EQ(&cluster().node_of_slot(foo_slot), &to);
    EXPECT_EQ(to.cli({"GET", "foo"}), "1");
    EXPECT_TRUE(from.cli({"GET", "foo"}).starts_with("MOVED"));
}

TEST_F(redis_cluster_test, in_the_middle_of_a_move_missing_keys_are_elsewhere) {
    auto& from = cluster().node_of_slot(foo_slot);
    auto& to = cluster().node_without_slot(foo_slot);
    from.cli({"SET", "foo", "1"});
    cluster().begin_migration(foo_slot, to);
    EXPECT_EQ(from.cli({"GET", "foo"}), "1");
    EXPECT_TRUE(from.cli({"GET", "{foo}other"}).starts_with("ASK"));
    cluster().migrate_keys(foo_slot, to);
    EXPECT_TRUE(from.cli({"GET", "foo"}).starts_with("ASK"));
    cluster().finish_migration(foo_slot, to);
    EXPECT_EQ(to.cli({"GET", "foo"}), "1");
}

TEST_F(redis_cluster_test, a_replica_takes_over_on_request) {
    const auto old_port = cluster().node_of_slot(foo_slot).port();
    const auto new_port = cluster().failover(foo_slot);
    EXPECT_NE(new_port, old_port);
    EXPECT_EQ(cluster().server(new_port).cli({"SET", "foo", "2"}), "OK");
}

TEST_F(redis_cluster_test, the_replica_of_a_killed_master_takes_over) {
    const auto old_port = cluster().kill_master_of(foo_slot);
    const auto new_port = cluster().wait_for_new_master(foo_slot, old_port);
    EXPECT_NE(new_port, old_port);
    EXPECT_EQ(cluster().server(new_port).cli({"SET", "foo", "3"}), "OK");
    cluster().server(old_port).start_again();
    cluster().wait_until_well();
}

}  // namespace
}  // namespace holdfast::testing_support
