#include <gtest/gtest.h>

#include <holdfast/testing/sim/campaign.hpp>

#include "options.hpp"

namespace sim = holdfast::testing::sim;

namespace {

[[nodiscard]] sim::plan failing_plan(std::string_view bug) {
    const sim::planted_bug planted{bug};
    const auto found = sim::run(sim::campaign{.first_seed = sim::base_seed(), .schedules = 20'000});
    return sim::make_plan(found.failing_seed.value());
}

[[nodiscard]] std::uint64_t size_of(const sim::plan& what) {
    return std::uint64_t{what.clients} * what.threads * what.rounds;
}

}  // namespace

TEST(Replay, the_same_seed_gives_the_same_events) {
    for (std::uint64_t seed = sim::base_seed(); seed < sim::base_seed() + 500; ++seed) {
        const auto plan = sim::make_plan(seed);
        const auto once = sim::run(plan);
        const auto again = sim::run(plan);
        ASSERT_EQ(once.hash, again.hash) << sim::describe(plan);
        ASSERT_EQ(once.events, again.events);
        ASSERT_EQ(once.faults, again.faults);
    }
}

TEST(Replay, other_seeds_give_other_events) {
    EXPECT_NE(sim::run(sim::make_plan(1)).hash, sim::run(sim::make_plan(2)).hash);
}

TEST(Replay, writing_the_trace_changes_nothing) {
    const auto plan = sim::make_plan(sim::base_seed());
    const auto traced = sim::run(plan, {.trace = true});
    EXPECT_EQ(traced.hash, sim::run(plan).hash);
    EXPECT_FALSE(traced.trace.empty());
}

TEST(Minimiser, makes_a_failing_plan_smaller_and_keeps_its_failure) {
    const sim::planted_bug planted{"abandoned_grant_kept"};
    // One in which something can be left out.
    auto failing = sim::make_plan(sim::base_seed());
    auto before = sim::run(failing);
    for (auto seed = sim::base_seed(); before.ok() || before.faults.size() < 5; ++seed) {
        ASSERT_LT(seed, sim::base_seed() + 20'000);
        failing = sim::make_plan(seed);
        before = sim::run(failing);
    }
    const auto small = sim::minimise(failing);
    const auto after = sim::run(small);
    EXPECT_EQ(after.invariant, before.invariant);
    EXPECT_LE(size_of(small), size_of(failing));
    EXPECT_LE(after.faults.size(), before.faults.size());
    EXPECT_LT(size_of(small) + after.faults.size(), size_of(failing) + before.faults.size());
}

TEST(Minimiser, leaves_a_plan_that_does_not_fail_alone) {
    const auto plan = sim::make_plan(sim::base_seed());
    EXPECT_EQ(sim::describe(sim::minimise(plan)), sim::describe(plan));
}

TEST(Report, tells_the_plan_the_story_and_the_broken_promise) {
    const auto failing = failing_plan("handover_keeps_token");
    const sim::planted_bug planted{"handover_keeps_token"};
    const auto text = sim::report(failing);
    EXPECT_NE(text.find("seed " + std::to_string(failing.seed)), std::string::npos);
    EXPECT_NE(text.find("*** "), std::string::npos);
}

TEST(PlantedBug, an_unknown_name_is_refused) {
    EXPECT_THROW(sim::planted_bug{"no_such_bug"}, std::invalid_argument);
}
