#include <runtime/parking.hpp>

#include <array>
#include <cerrno>
#include <system_error>

namespace holdfast::detail {

static_assert(sizeof(threading::atomic<std::uint32_t>) == sizeof(std::uint32_t),
              "a futex is a bare 32-bit word");

doorbell::doorbell() : descriptor_{threading::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    if (descriptor_ < 0) {
        throw std::system_error{errno, std::generic_category(), "eventfd"};
    }
}

doorbell::~doorbell() {
    threading::close(descriptor_);
}

void doorbell::ring() const noexcept {
    threading::eventfd_write(descriptor_, 1);
}

void doorbell::silence() const noexcept {
    ::eventfd_t rung{};
    threading::eventfd_read(descriptor_, &rung);
}

void parking_spot::park() noexcept {
    std::uint32_t expected = empty;
    if (state_.compare_exchange_strong(expected, asleep, std::memory_order_acquire)) {
        while (state_.load(std::memory_order_acquire) == asleep) {
            threading::sleep_while(&state_, asleep);
        }
    }
    // Taken by a read-modify-write: a plain store could reach the others after we have looked at what
    // they had to say, and wipe out a second wake-up that came in between.
    state_.exchange(empty, std::memory_order_acq_rel);
}

bool parking_spot::park_at(int descriptor, const doorbell& bell) noexcept {
    bell_.store(&bell, std::memory_order_relaxed);
    std::uint32_t expected = empty;
    if (!state_.compare_exchange_strong(expected, at_descriptor, std::memory_order_acq_rel)) {
        return false;
    }
    std::array<::pollfd, 2> watched{{{.fd = bell.descriptor(), .events = POLLIN, .revents = 0},
                                     {.fd = descriptor, .events = POLLIN, .revents = 0}}};
    const bool any = threading::poll(watched.data(), watched.size(), -1) > 0;
    expected = at_descriptor;
    state_.compare_exchange_strong(expected, empty, std::memory_order_acq_rel);
    if (any && watched[0].revents != 0) {
        bell.silence();
    }
    return any && watched[1].revents != 0;
}

void parking_spot::unpark() noexcept {
    const auto before = state_.exchange(woken, std::memory_order_acq_rel);
    if (before == asleep) {
        threading::wake(&state_, 1);
    } else if (before == at_descriptor) {
        bell_.load(std::memory_order_relaxed)->ring();
    }
}

}  // namespace holdfast::detail
