#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

#include <holdfast/testing/sim/campaign.hpp>
#include <holdfast/testing/sim/records_simulation.hpp>

#include "options.hpp"

/// The shipped machine and rules of the family of engines with one record for each name.
namespace {

namespace sim = holdfast::testing::sim;

struct records_tally {
    sim::records_result all;
    std::uint64_t schedules{};
    std::uint64_t violating_seed{};
};

/// Plays one schedule per seed on two threads; stops at a violation.
records_tally play_records(std::uint64_t schedules) {
    records_tally tally;
    std::mutex guard;
    std::atomic<std::uint64_t> next{0};
    std::atomic<bool> stop{false};
    const auto work = [&] {
        while (!stop) {
            const auto index = next.fetch_add(1);
            if (index >= schedules) {
                return;
            }
            const auto seed = sim::base_seed() + index;
            const auto result = sim::run_records(seed);
            const std::lock_guard lock{guard};
            ++tally.schedules;
            tally.all.grants += result.grants;
            tally.all.events += result.events;
            tally.all.conflicts += result.conflicts;
            tally.all.unanswered += result.unanswered;
            if (!result.violation.empty() && (!stop || seed < tally.violating_seed)) {
                tally.all.violation = result.violation;
                tally.violating_seed = seed;
                stop = true;
            }
        }
    };
    std::jthread other{work};
    work();
    other.join();
    return tally;
}

TEST(RecordsSimulation, keeps_every_promise) {
    const auto tally = play_records(sim::number_from_environment("HOLDFAST_SIM_SCHEDULES", 20'000));
    EXPECT_TRUE(tally.all.violation.empty())
        << "seed " << tally.violating_seed << ": " << tally.all.violation;
    EXPECT_GT(tally.all.grants, tally.schedules) << "nothing happened";
    EXPECT_GT(tally.all.conflicts, tally.schedules / 4) << "nobody contended";
    EXPECT_GT(tally.all.unanswered, tally.schedules / 10) << "every answer arrived";
    std::cout << tally.schedules << " schedules, " << tally.all.events << " events, "
              << tally.all.grants << " grants, " << tally.all.conflicts << " conflicts, "
              << tally.all.unanswered << " writes without an answer\n";
}

TEST(RecordsSimulation, a_seed_repeats_its_schedule) {
    for (std::uint64_t seed = 1; seed < 50; ++seed) {
        const auto once = sim::run_records(seed);
        const auto again = sim::run_records(seed);
        EXPECT_EQ(once.events, again.events);
        EXPECT_EQ(once.grants, again.grants);
        EXPECT_EQ(once.conflicts, again.conflicts);
    }
}

class PlantedRecordsBug : public ::testing::TestWithParam<std::string_view> {};

TEST_P(PlantedRecordsBug, is_found) {
    std::uint64_t seed{};
    {
        const sim::planted_bug planted{GetParam()};
        const auto tally = play_records(20'000);
        ASSERT_FALSE(tally.all.violation.empty()) << "20000 schedules did not show it";
        seed = tally.violating_seed;
        std::cout << GetParam() << ": found after " << tally.schedules << " schedules by \""
                  << tally.all.violation << "\"\n";
    }
    EXPECT_TRUE(sim::run_records(seed).violation.empty())
        << "this schedule fails without the planted bug too";
}

INSTANTIATE_TEST_SUITE_P(simulation, PlantedRecordsBug, ::testing::ValuesIn(sim::records_bug_names()),
                         [](const auto& one) { return std::string{one.param}; });

}  // namespace
