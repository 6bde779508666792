#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>

#include <holdfast/clock.hpp>
#include <threading/primitives.hpp>

#include <sched.h>

namespace holdfast::engines::redis {

/// Where one thread sleeps until another tells it what is next. A futex: `std::atomic::wait` has no
/// deadline, and a condition variable per request would cost more than the request.
///
///     awake ◀──▶ asleep          only its own thread
///     any   ───▶ leads, ended    others, with the connection's lock held
class parking_word {
public:
    enum class state : std::uint32_t {
        awake,
        asleep,
        leads,  ///< the thread is to read for everybody
        ended,  ///< its request is over
    };

    [[nodiscard]] state get() const noexcept { return word_.load(std::memory_order_acquire); }

    /// Sleeps until told something, until `until`, or shorter. Says where it stands. `now` may be a
    /// few microseconds ago.
    state wait(clock::time_point until, clock::time_point now) noexcept {
        const auto left = std::min<clock::duration>(until - now, std::chrono::seconds{1});
        // With many threads the answer is often there before they have all had their turn, and then
        // neither side needs the system to sleep or to wake.
        for (int turn = 0; turn < turns_before_sleep; ++turn) {
            if (const state told = get(); told != state::awake) {
                return told;
            }
            ::sched_yield();
        }
        state seen = state::awake;
        if (left <= clock::duration::zero() || !word_.compare_exchange_strong(seen, state::asleep)) {
            return seen;
        }
        const ::timespec limit{.tv_sec = static_cast<std::time_t>(left.count() / 1'000'000'000),
                               .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)};
        threading::sleep_while(&word_, static_cast<std::uint32_t>(state::asleep),
                               threading::reach::process, &limit);
        seen = state::asleep;
        return word_.compare_exchange_strong(seen, state::awake) ? state::awake : seen;
    }

    /// True when its thread sleeps and must be woken. The word may be gone as soon as it says "ended".
    [[nodiscard]] bool tell(state next) noexcept {
        return word_.exchange(next, std::memory_order_acq_rel) == state::asleep;
    }

    /// Only the address is used: it does no harm when the word has gone meanwhile, since everybody who
    /// sleeps on a futex must expect to be woken without reason.
    static void wake(parking_word* sleeper) noexcept { threading::wake(sleeper, 1); }

private:
    static constexpr int turns_before_sleep = 2;

    threading::atomic<state> word_{state::awake};
    static_assert(sizeof(threading::atomic<state>) == sizeof(std::uint32_t));
};

}  // namespace holdfast::engines::redis
