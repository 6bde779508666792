#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <holdfast/ordered_nodes.hpp>
#include <quorum_stage.hpp>

namespace holdfast::testing::sim {

/// In what stores differ, and still keep the contract of `node_store`.
struct nodes_layout {
    /// A creation answers with the queue.
    bool tells_queue{};
    /// Of nodes whose label was not asked for, only the place is known.
    bool tells_little{};
    /// A node is called after its session, so a later node may have the id of an earlier one.
    bool reuses_ids{};
    /// The longest ttl of a session.
    std::chrono::milliseconds longest_ttl{};
};

/// A model of a store with sessions and ordered nodes: what every such store does, in one step each.
class nodes_server {
public:
    using told = std::function<void(const std::string& name, const engines::queue_node& node)>;

    nodes_server(quorum_stage& stage, const nodes_layout& layout) : stage_{stage}, layout_{layout} {}

    [[nodiscard]] engines::session_reply open(std::chrono::milliseconds ttl);
    [[nodiscard]] engines::session_reply keep_alive(engines::session_id id);
    void close(engines::session_id id);
    [[nodiscard]] engines::create_reply create(const engines::create_request& request);
    [[nodiscard]] engines::queue_reply read(const std::string& name, const std::string& label) const;
    void remove(const std::string& name, const engines::queue_node& node);
    [[nodiscard]] bool has(const std::string& name, const engines::queue_node& node) const;

    /// Called for each node that goes.
    void on_removal(told callback) { told_ = std::move(callback); }
    /// All sessions start anew, as after a change of leaders.
    void restart();

    [[nodiscard]] const std::map<std::string, std::vector<engines::queue_node>>& queues() const {
        return queues_;
    }
    [[nodiscard]] std::vector<engines::session_id> sessions() const;

private:
    struct session {
        std::chrono::milliseconds ttl;
        clock::time_point ends;
    };

    void expire(engines::session_id id);
    void end(engines::session_id id);
    [[nodiscard]] std::vector<engines::queue_node> shown(const std::string& name,
                                                         const std::string& label) const;

    quorum_stage& stage_;
    const nodes_layout layout_;
    std::map<engines::session_id, session> sessions_;
    std::map<std::string, std::vector<engines::queue_node>> queues_;
    std::uint64_t revision_{};
    told told_;
};

}  // namespace holdfast::testing::sim
