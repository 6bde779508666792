#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <holdfast/clock.hpp>
#include <holdfast/detail/deadline.hpp>
#include <holdfast/detail/facade.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

namespace holdfast::detail {
class joint_hold;
struct joint_target;
}  // namespace holdfast::detail

namespace holdfast {
inline namespace v0 {

class client;

/// How the release of one name of a `multi_lease` went.
struct member_release {
    std::string store;
    std::string name;
    release_outcome outcome{release_outcome::unknown};
};

struct HOLDFAST_EXPORT multi_release {
    std::vector<member_release> members;

    /// `already_lost` if that is any of them, or else `unknown`, or else `released`.
    [[nodiscard]] release_outcome worst() const noexcept;
};

/// The proof of holding several locks at once. It is valid as long as all of them are, and what is
/// said of a `lease` holds for it: validity is decided here, by the clock; ownership is by handle; an
/// empty one says so everywhere.
///
/// Thread safety: as with `lease`.
class [[nodiscard]] HOLDFAST_EXPORT multi_lease {
public:
    struct member {
        std::string store;
        std::string name;
        fencing_token token;
    };

    /// Empty: not valid, nothing to release.
    multi_lease() noexcept;
    multi_lease(multi_lease&& other) noexcept;
    multi_lease& operator=(multi_lease&& other) noexcept;
    multi_lease(const multi_lease&) = delete;
    multi_lease& operator=(const multi_lease&) = delete;
    /// Releases. Waits at most `release_timeout` for all together, never throws.
    ~multi_lease();

    /// All of them held, and valid at this moment.
    explicit operator bool() const noexcept;
    /// In the order in which they were taken: by store, then by name.
    [[nodiscard]] std::vector<member> members() const;
    /// Zero when no such name is among them. Of two stores with this name: that of the first.
    [[nodiscard]] fencing_token token(std::string_view name) const noexcept;
    /// When the first of them ends, as far as is known now.
    [[nodiscard]] clock::time_point valid_until() const noexcept;
    /// Zero when any of them is lost.
    [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;

    /// Triggered once, when the first of them is lost. See `lease::lost`.
    [[nodiscard]] std::stop_token lost() const noexcept;
    /// Why the first that is lost is so, or no error while all are held. Still says so after a
    /// `release` that found one `already_lost`.
    [[nodiscard]] std::error_code loss_reason() const noexcept;
    /// Throws `std::system_error` that names the lock when any of them is lost.
    void check() const;

    /// Gives all of them back, at once, whatever becomes of each, and tells how it went. What the
    /// store did not answer in time is given back in the background. Empty afterwards.
    multi_release release() noexcept;

    /// For the library.
    explicit multi_lease(std::shared_ptr<detail::joint_hold> held) noexcept;

private:
    std::shared_ptr<detail::joint_hold> held_;
};

/// Several locks, held all together or not at all. Each name is an ordinary `mutex`: whoever has one of
/// them keeps the multi-lock out, and is kept out by it. Meets the standard's TimedLockable.
///
///             │ all free     │ some held by somebody        │ held, and any of them lost
///     lock    │ all held     │ waits; holds those before it │ (as free, once the stores agree)
///     unlock  │ aborts       │ all free                     │ forgets it; the others are free
///
/// No deadlock: names are sorted (by the store's identity, then by name), doubles are dropped, and
/// somebody who waits for one holds only names before it. So any number of multi-locks, in any order of
/// names, in any processes, cannot wait for each other in a circle, as long as all of them call a store
/// by the same address. Who holds a `mutex` and then waits for a multi-lock is not in that order.
///
/// One deadline and one stop token count for everything. When either comes, or anything fails, what was
/// taken so far is given back; the caller waits a moment for that, and what the store has not confirmed
/// by then goes on in the background.
///
/// Where the store can take all names in one step (Redis: those in one slot) an uncontended multi-lock
/// costs one request. See docs/multi-lock.md.
///
/// Errors: a busy lock is `false` or `std::nullopt`; everything else throws `std::system_error`, and
/// then nothing is held.
/// Thread safety: as with `mutex`.
///
/// Misuse: as with `mutex`, and
///     destroyed while locked                         all of its locks are lost and given back
///     a holder of a `mutex` waits for a multi-lock   may wait for itself, or in a circle
class HOLDFAST_EXPORT multi_lock {
public:
    struct member {
        client& store;
        std::string name;
    };

    /// No I/O. Throws `std::system_error` when a name or the options make no sense, or there is no
    /// name.
    multi_lock(client& store, std::vector<std::string> names, lease_options options = {});
    explicit multi_lock(const std::vector<member>& members, lease_options options = {});
    multi_lock(const multi_lock&) = delete;
    multi_lock& operator=(const multi_lock&) = delete;
    ~multi_lock();

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
    void unlock() noexcept;

    [[nodiscard]] multi_lease acquire();
    /// Empty when `stop` was triggered first.
    [[nodiscard]] std::optional<multi_lease> acquire_unless_stopped(std::stop_token stop);
    [[nodiscard]] std::optional<multi_lease> try_acquire();
    template <class Rep, class Period>
    [[nodiscard]] std::optional<multi_lease> try_acquire_for(
        const std::chrono::duration<Rep, Period>& wait, std::stop_token stop = {}) {
        return acquire_until(detail::deadline_after(wait), std::move(stop));
    }
    template <class Clock, class Duration>
    [[nodiscard]] std::optional<multi_lease> try_acquire_until(
        const std::chrono::time_point<Clock, Duration>& until, std::stop_token stop = {}) {
        return detail::attempt_until(
            until, [&](clock::time_point deadline) { return acquire_until(deadline, stop); }, stop);
    }

    /// How many locks these are, doubles dropped.
    [[nodiscard]] std::size_t size() const noexcept;
    /// In the order in which they are taken.
    [[nodiscard]] std::vector<std::string> names() const;
    /// Of the hold taken by `lock`: see `multi_lease`. Without a hold: a token that never triggers.
    [[nodiscard]] std::stop_token lost() const noexcept;

private:
    bool lock_until(clock::time_point deadline);
    bool locked(std::shared_ptr<detail::joint_hold> taken);
    std::optional<multi_lease> acquire_until(clock::time_point deadline, std::stop_token stop);

    std::vector<detail::joint_target> targets_;
    lease_options options_;
    detail::taken_list<detail::joint_hold> holds_;
};

}  // namespace v0
}  // namespace holdfast
