#include <optional>
#include <string>

#include <integration/redis/redis_stage.hpp>

/// Several servers that speak nothing but TLS.
namespace holdfast::testing {

namespace {

using testing_support::redis_cluster;
using testing_support::redis_sentinels;
using testing_support::test_certificates;
using testing_support::tls_use;

[[nodiscard]] std::string places(const std::vector<std::uint16_t>& ports) {
    std::string result;
    for (const auto port : ports) {
        result += (result.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
    }
    return result;
}

[[nodiscard]] std::string address_of(const redis_sentinels& servers, const std::filesystem::path& ca) {
    return "rediss+sentinel://" + places(servers.sentinel_ports()) + "/" + redis_sentinels::service() +
           "?ca=" + ca.string();
}

TEST(redis_tls, sentinels_and_the_new_master_are_reached_with_it) {
    redis_sentinels servers{tls_use::server_certificate};
    client tested{address_of(servers, test_certificates().ca)};
    mutex{tested, "stock"}.acquire().release();

    const auto old_port = servers.kill_master();
    servers.wait_for_new_master(old_port);

    EXPECT_TRUE(mutex(tested, "stock").try_acquire_for(10s));
}

TEST(redis_tls, sentinels_that_nobody_vouches_for_are_refused) {
    const redis_sentinels servers{tls_use::server_certificate};
    const auto where = address_of(servers, test_certificates().other_ca);

    EXPECT_EQ(error_of([&] { client{where}; }), errc::bad_configuration);
    const auto text = error_text_of([&] { client{where}; });
    EXPECT_NE(text.find("certificate"), std::string::npos) << text;
}

TEST(redis_tls, a_client_shows_its_certificate_to_sentinels_and_servers) {
    const redis_sentinels servers{tls_use::both_certificates};
    const auto& files = test_certificates();
    client tested{address_of(servers, files.ca) + "&cert=" + files.client_certificate.string() +
                  "&key=" + files.client_key.string()};

    EXPECT_TRUE(mutex(tested, "stock").try_acquire_for(10s));
}

TEST(redis_tls, a_cluster_is_reached_with_it_and_wakes_those_who_wait) {
    redis_cluster servers{{.replicas_each = 0,
                           .server = {.arguments = {"--tls-cluster", "yes", "--tls-replication", "yes"},
                                      .tls = tls_use::server_certificate}}};
    const auto where = "rediss+cluster://" + places({servers.ports().front()}) +
                       "?ca=" + test_certificates().ca.string();
    client first{where};
    client second{where};
    for (const char* const name : {"stock", "orders", "carts", "users"}) {
        auto held = mutex{first, name}.acquire();
        auto waiting = in_background([&] { return mutex{second, name}.try_acquire_for(20s); });
        EXPECT_FALSE(mutex(second, name).try_acquire());
        held.release();
        EXPECT_TRUE(waiting.get().has_value()) << name;
    }
}

}  // namespace

}  // namespace holdfast::testing
