#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/engine.hpp>
#include <redis/address.hpp>
#include <redis/catalogue.hpp>
#include <redis/topology/sentinel_checkup.hpp>

namespace holdfast::engines::redis {

/// Asks every master for its settings, and tries the permissions of its user, on keys of its own.
void examine_servers(const std::shared_ptr<const catalogue>& from, const address& store, call limits,
                     completion<examine_reply> done);

/// What is known of a server besides INFO.
struct server_setup {
    // Settings; nothing where the user may not run CONFIG GET.
    std::optional<std::string> appendonly{};
    std::optional<std::string> appendfsync{};
    std::optional<std::string> timeout{};
    std::optional<std::string> keepalive{};
    /// Somebody gives its place to a replica when it fails: sentinels, or a cluster.
    bool fails_over{};
};

/// What INFO and the rest say about locks kept there.
[[nodiscard]] std::vector<finding> judge_server(const std::string& info, const server_setup& setup);

/// What the sentinels of the address say about their group, to a client that asks as `user`.
[[nodiscard]] std::vector<finding> judge_sentinels(const std::vector<sentinel_checkup>& all,
                                                   std::string_view user);

/// What a server of a cluster answers to CLUSTER INFO and CLUSTER NODES: whether the cluster serves all
/// slots, and which of the server's own have been left in the middle of a move.
[[nodiscard]] std::vector<finding> judge_cluster(const value& info, const value& nodes);

}  // namespace holdfast::engines::redis
