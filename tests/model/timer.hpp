#pragma once

#include <chrono>

namespace holdfast::model {

/// Time goes on only when all threads sleep, and only by what the core calls a pause. What happens
/// later (the re-check after a second, renewals) would hide a wake-up that was lost.
inline constexpr std::chrono::milliseconds longest_pause{100};

/// At the beginning of a scenario with a clock and a session's timer. One session only.
void begin_time();
/// Returns when all others sleep.
void rest();
/// Time passes while the thread is busy.
void spend(std::chrono::microseconds time);

}  // namespace holdfast::model
