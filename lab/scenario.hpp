#pragma once

#include <span>
#include <string_view>

#include "actor.hpp"
#include "story.hpp"

namespace lab {

/// A flaw, told twice on real servers: with the home-made lock that has the flaw, and with holdfast.
struct scenario {
    /// Also the name of its page in docs/learn.
    std::string_view name;
    std::string_view title;
    /// The home-made lock in a few words.
    std::string_view naive_lock;
    ending (*naive)(story&);
    /// How holdfast is used.
    std::string_view holdfast_lock;
    ending (*with_holdfast)(story&);
    /// The verdict that holdfast promises: `safe`, or the documented `limit`. The naive lock always
    /// breaks.
    verdict promised;
};

[[nodiscard]] std::span<const scenario> all_scenarios();
/// The roles that child processes can play.
[[nodiscard]] std::span<const role> all_roles();

}  // namespace lab
