#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <holdfast/ordered_nodes.hpp>

/// What the queue of a name says. Pure functions.
namespace holdfast::engines::nodes {

/// What the queue says of a node in it.
struct standing {
    enum class verdict : std::uint8_t {
        missing,
        granted,
        blocked,
        wrong_kind
    } result{verdict::missing};
    /// blocked: the nodes on which it depends. When one of them is gone, it may be its turn.
    std::vector<queue_node> blockers;
};

/// Judges `node`. The claim's own nodes are never in its way.
///
/// - Exclusive: nobody may be ahead; depends on the node next to it.
/// - Shared: no writer may be ahead; depends on the last of them.
/// - Permits: they and all ahead of them must fit in the limit; depend on all ahead of them.
[[nodiscard]] standing judge(const std::vector<queue_node>& queue, const queue_node& node,
                             const std::vector<std::string>& own_labels);

/// Judges a node that would be created now, behind all others.
[[nodiscard]] standing judge_newcomer(const std::vector<queue_node>& queue, const node_claim& claim,
                                      const std::vector<std::string>& own_labels);

/// The node with this label. Of several, which late creations can make, the first in the queue.
[[nodiscard]] const queue_node* find_node(const std::vector<queue_node>& queue,
                                          const std::string& label);

[[nodiscard]] bool contains(const std::vector<std::string>& all, const std::string& one);

/// Somebody else's node stands between the two places.
[[nodiscard]] bool somebody_between(const std::vector<queue_node>& queue,
                                    const std::vector<std::string>& own_labels, std::uint64_t after,
                                    std::uint64_t before);
/// The same for an exclusive claim.
[[nodiscard]] bool writer_between(const std::vector<queue_node>& queue,
                                  const std::vector<std::string>& own_labels, std::uint64_t after,
                                  std::uint64_t before);

}  // namespace holdfast::engines::nodes
