#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <holdfast/clock.hpp>
#include <holdfast/detail/deadline.hpp>
#include <holdfast/detail/facade.hpp>
#include <holdfast/export.hpp>
#include <holdfast/info.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

namespace holdfast::detail {
class session;
}  // namespace holdfast::detail

namespace holdfast {
inline namespace v0 {

class client;
class segmented_stock;

/// An exclusive lock with a name, held across processes and hosts as far as the store reaches.
/// Meets the standard's TimedLockable, so `std::scoped_lock`, `std::unique_lock` and
/// `std::condition_variable_any` work with it.
///
///             │ free        │ held by somebody      │ held, and lost
///     lock    │ held        │ waits                 │ (as free, once the store agrees)
///     unlock  │ aborts      │ free                  │ forgets it; observers hear `lost`
///
/// Not re-entrant: a thread that locks twice waits for itself. Threads waiting for one name in one
/// process are served in order (one that comes while the first of them wakes up may go before it, a
/// few times); between processes the store decides.
///
/// The standard's wrappers cannot learn that a lock was lost. Where correctness matters use a
/// `lease` (`acquire`, `try_acquire`, `try_acquire_for`), or look at `lost()` and use `token()`.
///
/// Errors: a busy lock is `false` or `std::nullopt`; everything else throws `std::system_error`, and
/// then nothing is held. A deadline and a stop token end a call also while the store does not answer;
/// what the store still grants is given back.
/// Thread safety: like `std::mutex`, except that any thread may unlock.
///
/// Misuse:
///     locked twice by a thread   waits for itself; `try_lock` says false
///     unlocked without a hold    aborts
///     its thread ended           stays locked: another thread may unlock it
///     destroyed while locked     its hold is lost (observers hear it; `lost()` is triggered on the
///                                thread that destroys it) and given back in the background
class HOLDFAST_EXPORT mutex {
public:
    /// No I/O. Throws `std::system_error` when the name or the options make no sense.
    mutex(client& owner, std::string name, lease_options options = {});
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;
    ~mutex();

    void lock();
    /// False when `stop` was triggered first.
    [[nodiscard]] bool lock_unless_stopped(std::stop_token stop);
    /// Asks once, waits for nobody.
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
    /// Stops renewal, then tells the store and waits for its word, at most `release_timeout`.
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
    /// Of the hold taken by `lock`: see `lease`. Without a hold: a token that never triggers.
    [[nodiscard]] std::stop_token lost() const noexcept;
    /// Of the hold taken by `lock`; zero without one.
    [[nodiscard]] fencing_token token() const noexcept;

protected:
    mutex(client& owner, std::string name, lease_options options, lock_kind kind);

private:
    friend class segmented_stock;

    bool lock_until(clock::time_point deadline);
    std::optional<lease> acquire_until(clock::time_point deadline, std::stop_token stop);
    /// Asks once, as `try_acquire` does, and waits for the answer until the deadline at most.
    std::optional<lease> ask_once(std::optional<clock::time_point> deadline, std::stop_token stop);

    std::shared_ptr<detail::session> session_;
    std::string name_;
    lease_options options_;
    lock_kind kind_;
    detail::facade_holds holds_;
};

}  // namespace v0
}  // namespace holdfast
