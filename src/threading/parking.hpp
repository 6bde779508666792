#pragma once

#include <cstdint>

#include <threading/bell.hpp>
#include <threading/primitives.hpp>

namespace holdfast::threading {

/// Where one thread sleeps until another leaves it a message. A message that comes first is not lost.
/// The message is the futex itself: a thread that has read it may destroy the spot while its waker is
/// still on the way to the system.
///
///     nothing ◀──▶ asleep, at_descriptor      by the thread itself
///     any     ───▶ a message                  by others
///     message ───▶ nothing                    by the thread itself: `park`
///
/// Costs a system call only when the thread really sleeps: a lock handed from thread to thread passes
/// through here each time. `std::atomic::wait` has no deadline, and a condition variable would cost
/// more than a request to a store.
class parking_spot {
public:
    /// Users number theirs from 1.
    using message = std::uint32_t;
    static constexpr message nothing = 0;

    [[nodiscard]] message left() const noexcept { return word_.load(std::memory_order_acquire); }
    [[nodiscard]] bool unparked() const noexcept { return left() == woken; }

    /// Sleeps until there is a message, at most for `limit`; may return `nothing` sooner. The message
    /// stays there.
    message wait(const ::timespec* limit) noexcept {
        message seen = nothing;
        if (!word_.compare_exchange_strong(seen, asleep)) {
            return seen;
        }
        sleep_while(&word_, asleep, reach::process, limit);
        seen = asleep;
        return word_.compare_exchange_strong(seen, nothing) ? nothing : seen;
    }

    /// Sleeps until there is a message, and takes it away.
    void park() noexcept {
        while (wait(nullptr) == nothing) {
        }
        // Taken by a read-modify-write: a plain store could reach the others after we have looked at
        // what they had to say, and wipe out a second wake-up that came in between.
        word_.exchange(nothing, std::memory_order_acq_rel);
    }

    /// Sleeps until there is a message (false), or until `descriptor` can be read or is broken (true).
    /// May return false sooner. The bell must outlive everybody who may call `unpark`.
    [[nodiscard]] bool park_at(int descriptor, const bell& own) noexcept {
        bell_.store(&own, std::memory_order_relaxed);
        message seen = nothing;
        if (!word_.compare_exchange_strong(seen, at_descriptor, std::memory_order_acq_rel)) {
            return false;
        }
        const short ready = own.sleep(descriptor, POLLIN, -1);
        seen = at_descriptor;
        word_.compare_exchange_strong(seen, nothing, std::memory_order_acq_rel);
        return ready != 0;
    }

    /// Leaves a message. True: the thread sleeps in `wait` or `park`, and `wake` must follow.
    [[nodiscard]] bool tell(message next) noexcept {
        return word_.exchange(next, std::memory_order_acq_rel) == asleep;
    }
    /// Only the address is used, so the spot may be gone: whoever sleeps on a futex must expect to be
    /// woken without reason.
    static void wake(parking_spot* sleeper) noexcept { threading::wake(sleeper, 1); }

    /// Leaves the message `woken` and wakes the thread wherever it sleeps.
    void unpark() noexcept {
        const message before = word_.exchange(woken, std::memory_order_acq_rel);
        if (before == asleep) {
            wake(this);
        } else if (before == at_descriptor) {
            bell_.load(std::memory_order_relaxed)->ring();
        }
    }

private:
    static constexpr message woken = 1;
    static constexpr message asleep = UINT32_MAX;
    static constexpr message at_descriptor = UINT32_MAX - 1;

    atomic<message> word_{nothing};
    atomic<const bell*> bell_{};

    static_assert(sizeof(atomic<message>) == sizeof(message), "a futex is a bare 32-bit word");
};

}  // namespace holdfast::threading
