#pragma once

#include <functional>

#include <holdfast/clock.hpp>
#include <threading/primitives.hpp>

namespace holdfast::detail {

/// A thread that calls `tick` at the moment it was last armed for. The moment is on a clock that goes
/// on while the machine sleeps, so a lease that ran out meanwhile is noticed on waking up.
///
/// Thread safety: `arm` may be called from any thread, but not while the object is being destroyed: it
/// would put off the end. A tick may itself end the object.
class timer_thread {
public:
    explicit timer_thread(std::function<void()> tick);
    timer_thread(const timer_thread&) = delete;
    timer_thread& operator=(const timer_thread&) = delete;
    ~timer_thread();

    /// Calls `tick` at `at`, instead of whatever was asked for before.
    void arm(clock::time_point at) noexcept;

private:
    void run();

    std::function<void()> tick_;
    int descriptor_;
    threading::atomic<bool> closing_{false};
    /// Set by a tick that ends us. Only for our own thread, while it ticks.
    bool* ended_by_tick_{};
    threading::thread thread_;
};

}  // namespace holdfast::detail
