#pragma once

#include <chrono>

#include <holdfast/export.hpp>

namespace holdfast {
inline namespace v0 {

/// The clock leases are measured with: it never steps, and unlike `std::chrono::steady_clock`
/// it goes on counting while the machine sleeps. A lease that ran out during a suspend is seen
/// as run out by the first instruction after it.
struct HOLDFAST_EXPORT clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock>;
    static constexpr bool is_steady = true;

    [[nodiscard]] static time_point now() noexcept;
};

}  // namespace v0
}  // namespace holdfast
