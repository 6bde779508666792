#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>
#include <support/redis_servers.hpp>

namespace holdfast::testing_support {

namespace {

constexpr std::size_t sentinel_count = 3;
/// Several servers together need longer than one.
constexpr std::chrono::seconds long_patience = 2 * server_patience;

std::size_t occurrences(const std::string& text, std::string_view part) {
    std::size_t count = 0;
    for (auto place = text.find(part); place != std::string::npos; place = text.find(part, place + 1)) {
        ++count;
    }
    return count;
}

/// The value after a name in the flat lists that sentinels answer with.
std::string value_of(const redis_reply& list, std::string_view name) {
    for (std::size_t index = 0; index + 1 < list.items.size(); index += 2) {
        if (list.items[index].text == name) {
            return list.items[index + 1].text;
        }
    }
    return "";
}

redis_server& with_port(const std::vector<std::unique_ptr<redis_server>>& servers, std::uint16_t port) {
    const auto found = std::find_if(servers.begin(), servers.end(),
                                    [&](const auto& server) { return server->port() == port; });
    if (found == servers.end()) {
        throw std::logic_error{"none of the servers has port " + std::to_string(port)};
    }
    return **found;
}

bool all_replicas_online(const redis_server& master, std::size_t count) {
    return occurrences(master.cli({"INFO", "replication"}), "state=online") == count;
}

std::vector<std::string> replicating_with(tls_use tls) {
    return tls == tls_use::none ? std::vector<std::string>{}
                                : std::vector<std::string>{"--tls-replication", "yes"};
}

std::uint16_t port_in(const std::string& text) {
    return static_cast<std::uint16_t>(std::stoul(text));
}

}  // namespace

redis_replicas::redis_replicas(std::size_t count, const redis_server_options& options) {
    servers_.push_back(std::make_unique<redis_server>(options));
    auto of_a_replica = options;
    const auto port = std::to_string(master().port());
    of_a_replica.arguments.insert(of_a_replica.arguments.end(), {"--replicaof", "127.0.0.1", port});
    for (std::size_t index = 0; index < count; ++index) {
        servers_.push_back(std::make_unique<redis_server>(of_a_replica));
    }
    wait_for_replicas(count);
}

void redis_replicas::wait_for_replicas(std::size_t count) {
    wait_until(
        "the replicas", [&] { return all_replicas_online(master(), count); }, long_patience);
}

redis_sentinels::redis_sentinels(tls_use tls)
    : servers_{2, {.arguments = replicating_with(tls), .tls = tls}} {
    const auto monitored = service() + " 127.0.0.1 " + std::to_string(servers_.master().port());
    for (std::size_t index = 0; index < sentinel_count; ++index) {
        redis_server_options options;
        options.tls = tls;
        options.arguments = replicating_with(tls);
        options.arguments.emplace_back("--sentinel");
        options.configuration = "sentinel monitor " + monitored +
                                " 2\n"
                                "sentinel down-after-milliseconds " +
                                service() +
                                " 500\n"
                                "sentinel failover-timeout " +
                                service() +
                                " 3000\n"
                                "sentinel parallel-syncs " +
                                service() + " 2\n";
        sentinels_.push_back(std::make_unique<redis_server>(options));
    }
    const auto knows_all = [](const auto& sentinel) {
        const auto master = sentinel->ask({"SENTINEL", "MASTER", service()});
        return value_of(master, "num-slaves") == "2" &&
               value_of(master, "num-other-sentinels") == "2" &&
               value_of(master, "flags") == "master" &&
               sentinel->cli({"SENTINEL", "CKQUORUM", service()}).starts_with("OK 3 usable");
    };
    wait_until(
        "the sentinels", [&] { return std::all_of(sentinels_.begin(), sentinels_.end(), knows_all); },
        long_patience);
}

std::vector<std::uint16_t> redis_sentinels::sentinel_ports() const {
    std::vector<std::uint16_t> ports;
    for (const auto& sentinel : sentinels_) {
        ports.push_back(sentinel->port());
    }
    return ports;
}

redis_server& redis_sentinels::server(std::uint16_t port) {
    for (std::size_t index = 0; index < servers_.replica_count(); ++index) {
        if (servers_.replica(index).port() == port) {
            return servers_.replica(index);
        }
    }
    if (servers_.master().port() != port) {
        throw std::logic_error{"none of the servers has port " + std::to_string(port)};
    }
    return servers_.master();
}

std::uint16_t redis_sentinels::named_master(const redis_server& sentinel) const {
    const auto address = sentinel.ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", service()});
    return address.items.size() == 2 ? port_in(address.items[1].text) : std::uint16_t{};
}

redis_server& redis_sentinels::master() {
    for (const auto& sentinel : sentinels_) {
        if (sentinel->running()) {
            return server(named_master(*sentinel));
        }
    }
    throw std::logic_error{"no sentinel runs"};
}

std::uint16_t redis_sentinels::kill_master() {
    auto& current = master();
    current.kill_hard();
    return current.port();
}

std::uint16_t redis_sentinels::wait_for_new_master(std::uint16_t old_port,
                                                   std::chrono::milliseconds limit) {
    std::uint16_t named = 0;
    const auto agreed = [&] {
        named = master().port();
        const bool all = std::all_of(sentinels_.begin(), sentinels_.end(), [&](const auto& sentinel) {
            return !sentinel->running() || named_master(*sentinel) == named;
        });
        return all && named != old_port && server(named).running() &&
               server(named).cli({"ROLE"}).starts_with("master");
    };
    wait_until("a new master", agreed, limit);
    return named;
}

redis_cluster::redis_cluster(redis_cluster_options options) : options_{std::move(options)} {
    auto of_a_node = options_.server;
    const auto timeout = std::to_string(options_.node_timeout.count());
    const std::vector<std::string> own{"--cluster-enabled",
                                       "yes",
                                       "--cluster-config-file",
                                       "nodes.conf",
                                       "--cluster-node-timeout",
                                       timeout,
                                       "--cluster-allow-replica-migration",
                                       "no"};
    of_a_node.arguments.insert(of_a_node.arguments.begin(), own.begin(), own.end());
    // On a machine that is busy a node may be taken for dead before it has joined.
    constexpr int attempts = 3;
    for (int attempt = 1; attempt <= attempts; ++attempt) {
        try {
            build(of_a_node);
            return;
        } catch (const std::runtime_error&) {
            if (attempt == attempts) {
                throw;
            }
        }
    }
}

void redis_cluster::build(const redis_server_options& of_a_node) {
    nodes_.clear();
    const auto count = options_.masters * (1 + options_.replicas_each);
    for (std::size_t index = 0; index < count; ++index) {
        nodes_.push_back(std::make_unique<redis_server>(of_a_node));
    }
    assign_slots();
    introduce();
    attach_replicas();
    wait_until_well();
}

void redis_cluster::assign_slots() {
    constexpr std::size_t slots = 16384;
    for (std::size_t index = 0; index < options_.masters; ++index) {
        std::vector<std::string> command{"CLUSTER", "ADDSLOTS"};
        const auto end = slots * (index + 1) / options_.masters;
        for (auto slot = slots * index / options_.masters; slot < end; ++slot) {
            command.push_back(std::to_string(slot));
        }
        node(index).cli(command);
    }
    // Different from the start, so that no two nodes claim the same later.
    for (std::size_t index = 0; index < nodes_.size(); ++index) {
        node(index).cli({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(index + 1)});
    }
}

void redis_cluster::introduce() {
    for (std::size_t index = 1; index < nodes_.size(); ++index) {
        node(0).cli({"CLUSTER", "MEET", "127.0.0.1", std::to_string(node(index).port())});
    }
    const auto knows_all = [this](const auto& one) {
        const auto table = one->cli({"CLUSTER", "NODES"});
        return occurrences(table, " connected") == nodes_.size() &&
               occurrences(table, "handshake") == 0;
    };
    wait_until("the nodes to know each other",
               [&] { return std::all_of(nodes_.begin(), nodes_.end(), knows_all); });
}

void redis_cluster::attach_replicas() {
    for (auto index = options_.masters; index < nodes_.size(); ++index) {
        const auto master = id_of(node(index % options_.masters));
        node(index).cli({"CLUSTER", "REPLICATE", master});
    }
    const auto knows_replicas = [this](const auto& one) {
        return occurrences(one->cli({"CLUSTER", "NODES"}), "slave ") ==
               nodes_.size() - options_.masters;
    };
    wait_until("the replicas to be known",
               [&] { return std::all_of(nodes_.begin(), nodes_.end(), knows_replicas); });
    for (std::size_t index = 0; index < options_.masters; ++index) {
        wait_until("a master's replicas",
                   [&] { return all_replicas_online(node(index), options_.replicas_each); });
    }
}

void redis_cluster::wait_until_well(std::chrono::milliseconds limit) {
    const auto well = [this] {
        const auto nodes = running();
        return std::all_of(nodes.begin(), nodes.end(), [](const redis_server* one) {
            const auto state = one->cli({"CLUSTER", "INFO"});
            return state.find("cluster_state:ok") != std::string::npos &&
                   state.find("cluster_slots_ok:16384") != std::string::npos;
        });
    };
    wait_until("the cluster to be well", well, limit);
}

redis_server& redis_cluster::server(std::uint16_t port) {
    return with_port(nodes_, port);
}

std::vector<std::uint16_t> redis_cluster::ports() const {
    std::vector<std::uint16_t> all;
    for (const auto& one : nodes_) {
        all.push_back(one->port());
    }
    return all;
}

std::string redis_cluster::id_of(const redis_server& node) const {
    return node.cli({"CLUSTER", "MYID"});
}

std::vector<redis_server*> redis_cluster::running() {
    std::vector<redis_server*> up;
    for (const auto& one : nodes_) {
        if (one->running()) {
            up.push_back(one.get());
        }
    }
    return up;
}

namespace {

std::optional<std::uint16_t> master_in_table(const redis_reply& slots, std::uint16_t slot) {
    for (const auto& range : slots.items) {
        const bool inside = range.items[0].integer <= slot && slot <= range.items[1].integer;
        if (inside) {
            return static_cast<std::uint16_t>(range.items[2].items[1].integer);
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::uint16_t> redis_cluster::agreed_master(std::uint16_t slot) {
    std::map<std::uint16_t, std::size_t> votes;
    const auto nodes = running();
    for (const auto* one : nodes) {
        if (const auto port = master_in_table(one->ask({"CLUSTER", "SLOTS"}), slot)) {
            ++votes[*port];
        }
    }
    for (const auto& [port, count] : votes) {
        if (count > nodes.size() / 2) {
            return port;
        }
    }
    return std::nullopt;
}

redis_server& redis_cluster::node_of_slot(std::uint16_t slot) {
    const auto port = agreed_master(slot);
    if (!port) {
        throw std::runtime_error{"the nodes do not agree on the master of slot " +
                                 std::to_string(slot)};
    }
    return server(*port);
}

redis_server& redis_cluster::node_without_slot(std::uint16_t slot) {
    const auto& owner = node_of_slot(slot);
    for (auto* one : running()) {
        if (one != &owner && one->cli({"ROLE"}).starts_with("master")) {
            return *one;
        }
    }
    throw std::logic_error{"there is only one master"};
}

void redis_cluster::begin_migration(std::uint16_t slot, redis_server& to) {
    auto& from = node_of_slot(slot);
    const auto number = std::to_string(slot);
    to.cli({"CLUSTER", "SETSLOT", number, "IMPORTING", id_of(from)});
    from.cli({"CLUSTER", "SETSLOT", number, "MIGRATING", id_of(to)});
}

void redis_cluster::migrate_keys(std::uint16_t slot, redis_server& to) {
    constexpr int most_rounds = 10000;
    auto& from = node_of_slot(slot);
    for (int round = 0; round < most_rounds; ++round) {
        const auto keys = from.ask({"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), "100"});
        if (keys.items.empty()) {
            return;
        }
        std::vector<std::string> command{"MIGRATE", "127.0.0.1", std::to_string(to.port()),
                                         "",        "0",         "5000"};
        if (!options_.server.password.empty()) {
            command.insert(command.end(), {"AUTH", options_.server.password});
        }
        command.emplace_back("KEYS");
        for (const auto& key : keys.items) {
            command.push_back(key.text);
        }
        if (const auto reply = from.ask(command); reply.is_error()) {
            throw std::runtime_error{"MIGRATE: " + reply.text};
        }
    }
    throw std::runtime_error{"keys of slot " + std::to_string(slot) + " keep appearing"};
}

void redis_cluster::finish_migration(std::uint16_t slot, redis_server& to) {
    const auto target = id_of(to);
    const auto port = to.port();
    auto& from = node_of_slot(slot);
    // The new owner first: it takes a newer epoch, so that its claim wins.
    to.cli({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", target});
    from.cli({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", target});
    wait_until("the move of a slot to be known", [&] {
        const auto nodes = running();
        return std::all_of(nodes.begin(), nodes.end(), [&](const redis_server* one) {
            return master_in_table(one->ask({"CLUSTER", "SLOTS"}), slot) == port;
        });
    });
}

void redis_cluster::migrate_slot(std::uint16_t slot, redis_server& to) {
    begin_migration(slot, to);
    migrate_keys(slot, to);
    finish_migration(slot, to);
}

std::uint16_t redis_cluster::kill_master_of(std::uint16_t slot) {
    auto& current = node_of_slot(slot);
    current.kill_hard();
    return current.port();
}

std::uint16_t redis_cluster::wait_for_new_master(std::uint16_t slot, std::uint16_t old_port,
                                                 std::chrono::milliseconds limit) {
    std::optional<std::uint16_t> found;
    wait_until(
        "a new master of slot " + std::to_string(slot),
        [&] {
            found = agreed_master(slot);
            return found && *found != old_port;
        },
        limit);
    wait_until_well(limit);
    return *found;
}

std::uint16_t redis_cluster::failover(std::uint16_t slot) {
    // A request right after a replica joined may be forgotten: the next one does not ask the master.
    constexpr std::chrono::seconds one_attempt{6};
    const auto old_port = node_of_slot(slot).port();
    const auto replicas = server(old_port).ask({"CLUSTER", "REPLICAS", id_of(server(old_port))});
    if (replicas.items.empty()) {
        throw std::logic_error{"the master of slot " + std::to_string(slot) + " has no replica"};
    }
    const auto& line = replicas.items.front().text;
    const auto colon = line.find(':');
    auto& replica = server(port_in(line.substr(colon + 1, line.find('@') - colon - 1)));
    const auto took_over = [&] { return agreed_master(slot) == replica.port(); };
    for (const auto* how : {"", "FORCE", "TAKEOVER"}) {
        std::vector<std::string> command{"CLUSTER", "FAILOVER"};
        if (*how != '\0') {
            command.emplace_back(how);
        }
        replica.cli(command);
        if (became_true(took_over, one_attempt)) {
            wait_until_well();
            return replica.port();
        }
    }
    throw std::runtime_error{"the replica did not take over"};
}

}  // namespace holdfast::testing_support
