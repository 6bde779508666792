#pragma once

#include <chrono>

namespace holdfast::model {

/// Time goes on only when all threads sleep, and only by what the core calls a pause. What happens
/// later (the re-check after a second, renewals) would hide a wake-up that was lost.
inline constexpr std::chrono::milliseconds longest_pause{100};

/// At the beginning of a scenario with a clock and timers.
void begin_time();
/// Begins to count `time` on that clock, and says under what number. For the system's calls that end
/// by themselves.
[[nodiscard]] int begin_countdown(std::chrono::milliseconds time);
[[nodiscard]] bool is_over(int countdown);
void end_countdown(int countdown);
/// Returns when all others sleep.
void rest();
/// Time passes while the thread is busy.
void spend(std::chrono::microseconds time);

}  // namespace holdfast::model
