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

/// Many readers or one writer. Meets the standard's SharedTimedLockable, so `std::shared_lock` and
/// `std::unique_lock` work with it. Every reader has a lease of its own, so a reader that dies does
/// not keep writers out longer than its ttl.
///
///                         │ free    │ n readers                     │ a writer
///     lock                │ writer  │ waits                         │ waits
///     lock_shared         │ reader  │ one more reader               │ waits
///     lease::downgrade    │ –       │ –                             │ the writer becomes the only
///     reader lease::try_upgrade  │ –       │ writer if n = 1, else nothing │ –
///
/// Only a lease (`acquire`, `acquire_shared`) can be converted: a `std::unique_lock` could not learn
/// that it has become a reader. There is no upgrade that waits: two readers that wait to be the only
/// one would wait forever. A writer gets a new, larger token; a downgraded writer keeps its token.
///
/// Readers are let in while a writer waits: it may starve if there is always a reader. Let readers
/// pause, or pass a `mutex` that the writer holds while it waits.
///
/// Misuse, threads and errors: as with `mutex`, for readers and writers alike. A reader that wants to
/// write, or the other way round, waits for itself.
class HOLDFAST_EXPORT shared_mutex {
public:
    shared_mutex(client& owner, std::string name, lease_options options = {},
                 other_kinds others = other_kinds::refuse);
    shared_mutex(const shared_mutex&) = delete;
    shared_mutex& operator=(const shared_mutex&) = delete;
    ~shared_mutex();

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

    void lock_shared();
    [[nodiscard]] bool lock_shared_unless_stopped(std::stop_token stop);
    [[nodiscard]] bool try_lock_shared();
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& wait) {
        return lock_shared_until(detail::deadline_after(wait));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& until) {
        return detail::attempt_until(
            until, [this](clock::time_point deadline) { return lock_shared_until(deadline); });
    }
    void unlock_shared() noexcept;

    [[nodiscard]] lease acquire();
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
    [[nodiscard]] lease acquire_shared();
    [[nodiscard]] std::optional<lease> acquire_shared_unless_stopped(std::stop_token stop);
    [[nodiscard]] std::optional<lease> try_acquire_shared();
    template <class Rep, class Period>
    [[nodiscard]] std::optional<lease> try_acquire_shared_for(
        const std::chrono::duration<Rep, Period>& wait, std::stop_token stop = {}) {
        return acquire_shared_until(detail::deadline_after(wait), std::move(stop));
    }
    template <class Clock, class Duration>
    [[nodiscard]] std::optional<lease> try_acquire_shared_until(
        const std::chrono::time_point<Clock, Duration>& until, std::stop_token stop = {}) {
        return detail::attempt_until(
            until, [&](clock::time_point deadline) { return acquire_shared_until(deadline, stop); },
            stop);
    }

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// Of the writer's hold taken by `lock`: see `lease`.
    [[nodiscard]] std::stop_token lost() const noexcept;
    [[nodiscard]] fencing_token token() const noexcept;
    /// Of the reader's hold taken by `lock_shared`.
    [[nodiscard]] std::stop_token lost_shared() const noexcept;

private:
    bool lock_until(clock::time_point deadline);
    bool lock_shared_until(clock::time_point deadline);
    std::optional<lease> acquire_until(clock::time_point deadline, std::stop_token stop);
    std::optional<lease> acquire_shared_until(clock::time_point deadline, std::stop_token stop);

    std::shared_ptr<detail::session> session_;
    std::string name_;
    lease_options options_;
    lock_kind kind_;
    detail::facade_holds writers_;
    detail::facade_holds readers_;
};

}  // namespace v0
}  // namespace holdfast
