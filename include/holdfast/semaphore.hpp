#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <holdfast/clock.hpp>
#include <holdfast/detail/deadline.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

namespace holdfast::detail {
class session;
}  // namespace holdfast::detail

namespace holdfast {
inline namespace v0 {

class client;

/// At most `limit` permits held at once, wherever the holders are. A permit is a lease: it is
/// renewed while its holder lives and returns by itself when the holder dies.
///
/// Tokens rise with every grant, but several holders are in at once, so a token cannot fence one permit
/// holder off from another. There is no line: a small request may be served before a large one that
/// came earlier.
///
/// Errors: as with `mutex`. One call has at most 65 536 permits; more are refused with
/// `errc::invalid_argument`.
/// Lifetime: permits are leases. They outlive the semaphore object and the thread that took them.
/// Thread safety: all functions may be called from any thread.
///
/// Misuse:
///     users of one name have different limits          `errc::wrong_kind` while permits are out
///     waits for more permits than its own leave over   waits for itself
class HOLDFAST_EXPORT semaphore {
public:
    semaphore(client& owner, std::string name, std::uint32_t limit, lease_options options = {});
    semaphore(const semaphore&) = delete;
    semaphore& operator=(const semaphore&) = delete;
    ~semaphore();

    /// Waits until `permits` of them are free together.
    [[nodiscard]] lease acquire(std::uint32_t permits = 1);
    /// Empty when `stop` was triggered first.
    [[nodiscard]] std::optional<lease> acquire_unless_stopped(std::stop_token stop) {
        return acquire_unless_stopped(1, std::move(stop));
    }
    [[nodiscard]] std::optional<lease> acquire_unless_stopped(std::uint32_t permits,
                                                              std::stop_token stop);
    [[nodiscard]] std::optional<lease> try_acquire(std::uint32_t permits = 1);
    template <class Rep, class Period>
    [[nodiscard]] std::optional<lease> try_acquire_for(const std::chrono::duration<Rep, Period>& wait,
                                                       std::stop_token stop = {}) {
        return try_acquire_for(1, wait, std::move(stop));
    }
    template <class Rep, class Period>
    [[nodiscard]] std::optional<lease> try_acquire_for(std::uint32_t permits,
                                                       const std::chrono::duration<Rep, Period>& wait,
                                                       std::stop_token stop = {}) {
        return acquire_until(permits, detail::deadline_after(wait), std::move(stop));
    }
    template <class Clock, class Duration>
    [[nodiscard]] std::optional<lease> try_acquire_until(
        const std::chrono::time_point<Clock, Duration>& until, std::stop_token stop = {}) {
        return try_acquire_until(1, until, std::move(stop));
    }
    template <class Clock, class Duration>
    [[nodiscard]] std::optional<lease> try_acquire_until(
        std::uint32_t permits, const std::chrono::time_point<Clock, Duration>& until,
        std::stop_token stop = {}) {
        return detail::attempt_until(
            until, [&](clock::time_point deadline) { return acquire_until(permits, deadline, stop); },
            stop);
    }

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] std::uint32_t limit() const noexcept { return limit_; }

private:
    std::optional<lease> acquire_until(std::uint32_t permits, clock::time_point deadline,
                                       std::stop_token stop);

    std::shared_ptr<detail::session> session_;
    std::string name_;
    std::uint32_t limit_;
    lease_options options_;
};

}  // namespace v0
}  // namespace holdfast
