#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <integration/redis/redis_stage.hpp>

/// A client that is made before its store is there.
namespace holdfast::testing {

namespace {

/// One attempt fails. A patient client is made as soon as `make_ready`, which runs meanwhile, has
/// worked, and can be used.
void expect_patience(const std::string& address, const std::function<void()>& make_ready) {
    EXPECT_EQ(error_of([&] { client{address}; }), errc::store_unavailable);
    EXPECT_EQ(error_of([&] { client(address, {.opening_patience = 1ms}); }), errc::store_unavailable);
    const std::jthread elsewhere{make_ready};
    client patient{address, {.opening_patience = 60s}};
    EXPECT_TRUE(mutex(patient, "stock").try_acquire_for(20s));
}

TEST(redis_opening, a_server_that_starts_is_waited_for) {
    redis_server server;
    server.stop();
    expect_patience(address_of(server.port()), [&] { server.start_again(); });
}

TEST(redis_opening, a_master_that_the_sentinel_knows_and_that_starts_is_waited_for) {
    redis_server master;
    redis_server sentinel{redis_server_options{
        .arguments = {"--sentinel"},
        .configuration = "sentinel monitor service 127.0.0.1 " + std::to_string(master.port()) +
                         " 1\nsentinel down-after-milliseconds service 60000\n"}};
    master.stop();
    expect_patience("redis+sentinel://127.0.0.1:" + std::to_string(sentinel.port()) +
                        "/service?connect_timeout=300",
                    [&] { master.start_again(); });
}

TEST(redis_opening, what_the_sentinels_refuse_is_advised_for_their_own_user) {
    const redis_server master;
    const redis_server sentinel{redis_server_options{
        .arguments = {"--sentinel"},
        .configuration =
            "sentinel monitor service 127.0.0.1 " + std::to_string(master.port()) + " 1\n"}};
    sentinel.cli({"ACL", "SETUSER", "watcher", "on", ">w", "&+switch-master",
                  "+sentinel|get-master-addr-by-name", "+sentinel|master", "+unsubscribe"});
    ::setenv("HOLDFAST_TEST_SENTINEL_PASSWORD", "w", 1);
    const auto text = error_text_of([&] {
        client{"redis+sentinel://127.0.0.1:" + std::to_string(sentinel.port()) +
               "/service?sentinel_user=watcher&sentinel_password_env=HOLDFAST_TEST_SENTINEL_PASSWORD"};
    });
    EXPECT_NE(text.find("; run: ACL SETUSER watcher +subscribe"), std::string::npos) << text;
}

TEST(redis_opening, a_cluster_that_is_formed_is_waited_for) {
    redis_server node{redis_server_options{.arguments = {"--cluster-enabled", "yes"}}};
    expect_patience("redis+cluster://127.0.0.1:" + std::to_string(node.port()), [&] {
        std::vector<std::string> words{"CLUSTER", "ADDSLOTS"};
        for (int slot = 0; slot < 16384; ++slot) {
            words.push_back(std::to_string(slot));
        }
        node.cli(words);
    });
}

TEST(redis_opening, a_majority_of_a_quorum_is_waited_for) {
    redis_server one;
    redis_server two;
    redis_server three;
    two.stop();
    three.stop();
    expect_patience("quorum:" + address_of(one.port()) + " " + address_of(two.port()) + " " +
                        address_of(three.port()),
                    [&] { three.start_again(); });
}

TEST(redis_opening, a_refusal_is_not_waited_for) {
    const redis_server guarded{redis_server_options{.password = "right"}};
    const redis_server open;
    const auto refusal = [](const std::string& address) {
        return error_of([&] { client(address, {.opening_patience = 600s}); });
    };
    EXPECT_EQ(refusal(address_of(guarded.port())), errc::unauthorised);
    EXPECT_EQ(refusal("redis://:wrong@127.0.0.1:" + std::to_string(guarded.port())),
              errc::unauthorised);
    EXPECT_EQ(refusal("rediss://127.0.0.1:" + std::to_string(open.port())), errc::bad_configuration);
    EXPECT_EQ(refusal("redis+cluster://127.0.0.1:" + std::to_string(open.port())),
              errc::bad_configuration);
    EXPECT_EQ(refusal("redis://:::"), errc::bad_configuration);
}

/// Whatever is said to a server with TLS, or to a sentinel, it will not be what the address says.
TEST(redis_opening, the_wrong_scheme_is_not_waited_for) {
    const redis_server secure{redis_server_options{.tls = testing_support::tls_use::both_certificates}};
    const redis_server sentinel{redis_server_options{
        .arguments = {"--sentinel"}, .configuration = "sentinel monitor service 127.0.0.1 1 1\n"}};
    const auto at_secure = "127.0.0.1:" + std::to_string(secure.port());
    const auto at_sentinel = "127.0.0.1:" + std::to_string(sentinel.port());
    const auto& files = testing_support::test_certificates();
    const auto certificates = "?ca=" + files.ca.string() +
                              "&cert=" + files.client_certificate.string() +
                              "&key=" + files.client_key.string();
    const std::vector<std::pair<std::string, std::string>> wrong{
        {"redis://" + at_secure, "use rediss://"},
        {"redis+cluster://" + at_secure, "use rediss://"},
        {"redis+sentinel://" + at_secure + "/service", "use rediss://"},
        {"redis://" + at_sentinel, "use redis+sentinel://" + at_sentinel},
        {"redis+cluster://" + at_sentinel, "use redis+sentinel://" + at_sentinel},
        {"rediss+sentinel://" + at_sentinel + "/service", "write redis+sentinel:// instead of"},
        {"rediss+cluster://" + at_secure + certificates, "use rediss://" + at_secure}};
    for (const auto& [address, words] : wrong) {
        const auto open = [&] { client(address, {.opening_patience = 600s}); };
        EXPECT_EQ(error_of(open), errc::bad_configuration) << address;
        const auto text = error_text_of(open);
        EXPECT_NE(text.find(words), std::string::npos) << text;
    }
}

TEST(redis_opening, a_sentinel_that_refuses_the_login_is_told_from_its_servers) {
    const redis_server sentinel{
        redis_server_options{.arguments = {"--sentinel"},
                             .password = "right",
                             .configuration = "sentinel monitor service 127.0.0.1 1 1\n"}};
    const auto at_sentinel = "127.0.0.1:" + std::to_string(sentinel.port()) + "/service";
    const auto said = error_text_of([&] { client("redis+sentinel://" + at_sentinel); });
    EXPECT_NE(said.find("sentinel_password_file=FILE"), std::string::npos) << said;
}

}  // namespace

}  // namespace holdfast::testing
