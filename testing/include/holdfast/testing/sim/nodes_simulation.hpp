#pragma once

#include <cstdint>
#include <string>

namespace holdfast::testing::sim {

struct nodes_result {
    /// Empty: no promise was broken.
    std::string violation;
    std::uint64_t grants{};
    /// Of those, the ones that came to a waiter in line.
    std::uint64_t turns{};
    std::uint64_t events{};
};

/// Several clients contend for mutexes, shared locks, semaphores over a model of a store with ordered
/// nodes, in virtual time: answers get lost, requests take effect late, news are lost, delayed and
/// repeated, sessions end, nodes are removed by hand, the store restarts, clients are paused and crash.
/// Everything is drawn from the seed.
[[nodiscard]] nodes_result run_nodes(std::uint64_t seed);

}  // namespace holdfast::testing::sim
