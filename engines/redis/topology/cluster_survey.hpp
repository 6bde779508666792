#pragma once

#include <cstdint>
#include <vector>

#include <holdfast/engine.hpp>
#include <redis/topology/node.hpp>
#include <redis/topology/slot_map.hpp>

namespace holdfast::engines::redis {

/// The cluster as one of its servers sees it.
struct cluster_survey {
    slot_map map;
    /// `cluster_current_epoch`: never falls, so that of two servers the one with the lower number has
    /// missed something. Zero where we may not ask.
    std::uint64_t epoch{};
    /// Whether the server says that the cluster can be used. True where we may not ask.
    bool well{true};
    /// Whether it knows sharded channels: Redisson uses them exactly when PUBSUB SHARDNUMSUB works.
    bool sharded{};
    failure error;
};

/// CLUSTER SLOTS, CLUSTER INFO, PUBSUB SHARDNUMSUB.
[[nodiscard]] const std::vector<std::vector<std::string>>& survey_commands();
/// What the answers to these come to.
[[nodiscard]] cluster_survey read_survey(const std::vector<value>& answers, const node_address& asked);

/// Asks a server that we are connected to, or will be.
[[nodiscard]] cluster_survey survey_through(node& server, clock::time_point deadline);
/// Asks any server, on a connection of its own.
[[nodiscard]] cluster_survey survey_by_visit(const node_address& server,
                                             const connection_settings& settings,
                                             clock::time_point deadline);

}  // namespace holdfast::engines::redis
