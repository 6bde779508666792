#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include <holdfast/testing/sim/campaign.hpp>
#include <holdfast/testing/sim/nodes_simulation.hpp>

#include "options.hpp"

/// The shipped recipe, over a model of a store with ordered nodes.
namespace {

namespace sim = holdfast::testing::sim;

struct nodes_tally {
    std::uint64_t grants{};
    std::uint64_t turns{};
    std::uint64_t events{};
    std::uint64_t first_failure{};
    std::string violation;
};

/// One schedule per seed, on two threads, up to the first that breaks a promise.
nodes_tally play_nodes(std::uint64_t schedules) {
    nodes_tally all;
    std::mutex guard;
    std::atomic<std::uint64_t> next{0};
    std::atomic<bool> stop{false};
    const auto work = [&] {
        while (!stop) {
            const auto index = next.fetch_add(1);
            if (index >= schedules) {
                return;
            }
            const auto result = sim::run_nodes(sim::base_seed() + index);
            const std::lock_guard lock{guard};
            all.grants += result.grants;
            all.turns += result.turns;
            all.events += result.events;
            if (!result.violation.empty() && all.violation.empty()) {
                all.violation = result.violation;
                all.first_failure = sim::base_seed() + index;
                stop = true;
            }
        }
    };
    std::jthread other{work};
    work();
    other.join();
    return all;
}

TEST(NodesSimulation, keeps_every_promise) {
    const auto schedules = sim::number_from_environment("HOLDFAST_SIM_SCHEDULES", 20'000);
    const auto all = play_nodes(schedules);
    EXPECT_TRUE(all.violation.empty()) << "seed " << all.first_failure << ": " << all.violation;
    EXPECT_GT(all.grants, schedules) << "nothing happened";
    EXPECT_GT(all.turns, schedules) << "nobody stood in line";
    std::cout << schedules << " schedules, " << all.events << " events, " << all.grants << " grants, "
              << all.turns << " of them in line\n";
}

TEST(NodesSimulation, a_seed_is_played_in_the_same_way_again) {
    for (std::uint64_t seed = sim::base_seed(); seed < sim::base_seed() + 50; ++seed) {
        const auto once = sim::run_nodes(seed);
        const auto again = sim::run_nodes(seed);
        EXPECT_EQ(once.events, again.events) << "seed " << seed;
        EXPECT_EQ(once.grants, again.grants) << "seed " << seed;
    }
}

class PlantedNodesBug : public ::testing::TestWithParam<std::string_view> {};

TEST_P(PlantedNodesBug, is_found) {
    std::uint64_t seed{};
    {
        const sim::planted_bug planted{GetParam()};
        const auto all = play_nodes(20'000);
        ASSERT_FALSE(all.violation.empty()) << "20000 schedules did not show it";
        seed = all.first_failure;
        std::cout << GetParam() << ": found by seed " << seed << ": " << all.violation << '\n';
    }
    EXPECT_TRUE(sim::run_nodes(seed).violation.empty())
        << "this schedule fails without the planted bug too";
}

INSTANTIATE_TEST_SUITE_P(simulation, PlantedNodesBug, ::testing::ValuesIn(sim::nodes_bug_names()),
                         [](const auto& one) { return std::string{one.param}; });

}  // namespace
