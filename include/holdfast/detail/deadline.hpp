#pragma once

#include <chrono>

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

/// Calls `attempt(deadline)` until it succeeds or `Clock` says that `until` has passed. A clock
/// that was set back meanwhile gets the rest of its time.
template <class Clock, class Duration, class Attempt>
[[nodiscard]] auto attempt_until(const std::chrono::time_point<Clock, Duration>& until,
                                 const Attempt& attempt) {
    while (true) {
        const auto now = Clock::now();
        // Compared first: the difference to the end of time does not fit into a duration.
        auto result = attempt(until > now ? deadline_after(until - now) : clock::now());
        if (result || Clock::now() >= until) {
            return result;
        }
    }
}

}  // namespace holdfast::detail
