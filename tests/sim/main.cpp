#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <holdfast/testing/sim/campaign.hpp>

#include "options.hpp"

namespace sim = holdfast::testing::sim;

namespace {

struct arguments {
    std::optional<std::uint64_t> seed;
    std::string bug;
    bool trace{};
    bool whole{};
};

[[nodiscard]] std::string from_environment(const char* name) {
    const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return text == nullptr ? std::string{} : std::string{text};
}

[[nodiscard]] arguments read_arguments(int count, char** values) {
    arguments result;
    if (const auto seed = from_environment("HOLDFAST_SIM_SEED"); !seed.empty()) {
        result.seed = std::stoull(seed);
    }
    result.bug = from_environment("HOLDFAST_SIM_BUG");
    for (int i = 1; i < count; ++i) {
        const std::string_view one{values[i]};
        if (one.starts_with("--seed=")) {
            result.seed = std::stoull(std::string{one.substr(7)});
        } else if (one.starts_with("--bug=")) {
            result.bug = one.substr(6);
        } else if (one == "--trace") {
            result.trace = true;
        } else if (one == "--whole") {
            result.whole = true;
        }
    }
    return result;
}

/// Runs one seed again, and makes it smaller if it fails.
[[nodiscard]] int replay(const arguments& what) {
    const sim::planted_bug planted{what.bug};
    const auto plan = sim::make_plan(*what.seed);
    const auto outcome = sim::run(plan);
    std::cout << sim::describe(plan) << "\nhash " << std::hex << outcome.hash << std::dec << ", events "
              << outcome.events << ", grants " << outcome.grants << '\n';
    if (!outcome.ok()) {
        std::cout << outcome.invariant << ": " << outcome.message << "\n\n"
                  << sim::report(what.whole ? plan : sim::minimise(plan));
    } else if (what.trace) {
        std::cout << sim::report(plan);
    }
    return outcome.ok() ? 0 : 1;
}

}  // namespace

// holdfast_sim_tests --seed=N [--bug=name] [--trace] [--whole] runs one schedule again, as do
// HOLDFAST_SIM_SEED and HOLDFAST_SIM_BUG; `--whole` shows a failing one before it was made smaller.
int main(int count, char** values) {
    const auto what = read_arguments(count, values);
    if (what.seed) {
        return replay(what);
    }
    ::testing::InitGoogleTest(&count, values);
    std::cout << "simulation: base seed " << sim::base_seed() << " (HOLDFAST_SIM_BASE_SEED)\n";
    return RUN_ALL_TESTS();
}
