#pragma once

#include <holdfast/clock.hpp>
#include <threading/primitives.hpp>

namespace holdfast::detail {

/// Looks again and again for a few microseconds, which costs less than falling asleep and being
/// woken, but lets anybody else run first.
template <class Condition>
void yield_until(const Condition& met) {
    if (!threading::worth_spinning()) {
        return;
    }
    const auto until = clock::now() + std::chrono::microseconds{50};
    while (!met() && clock::now() < until) {
        threading::this_thread::yield();
    }
}

/// A mutex for critical sections shorter than a system call.
class spinning_mutex {
public:
    void lock() {
        for (int i = 0; i < 200 && threading::worth_spinning(); ++i) {
            if (mutex_.try_lock()) {
                return;
            }
            pause();
        }
        mutex_.lock();
    }
    bool try_lock() { return mutex_.try_lock(); }
    void unlock() { mutex_.unlock(); }

private:
    static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    threading::mutex mutex_;
};

}  // namespace holdfast::detail
