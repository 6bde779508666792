#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include <holdfast/mutex.hpp>

#include "measure.hpp"

namespace bench {

inline constexpr std::size_t hammer_threads = 64;

/// Locks and unlocks in 64 threads for a while; returns the time per hold, of all threads together.
[[nodiscard]] nanoseconds hammer(const std::function<holdfast::mutex&(std::size_t thread)>& mutex_of,
                                 std::chrono::milliseconds length);

}  // namespace bench
