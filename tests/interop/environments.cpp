#include <support/redis_servers.hpp>

#include "stage.hpp"

namespace holdfast::interop {

namespace {

using testing_support::redis_cluster;
using testing_support::redis_sentinels;
using testing_support::redis_server;

[[nodiscard]] std::string host(std::uint16_t port) {
    return "127.0.0.1:" + std::to_string(port);
}

[[nodiscard]] std::string joined(const std::vector<std::uint16_t>& ports) {
    std::string hosts;
    for (const auto port : ports) {
        hosts += (hosts.empty() ? "" : ",") + host(port);
    }
    return hosts;
}

[[nodiscard]] std::vector<std::string> arguments(const std::string& mode,
                                                 const std::vector<std::uint16_t>& ports) {
    std::vector<std::string> result{mode};
    for (const auto port : ports) {
        result.push_back("redis://" + host(port));
    }
    return result;
}

}  // namespace

environment single_server() {
    auto server = std::make_shared<redis_server>();
    const auto port = server->port();
    return {.servers = std::move(server),
            .port = port,
            .store = "redis://" + host(port),
            .java = arguments("single", {port})};
}

environment servers_with_sentinels() {
    auto servers = std::make_shared<redis_sentinels>();
    const auto ports = servers->sentinel_ports();
    const auto master = servers->master().port();
    auto java = arguments("sentinel", ports);
    java.push_back("master=" + redis_sentinels::service());
    return {.servers = std::move(servers),
            .port = master,
            .store = "redis+sentinel://" + joined(ports) + "/" + redis_sentinels::service(),
            .java = std::move(java)};
}

environment cluster_of_three() {
    auto servers = std::make_shared<redis_cluster>(
        testing_support::redis_cluster_options{.masters = 3, .replicas_each = 0});
    const auto ports = servers->ports();
    return {.servers = std::move(servers),
            .port = ports.front(),
            .store = "redis+cluster://" + joined(ports),
            .java = arguments("cluster", ports)};
}

}  // namespace holdfast::interop
