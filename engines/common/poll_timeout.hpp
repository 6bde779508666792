#pragma once

#include <algorithm>
#include <chrono>

#include <holdfast/clock.hpp>

namespace holdfast::engines {

/// For poll(): rounded up, and never so long that a machine's sleep could hide the end of the wait
/// (poll's clock stands still meanwhile). Without an end for `time_point::max()`.
[[nodiscard]] inline int poll_timeout(clock::time_point until, clock::time_point now) noexcept {
    if (until <= now) {
        return 0;
    }
    if (until == clock::time_point::max()) {
        return -1;
    }
    const auto left = std::min<clock::duration>(until - now, std::chrono::seconds{1});
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

}  // namespace holdfast::engines
