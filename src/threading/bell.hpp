#pragma once

#include <algorithm>
#include <array>

#include <threading/primitives.hpp>

namespace holdfast::threading {

/// Wakes a thread that sleeps in poll().
///
/// False where the system has no descriptor left. Nobody hears it then, so `sleep` returns soon.
///
/// Thread safety: all functions may be called from any thread.
class bell {
public:
    bell() noexcept : descriptor_{threading::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {}
    bell(const bell&) = delete;
    bell& operator=(const bell&) = delete;
    ~bell() {
        if (descriptor_ >= 0) {
            threading::close(descriptor_);
        }
    }

    explicit operator bool() const noexcept { return descriptor_ >= 0; }
    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    void ring() const noexcept { threading::eventfd_write(descriptor_, 1); }
    void silence() const noexcept {
        ::eventfd_t rung{};
        threading::eventfd_read(descriptor_, &rung);
    }

    /// Sleeps until the bell rings, until `descriptor` is ready for one of the events, or until the
    /// timeout of poll() ends. Returns what the descriptor is ready for. -1: no descriptor.
    short sleep(int descriptor, short events, int timeout) const noexcept {
        std::array<::pollfd, 2> watched{{{.fd = descriptor_, .events = POLLIN, .revents = 0},
                                         {.fd = descriptor, .events = events, .revents = 0}}};
        if (descriptor_ < 0) {
            timeout = timeout < 0 ? deaf_pause : std::min(timeout, deaf_pause);
        }
        if (threading::poll(watched.data(), watched.size(), timeout) <= 0) {
            return 0;
        }
        if (watched[0].revents != 0) {
            silence();
        }
        return watched[1].revents;
    }

private:
    /// In ms.
    static constexpr int deaf_pause = 50;

    int descriptor_;
};

}  // namespace holdfast::threading
