#include <runtime/timer.hpp>

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <utility>

namespace holdfast::detail {

timer_thread::timer_thread(std::function<void()> tick)
    : tick_{std::move(tick)}, descriptor_{timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC)} {
    if (descriptor_ < 0) {
        throw std::system_error{errno, std::generic_category(), "cannot create a timer"};
    }
    thread_ = std::thread{[this] { run(); }};
}

timer_thread::~timer_thread() {
    closing_.store(true);
    arm(clock::time_point{});
    if (thread_.get_id() == std::this_thread::get_id()) {
        thread_.detach();
    } else {
        thread_.join();
    }
    ::close(descriptor_);
}

void timer_thread::arm(clock::time_point at) noexcept {
    using namespace std::chrono;
    // All zeros would disarm it.
    const auto since_boot = std::max(at.time_since_epoch(), clock::duration{1});
    const auto whole = duration_cast<seconds>(since_boot);
    itimerspec when{};
    when.it_value.tv_sec = whole.count();
    when.it_value.tv_nsec = (since_boot - whole).count();
    timerfd_settime(descriptor_, TFD_TIMER_ABSTIME, &when, nullptr);
}

void timer_thread::run() {
    while (true) {
        std::uint64_t expirations = 0;
        const auto got = ::read(descriptor_, &expirations, sizeof expirations);
        if (closing_.load()) {
            return;
        }
        if (got < 0 && errno != EINTR && errno != EAGAIN) {
            return;
        }
        tick_();
    }
}

}  // namespace holdfast::detail
