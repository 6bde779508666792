#pragma once

#include <algorithm>
#include <chrono>
#include <stop_token>

#include <holdfast/clock.hpp>

namespace holdfast::detail {

/// The longest wait we count with; anything above means "as good as forever".
inline constexpr std::chrono::hours longest_wait{24 * 366 * 10};

/// `now + wait`, without overflow for absurdly long (or negative) waits.
template <class Rep, class Period>
[[nodiscard]] clock::time_point deadline_after(const std::chrono::duration<Rep, Period>& wait) {
    using seconds = std::chrono::duration<double>;
    if (wait <= wait.zero()) {
        return clock::now();
    }
    if (std::chrono::duration_cast<seconds>(wait) >=
        std::chrono::duration_cast<seconds>(longest_wait)) {
        return clock::now() + longest_wait;
    }
    return clock::now() + std::chrono::ceil<clock::duration>(wait);
}

/// How long it is until `until`, zero when it has passed. Does not overflow for the first and last
/// moments of any clock.
template <class Clock, class Duration>
[[nodiscard]] clock::duration time_left(const std::chrono::time_point<Clock, Duration>& until) {
    using seconds = std::chrono::duration<double>;
    const auto now = Clock::now();
    const auto roughly = seconds{until.time_since_epoch()} - seconds{now.time_since_epoch()};
    if (roughly >= seconds{longest_wait}) {
        return longest_wait;
    }
    if (roughly <= -seconds{longest_wait}) {
        return clock::duration::zero();
    }
    return std::max(std::chrono::ceil<clock::duration>(until - now), clock::duration::zero());
}

/// Calls `attempt(deadline)` until it succeeds, `stop` is triggered, or `Clock` says that `until` has
/// passed. A clock that was set back meanwhile gets the rest of its time.
template <class Clock, class Duration, class Attempt>
[[nodiscard]] auto attempt_until(const std::chrono::time_point<Clock, Duration>& until,
                                 const Attempt& attempt, const std::stop_token& stop = {}) {
    while (true) {
        auto result = attempt(clock::now() + time_left(until));
        if (result || stop.stop_requested() || time_left(until) == clock::duration::zero()) {
            return result;
        }
    }
}

}  // namespace holdfast::detail
