#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <holdfast/clock.hpp>
#include <holdfast/detail/deadline.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

namespace holdfast::detail {
class hold;
class session;
struct patience;
}  // namespace holdfast::detail

namespace holdfast {
inline namespace v0 {

class client;

/// A `mutex` that its thread may lock again. Meets the standard's TimedLockable.
///
/// A thread has one hold of a name, with one token. Each `lock` and each lease is a level of this hold.
/// Only the first level in and the last one out talk to the store; what lies between is counted here.
/// The terms of the first level count for all.
///
/// Re-entrance is by client, name and thread, whatever object is used. Another client, also in the same
/// thread, is somebody else, and so is a `mutex` of the same name. Objects of one name may be locked
/// one inside the other. Levels may end in any order.
///
/// A lease may be moved to another thread and released there; it still belongs to the hold of the
/// thread that acquired it. The other thread is not inside: if it locks, it waits.
///
///     a lease that is not the last level is released   `released` or `already_lost`; the lock stays
///     `release_after`                                  keeps the name only from the last level
///     loss                                             reaches all levels: `lost()`, each lease
///
/// Errors: as with `mutex`. Entering again after the hold was lost throws the reason (`errc::lost`, …):
/// a nested critical section must not start on a lock that somebody else may have.
/// Thread safety: as with `mutex`, except that only the thread that locked may unlock.
///
/// Misuse:
///     unlocked by another thread, or without a `lock`   aborts, also while there are leases
///     its thread ended         its locks are unlocked, its leases stay; if nothing is left, the hold
///                              is lost and given back
///     destroyed while locked   what was locked through this object is unlocked, leases stay; if
///                              nothing is left, the hold is lost, as with `mutex`
class HOLDFAST_EXPORT recursive_mutex {
public:
    recursive_mutex(client& owner, std::string name, lease_options options = {});
    recursive_mutex(const recursive_mutex&) = delete;
    recursive_mutex& operator=(const recursive_mutex&) = delete;
    ~recursive_mutex();

    void lock();
    [[nodiscard]] bool lock_unless_stopped(std::stop_token stop);
    [[nodiscard]] bool try_lock();
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
        return lock_until(detail::deadline_after(wait));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& until) {
        return detail::attempt_until(
            until, [this](clock::time_point deadline) { return lock_until(deadline); });
    }
    void unlock() noexcept;

    [[nodiscard]] lease acquire();
    /// Empty when `stop` was triggered first.
    [[nodiscard]] std::optional<lease> acquire_unless_stopped(std::stop_token stop);
    [[nodiscard]] std::optional<lease> try_acquire();
    template <class Rep, class Period>
    [[nodiscard]] std::optional<lease> try_acquire_for(const std::chrono::duration<Rep, Period>& wait,
                                                       std::stop_token stop = {}) {
        return acquire_until(detail::deadline_after(wait), std::move(stop));
    }
    template <class Clock, class Duration>
    [[nodiscard]] std::optional<lease> try_acquire_until(
        const std::chrono::time_point<Clock, Duration>& until, std::stop_token stop = {}) {
        return detail::attempt_until(
            until, [&](clock::time_point deadline) { return acquire_until(deadline, stop); }, stop);
    }

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// How many levels this thread's hold has, leases included.
    [[nodiscard]] std::uint32_t depth() const noexcept;
    /// Of this thread's hold: see `lease`.
    [[nodiscard]] std::stop_token lost() const noexcept;
    [[nodiscard]] fencing_token token() const noexcept;

private:
    bool lock_until(clock::time_point deadline);
    std::optional<lease> acquire_until(clock::time_point deadline, std::stop_token stop);
    std::shared_ptr<detail::hold> enter(const void* level, const detail::patience& how_long,
                                        const std::stop_token& stop = {});

    std::shared_ptr<detail::session> session_;
    std::string name_;
    lease_options options_;
};

}  // namespace v0
}  // namespace holdfast
