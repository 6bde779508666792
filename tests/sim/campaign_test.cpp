#include <chrono>
#include <iostream>

#include <gtest/gtest.h>

#include <holdfast/testing/sim/campaign.hpp>

#include "options.hpp"

namespace sim = holdfast::testing::sim;

TEST(Campaign, no_schedule_breaks_a_promise) {
    const sim::campaign what{
        .first_seed = sim::base_seed(),
        .schedules = sim::number_from_environment("HOLDFAST_SIM_SCHEDULES", 20'000),
        .workers = 2};
    const auto began = std::chrono::steady_clock::now();
    const auto outcome = sim::run(what);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::cout << outcome.schedules << " schedules from seed " << what.first_seed << ", "
              << outcome.events << " events, " << outcome.grants << " grants, " << took.count()
              << " s\n";
    if (outcome.failing_seed) {
        FAIL() << "run it again with --seed=" << *outcome.failing_seed << ", minimised:\n"
               << sim::report(sim::minimise(sim::make_plan(*outcome.failing_seed)));
    }
    EXPECT_GT(outcome.grants, outcome.schedules);
}
