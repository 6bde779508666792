#include <nodes/queue.hpp>

#include <utility>

namespace holdfast::engines::nodes {

namespace {

template <class Matters>
[[nodiscard]] bool node_between(const std::vector<queue_node>& queue,
                                const std::vector<std::string>& own_labels, std::uint64_t after,
                                std::uint64_t before, Matters matters) {
    return std::any_of(queue.begin(), queue.end(), [&](const queue_node& node) {
        return node.place > after && node.place < before && !contains(own_labels, node.claim.label) &&
               matters(node);
    });
}

[[nodiscard]] bool is_writer(const queue_node& node) noexcept {
    return node.claim.mode == claim_mode::exclusive;
}

/// Locks and permits cannot share a name, nor can permits of different limits.
[[nodiscard]] bool same_kind(const node_claim& one, const node_claim& other) noexcept {
    const bool permits = one.mode == claim_mode::permit;
    return permits == (other.mode == claim_mode::permit) && (!permits || one.limit == other.limit);
}

}  // namespace

bool contains(const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

const queue_node* find_node(const std::vector<queue_node>& queue, const std::string& label) {
    const queue_node* found = nullptr;
    for (const auto& node : queue) {
        if (node.claim.label == label && (found == nullptr || node.place < found->place)) {
            found = &node;
        }
    }
    return found;
}

standing judge(const std::vector<queue_node>& queue, const queue_node& node,
               const std::vector<std::string>& own_labels) {
    std::vector<const queue_node*> ahead;
    for (const auto& other : queue) {
        if (other.place < node.place && !contains(own_labels, other.claim.label)) {
            ahead.push_back(&other);
        }
    }
    std::sort(ahead.begin(), ahead.end(),
              [](const auto* a, const auto* b) { return a->place < b->place; });
    if (std::any_of(ahead.begin(), ahead.end(),
                    [&](const auto* other) { return !same_kind(other->claim, node.claim); })) {
        return {standing::verdict::wrong_kind, {}};
    }
    switch (node.claim.mode) {
        case claim_mode::exclusive:
            if (!ahead.empty()) {
                return {standing::verdict::blocked, {*ahead.back()}};
            }
            break;
        case claim_mode::shared: {
            const auto writer = std::find_if(ahead.rbegin(), ahead.rend(),
                                             [](const auto* other) { return is_writer(*other); });
            if (writer != ahead.rend()) {
                return {standing::verdict::blocked, {**writer}};
            }
            break;
        }
        case claim_mode::permit: {
            std::uint64_t taken = node.claim.permits;
            standing result{standing::verdict::blocked, {}};
            for (const auto* other : ahead) {
                taken += other->claim.permits;
                result.blockers.push_back(*other);
            }
            if (taken > node.claim.limit) {
                return result;
            }
            break;
        }
    }
    return {standing::verdict::granted, {}};
}

standing judge_newcomer(const std::vector<queue_node>& queue, const node_claim& claim,
                        const std::vector<std::string>& own_labels) {
    queue_node newcomer;
    newcomer.claim = claim;
    newcomer.place = std::numeric_limits<std::uint64_t>::max();
    return judge(queue, newcomer, own_labels);
}

bool somebody_between(const std::vector<queue_node>& queue, const std::vector<std::string>& own_labels,
                      std::uint64_t after, std::uint64_t before) {
    return node_between(queue, own_labels, after, before, [](const queue_node&) { return true; });
}

bool writer_between(const std::vector<queue_node>& queue, const std::vector<std::string>& own_labels,
                    std::uint64_t after, std::uint64_t before) {
    return node_between(queue, own_labels, after, before, is_writer);
}

}  // namespace holdfast::engines::nodes
