#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/// What code that waits and wakes is made of: the standard library's and the system's own.
/// `tests/model` has a header of the same name with types of its own, and compiles that code a second
/// time to explore everything that a few threads can do.
namespace holdfast::threading {

template <class Value>
using atomic = std::atomic<Value>;
using std::condition_variable;
using std::jthread;
using std::mutex;
using std::thread;
namespace this_thread = std::this_thread;

using ::close;
using ::eventfd;
using ::eventfd_read;
using ::eventfd_write;
using ::poll;
using ::read;
using ::timerfd_create;
using ::timerfd_settime;

enum class reach : std::uint8_t { process, host };

/// Sleeps while `word` is `seen`, until woken, or shorter.
inline void sleep_while(const void* word, std::uint32_t seen, reach who = reach::process,
                        const ::timespec* limit = nullptr) noexcept {
    ::syscall(SYS_futex, word, who == reach::process ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT, seen, limit,
              nullptr, 0);
}

/// Only the address is used: it does no harm when the word has gone meanwhile, since everybody who
/// sleeps on a futex must expect to be woken without reason.
inline void wake(const void* word, int count, reach who = reach::process) noexcept {
    ::syscall(SYS_futex, word, who == reach::process ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE, count, nullptr,
              nullptr, 0);
}

/// A value of this thread's own.
template <class Value, class Tag>
[[nodiscard]] Value& per_thread() noexcept {
    thread_local Value value{};
    return value;
}

/// On one processor whoever spins keeps the other from running.
[[nodiscard]] inline bool worth_spinning() noexcept {
    static const bool several = std::thread::hardware_concurrency() > 1;
    return several;
}

}  // namespace holdfast::threading
