#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>

namespace holdfast::engines::quorums {

/// Watches a name on all members. A hint is passed on when more than half of the members have given
/// one since the last: a release frees a majority, while a contender that gives back the few members
/// it got frees nothing that others could win, and must not wake them to try the same at the same time.
/// Also when notifications begin to flow from a majority.
[[nodiscard]] std::unique_ptr<subscription> watch_all(const std::vector<engine*>& members,
                                                      const std::string& name, lock_kind kind,
                                                      std::function<void()> hint);

}  // namespace holdfast::engines::quorums
