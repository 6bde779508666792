#include <holdfast/testing/sim/plan.hpp>

#include <dice.hpp>

#include <algorithm>
#include <array>
#include <sstream>

namespace holdfast::testing::sim {

namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(feature::count)> feature_names{
    "lose_request",     "lose_reply",  "long_delay",   "reset_connection",
    "late_request",     "lose_hint",   "delay_hint",   "spurious_hint",
    "restart_store",    "lose_data",   "slow_store",   "clock_forward",
    "clock_backward",   "revoke",      "pause_client", "crash_client",
    "shut_down_client", "try_once",    "timed",        "cancel",
    "max_hold",         "fixed_lease", "shared",       "permits",
    "convert",          "linger",      "late_release", "fair",
    "refuse_release",   "impatient"};

[[nodiscard]] bool is_fault(feature what) noexcept {
    return what < feature::try_once || what == feature::refuse_release;
}

/// Only where hints come late or in vain does the network count as undisturbed.
[[nodiscard]] bool is_mild(feature what) noexcept {
    return what == feature::delay_hint || what == feature::spurious_hint || what == feature::lose_hint;
}

}  // namespace

std::string_view name_of(feature what) noexcept {
    return feature_names.at(static_cast<std::size_t>(what));
}

bool feature_set::any_of(std::initializer_list<feature> some) const noexcept {
    return std::any_of(some.begin(), some.end(), [this](feature one) { return has(one); });
}

plan make_plan(std::uint64_t seed) {
    generator random{seed};
    plan result;
    result.seed = seed;
    const auto pick = [&random](std::uint64_t count) {
        return static_cast<std::uint32_t>((random.next() >> 8U) % count);
    };
    result.kind = pick(2) == 0 ? mode::safety : mode::liveness;
    // One run in four is free of faults, so that promises about speed can be held to.
    const bool undisturbed = pick(4) == 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(feature::fair); ++i) {
        const auto what = static_cast<feature>(i);
        const bool chosen = is_fault(what) ? pick(4) == 0 : pick(2) == 0;
        if (chosen && (!undisturbed || !is_fault(what) || is_mild(what))) {
            result.features.add(what);
        }
    }
    result.clients = 2 + pick(3);
    result.threads = 1 + pick(4);
    result.rounds = 1 + pick(5);
    // Last, so that the seeds of the time before there were lines mean what they meant.
    if (pick(2) == 0) {
        result.features.add(feature::fair);
    }
    if (pick(8) == 0 && !undisturbed) {
        result.features.add(feature::refuse_release);
    }
    if (pick(2) == 0) {
        result.features.add(feature::impatient);
    }
    return result;
}

std::string describe(const plan& what) {
    std::ostringstream text;
    text << "seed " << what.seed << ", " << (what.kind == mode::safety ? "safety" : "liveness") << ", "
         << what.clients << " clients × " << what.threads << " threads × " << what.rounds << " rounds;";
    for (std::size_t i = 0; i < feature_names.size(); ++i) {
        if (what.features.has(static_cast<feature>(i))) {
            text << ' ' << feature_names.at(i);
        }
    }
    if (what.last_fault != plan{}.last_fault) {
        text << "; faults up to number " << what.last_fault;
    }
    if (!what.suppressed_faults.empty()) {
        text << "; without faults";
        for (const auto number : what.suppressed_faults) {
            text << ' ' << number;
        }
    }
    return text.str();
}

}  // namespace holdfast::testing::sim
