#include <runtime/timer.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <utility>

namespace holdfast::detail {

timer_thread::timer_thread(std::function<void()> tick)
    : tick_{std::move(tick)}, descriptor_{threading::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC)} {
    if (descriptor_ < 0) {
        throw std::system_error{errno, std::generic_category(), "cannot create a timer"};
    }
    try {
        thread_ = threading::thread{[this] { run(); }};
    } catch (const std::system_error&) {
        threading::close(descriptor_);
        throw;
    }
}

timer_thread::~timer_thread() {
    closing_.store(true);
    if (thread_.get_id() == threading::this_thread::get_id()) {
        *ended_by_tick_ = true;
        thread_.detach();
    } else {
        // Counted from now: no moment is certain to be over for a program whose clock is shifted.
        const itimerspec at_once{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = 1}};
        threading::timerfd_settime(descriptor_, 0, &at_once, nullptr);
        thread_.join();
    }
    threading::close(descriptor_);
}

void timer_thread::arm(clock::time_point at) noexcept {
    using namespace std::chrono;
    // All zeros would disarm it.
    const auto since_boot = std::max(at.time_since_epoch(), clock::duration{1});
    const auto whole = duration_cast<seconds>(since_boot);
    itimerspec when{};
    when.it_value.tv_sec = whole.count();
    when.it_value.tv_nsec = (since_boot - whole).count();
    threading::timerfd_settime(descriptor_, TFD_TIMER_ABSTIME, &when, nullptr);
}

void timer_thread::run() {
    const auto tick = tick_;  // outlives us if it ends us
    while (true) {
        std::uint64_t expirations = 0;
        const auto got = threading::read(descriptor_, &expirations, sizeof expirations);
        if (closing_.load()) {
            return;
        }
        if (got < 0 && errno != EINTR && errno != EAGAIN) {
            return;
        }
        bool ended = false;
        ended_by_tick_ = &ended;
        tick();
        if (ended) {
            return;
        }
    }
}

}  // namespace holdfast::detail
