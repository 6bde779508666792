#include <iostream>
#include <string>

#include <gtest/gtest.h>

#include <holdfast/testing/sim/campaign.hpp>

#include "options.hpp"

namespace sim = holdfast::testing::sim;

class PlantedBug : public ::testing::TestWithParam<std::string_view> {};

TEST_P(PlantedBug, is_found) {
    sim::plan failing;
    sim::result found;
    {
        const sim::planted_bug planted{GetParam()};
        const auto outcome =
            sim::run(sim::campaign{.first_seed = sim::base_seed(), .schedules = 20'000});
        ASSERT_TRUE(outcome.failing_seed) << "20000 schedules did not show it";
        failing = sim::make_plan(*outcome.failing_seed);
        found = sim::run(failing);
    }
    std::cout << GetParam() << ": found after " << failing.seed - sim::base_seed() + 1
              << " schedules by \"" << found.invariant << "\": " << found.message << '\n';
    EXPECT_TRUE(sim::run(failing).ok()) << "this schedule fails without the planted bug too";
}

INSTANTIATE_TEST_SUITE_P(simulation, PlantedBug, ::testing::ValuesIn(sim::bug_names()),
                         [](const auto& one) { return std::string{one.param}; });
