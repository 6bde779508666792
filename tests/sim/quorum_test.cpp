#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/testing/sim/campaign.hpp>
#include <holdfast/testing/sim/quorum_simulation.hpp>

#include "options.hpp"

/// The shipped quorum, over simulated members.
namespace {

namespace sim = holdfast::testing::sim;
using sim::quorum_plan;

std::uint64_t schedules() {
    return sim::number_from_environment("HOLDFAST_SIM_SCHEDULES", 20'000);
}

struct quorum_tally {
    std::uint64_t schedules{};
    std::uint64_t grants{};
    std::uint64_t overlaps{};
    std::uint64_t stale_writes_refused{};
    std::string violation;
    std::uint64_t violating_seed{};
};

/// Plays one schedule per seed on two threads; stops at a violation, or when `enough` says so.
template <class Enough>
quorum_tally play(quorum_plan plan, std::uint64_t schedules, Enough enough) {
    quorum_tally all;
    std::mutex guard;
    std::atomic<std::uint64_t> next{0};
    std::atomic<bool> stop{false};
    const auto work = [&] {
        while (!stop) {
            const auto index = next.fetch_add(1);
            if (index >= schedules) {
                return;
            }
            auto mine = plan;
            mine.seed = sim::base_seed() + index;
            const auto result = sim::run(mine);
            const std::lock_guard lock{guard};
            ++all.schedules;
            all.grants += result.grants;
            all.overlaps += result.overlaps;
            all.stale_writes_refused += result.stale_writes_refused;
            if (!result.violation.empty() && all.violation.empty()) {
                all.violation = result.violation;
                all.violating_seed = mine.seed;
            }
            stop = stop || !all.violation.empty() || enough(all);
        }
    };
    std::jthread other{work};
    work();
    other.join();
    return all;
}

quorum_tally play(const quorum_plan& plan, std::uint64_t schedules) {
    return play(plan, schedules, [](const quorum_tally&) { return false; });
}

void expect_kept(const quorum_tally& all) {
    EXPECT_TRUE(all.violation.empty()) << "seed " << all.violating_seed << ": " << all.violation;
    EXPECT_GT(all.grants, all.schedules) << "nothing happened";
    std::cout << all.schedules << " schedules, " << all.grants << " grants, " << all.overlaps
              << " overlaps, " << all.stale_writes_refused << " late writes refused\n";
}

TEST(QuorumSimulation, keeps_every_promise_as_long_as_members_remember) {
    expect_kept(play({}, schedules()));
}

TEST(QuorumSimulation, members_that_forget_do_no_harm_when_they_wait_before_they_vote) {
    expect_kept(play({.members = quorum_plan::restarts::forget_wisely}, schedules() / 8 + 1));
}

TEST(QuorumSimulation, members_that_forget_and_vote_at_once_let_two_in) {
    const auto all = play({.members = quorum_plan::restarts::forget}, 20'000,
                          [](const quorum_tally& seen) { return seen.overlaps > 0; });
    EXPECT_GT(all.overlaps, 0U) << "the limit that the documents name was not seen";
}

/// What Kleppmann describes: the lease ends on the members before its holder thinks so.
TEST(QuorumSimulation, clocks_beyond_the_bound_let_two_in_and_the_token_settles_it) {
    const auto all = play(
        {.drift = quorum_plan::clocks::beyond_bound}, 20'000,
        [](const quorum_tally& seen) { return seen.overlaps > 20 && seen.stale_writes_refused > 20; });
    EXPECT_TRUE(all.violation.empty()) << "seed " << all.violating_seed << ": " << all.violation;
    EXPECT_GT(all.overlaps, 0U);
    EXPECT_GT(all.stale_writes_refused, 0U);
}

/// The same by a jump: an administrator sets the clocks, or a server of the time is wrong.
TEST(QuorumSimulation, clocks_that_jump_beyond_the_bound_let_two_in_and_the_token_settles_it) {
    const auto all = play(
        {.jumps = quorum_plan::steps::beyond_bound}, 20'000,
        [](const quorum_tally& seen) { return seen.overlaps > 20 && seen.stale_writes_refused > 20; });
    EXPECT_TRUE(all.violation.empty()) << "seed " << all.violating_seed << ": " << all.violation;
    EXPECT_GT(all.overlaps, 0U);
    EXPECT_GT(all.stale_writes_refused, 0U);
}

class PlantedQuorumBug : public ::testing::TestWithParam<std::string_view> {};

TEST_P(PlantedQuorumBug, is_found) {
    std::uint64_t seed{};
    {
        const sim::planted_bug planted{GetParam()};
        const auto all = play({}, 20'000);
        ASSERT_FALSE(all.violation.empty()) << "20000 schedules did not show it";
        seed = all.violating_seed;
        std::cout << GetParam() << ": found by \"" << all.violation << "\"\n";
    }
    EXPECT_TRUE(sim::run(quorum_plan{.seed = seed}).violation.empty())
        << "this schedule fails without the planted bug too";
}

INSTANTIATE_TEST_SUITE_P(simulation, PlantedQuorumBug, ::testing::ValuesIn(sim::quorum_bug_names()),
                         [](const auto& one) { return std::string{one.param}; });

}  // namespace
