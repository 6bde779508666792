#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include <holdfast/clock.hpp>

namespace holdfast::detail {

/// A thread that calls `tick` at the moment it was last armed for. The moment is on a clock that goes
/// on while the machine sleeps, so a lease that ran out meanwhile is noticed on waking up.
class timer_thread {
public:
    explicit timer_thread(std::function<void()> tick);
    timer_thread(const timer_thread&) = delete;
    timer_thread& operator=(const timer_thread&) = delete;
    ~timer_thread();

    /// Calls `tick` at `at`, instead of whatever was asked for before. From any thread.
    void arm(clock::time_point at) noexcept;

private:
    void run();

    std::function<void()> tick_;
    int descriptor_;
    std::atomic<bool> closing_{false};
    std::thread thread_;
};

}  // namespace holdfast::detail
