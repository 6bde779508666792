#pragma once

#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <engines/redis/topology/routing.hpp>
#include <support/redis_servers.hpp>

/// Clusters for tests, and routers for them.
namespace holdfast::engines::redis {

using testing_support::redis_cluster;
using testing_support::redis_cluster_options;
using testing_support::redis_server;

inline node_address local(std::uint16_t port) {
    return {"127.0.0.1", port, {}};
}

inline address address_of(const redis_cluster& servers) {
    address where;
    where.topology = topology_kind::cluster;
    for (const auto port : servers.ports()) {
        where.nodes.push_back(local(port));
    }
    return where;
}

inline failure try_to_connect(const address& where) {
    return make_cluster(where, {})->connect(clock::now() + 3s);
}

inline std::unique_ptr<router> connected(const address& where, router::events told = {}) {
    auto made = make_cluster(where, std::move(told));
    if (const auto why = made->connect(clock::now() + 5s)) {
        throw std::runtime_error{"cannot connect: " + why.detail};
    }
    return made;
}

/// Until every server has heard of every other's newest claim. A slot that is moved on before that may
/// be claimed by two, and its keys be lost: two moves in a row must wait for this in between.
inline void wait_for_agreement(redis_cluster& servers) {
    const auto epochs_at = [&](std::size_t index) {
        std::map<std::string, std::string> epochs;
        std::istringstream table{servers.node(index).cli({"CLUSTER", "NODES"})};
        for (std::string line; std::getline(table, line);) {
            // id address flags master ping pong epoch …
            std::istringstream columns{line};
            std::vector<std::string> all{std::istream_iterator<std::string>{columns}, {}};
            if (all.size() > 6) {
                epochs[all[0]] = all[6];
            }
        }
        return epochs;
    };
    testing_support::wait_until("the servers to agree", [&] {
        const auto first = epochs_at(0);
        for (std::size_t index = 1; index < servers.size(); ++index) {
            if (epochs_at(index) != first) {
                return false;
            }
        }
        return true;
    });
}

/// For tests that leave the servers as they are. Its masters have no replicas.
inline redis_cluster& undisturbed() {
    static redis_cluster servers{{.masters = 3, .replicas_each = 0}};
    return servers;
}

}  // namespace holdfast::engines::redis
