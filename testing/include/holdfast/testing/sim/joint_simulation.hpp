#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::testing::sim {

/// A run of callers that want several locks at once. Everything else is drawn from the seed.
struct joint_plan {
    std::uint64_t seed{};
    /// After how many events of the run the first caller stops waiting; none: it is patient.
    std::optional<std::uint64_t> cancel_at{};
};

struct joint_result {
    /// Empty: no promise was broken.
    std::string violation;
    std::uint64_t events{};
    /// Single locks that were granted, and calls that got all of theirs.
    std::uint64_t grants{};
    std::uint64_t calls_granted{};
    std::uint64_t calls_ended{};
    /// The events between which the first caller's first call began and ended: where to cancel it.
    std::uint64_t first_call_began{};
    std::uint64_t first_call_ended{};
};

/// Several users of two or three clients take up to four locks at once, on one or two stores, in
/// orders and with doubles as they please, in virtual time: requests and answers are slow, come late or
/// get lost, stores stop and restart, clients are paused, users give up. What orders, takes, gives back
/// and releases the locks is the shipped core.
[[nodiscard]] joint_result run(const joint_plan& what);

}  // namespace holdfast::testing::sim
