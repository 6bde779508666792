#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/testing/sim/plan.hpp>

/// Clients, network, store and users of holdfast in one thread and in virtual time. The locking code
/// is the shipped core, compiled a second time with mistakes that a test can switch on.
///
/// The same plan gives the same run, event by event, on every machine and compiler.
namespace holdfast::testing::sim {

struct run_options {
    /// Keep the story in `result::trace`; costs time.
    bool trace{};
};

struct result {
    /// Which promise was broken, and how; empty when none was.
    std::string invariant;
    std::string message;
    /// Of all events in their order.
    std::uint64_t hash{};
    std::uint64_t events{};
    std::uint64_t grants{};
    /// The numbers of the faults that took place.
    std::vector<std::uint32_t> faults;
    std::vector<std::string> trace;

    [[nodiscard]] bool ok() const noexcept { return invariant.empty(); }
};

[[nodiscard]] result run(const plan& what, const run_options& options = {});

/// Takes parts away from a failing plan for as long as the same promise stays broken.
[[nodiscard]] plan minimise(const plan& failing);

/// Seed, plan, broken promise and trace of a failing run, for a human.
[[nodiscard]] std::string report(const plan& failing);

}  // namespace holdfast::testing::sim
