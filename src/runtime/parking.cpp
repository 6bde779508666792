#include <runtime/parking.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holdfast::detail {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t),
              "a futex is a bare 32-bit word");

void parking_spot::park() noexcept {
    std::uint32_t expected = empty;
    if (state_.compare_exchange_strong(expected, asleep, std::memory_order_acquire)) {
        while (state_.load(std::memory_order_acquire) == asleep) {
            ::syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, static_cast<std::uint32_t>(asleep),
                      nullptr, nullptr, 0);
        }
    }
    state_.store(empty, std::memory_order_release);
}

void parking_spot::unpark() noexcept {
    if (state_.exchange(woken, std::memory_order_acq_rel) == asleep) {
        ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
}

}  // namespace holdfast::detail
