#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

#include <holdfast/testing/sim/campaign.hpp>
#include <holdfast/testing/sim/joint_simulation.hpp>

#include "options.hpp"

/// The shipped multi-lock, over simulated stores.
namespace {

namespace sim = holdfast::testing::sim;
using sim::joint_plan;

struct joint_tally {
    std::uint64_t schedules{};
    std::uint64_t calls_granted{};
    std::uint64_t calls_ended{};
    std::uint64_t grants{};
    std::string violation;
    joint_plan violating{};
};

/// Plays every seed once as it is, and once more for every point at which its first caller may be
/// cancelled, until there were so many schedules or one breaks a promise. On two threads.
joint_tally play(std::uint64_t schedules) {
    joint_tally all;
    std::mutex guard;
    std::atomic<std::uint64_t> next{0};
    std::atomic<bool> stop{false};
    const auto play_one = [&](const joint_plan& plan) {
        const auto result = sim::run(plan);
        const std::lock_guard lock{guard};
        ++all.schedules;
        all.calls_granted += result.calls_granted;
        all.calls_ended += result.calls_ended;
        all.grants += result.grants;
        if (!result.violation.empty() && all.violation.empty()) {
            all.violation = result.violation;
            all.violating = plan;
        }
        stop = stop || !all.violation.empty() || all.schedules >= schedules;
        return result;
    };
    const auto work = [&] {
        while (!stop) {
            joint_plan plan{.seed = sim::base_seed() + next.fetch_add(1)};
            const auto whole = play_one(plan);
            for (auto at = whole.first_call_began; !stop && at < whole.first_call_ended; ++at) {
                plan.cancel_at = at;
                play_one(plan);
            }
        }
    };
    std::jthread other{work};
    work();
    other.join();
    return all;
}

std::string name(const joint_plan& plan) {
    return "seed " + std::to_string(plan.seed) +
           (plan.cancel_at ? ", cancelled at " + std::to_string(*plan.cancel_at) : "");
}

TEST(JointSimulation, a_caller_cancelled_anywhere_leaves_nothing_and_nobody_waits_for_ever) {
    const auto all = play(sim::number_from_environment("HOLDFAST_SIM_SCHEDULES", 10'000));
    EXPECT_TRUE(all.violation.empty()) << name(all.violating) << ": " << all.violation;
    EXPECT_GT(all.calls_granted, all.schedules) << "nothing happened";
    EXPECT_GT(all.calls_ended, all.schedules / 2) << "nobody gave up";
    std::cout << all.schedules << " schedules, " << all.calls_granted << " calls got all, "
              << all.calls_ended << " nothing, " << all.grants << " grants\n";
}

class PlantedJointBug : public ::testing::TestWithParam<std::string_view> {};

TEST_P(PlantedJointBug, is_found) {
    joint_plan failing;
    {
        const sim::planted_bug planted{GetParam()};
        const auto all = play(20'000);
        ASSERT_FALSE(all.violation.empty()) << "20000 schedules did not show it";
        failing = all.violating;
        std::cout << GetParam() << ": found after about " << all.schedules << " schedules by \""
                  << all.violation << "\"\n";
    }
    EXPECT_TRUE(sim::run(failing).violation.empty())
        << "this schedule fails without the planted bug too";
}

INSTANTIATE_TEST_SUITE_P(simulation, PlantedJointBug, ::testing::ValuesIn(sim::joint_bug_names()),
                         [](const auto& one) { return std::string{one.param}; });

}  // namespace
