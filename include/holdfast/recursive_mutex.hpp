#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include <holdfast/clock.hpp>
#include <holdfast/detail/deadline.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

namespace holdfast::detail {
class hold;
class session;
}  // namespace holdfast::detail

namespace holdfast {
inline namespace v0 {

class client;

/// A `mutex` that its thread may lock again. Only the first `lock` and the last `unlock` talk to the
/// store; what lies between is counted here. Meets the standard's TimedLockable.
///
/// Ownership is by client, name and thread, whatever object is used: do not use it where work moves
/// between threads. Objects of one name may be locked one inside the other and unlocked in any order;
/// the terms of the first `lock` count. Another client, also in the same thread, is somebody else, and
/// so is a `mutex` of the same name. Locking again after the hold was lost throws the reason
/// (`errc::lost`, …): a nested critical section must not start on a lock that somebody else may have.
///
/// Misuse:
///     unlocked by another thread, or without a hold   aborts
///     its thread ended                                all that the thread had is lost and given back
///     destroyed while locked                          what was locked through this object is unlocked;
///                                                     if nothing is left, the hold is lost, as with
///                                                     `mutex`
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

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// How often this thread has locked it and not unlocked it yet.
    [[nodiscard]] std::uint32_t depth() const noexcept;
    /// Of this thread's hold: see `lease`.
    [[nodiscard]] std::stop_token lost() const noexcept;
    [[nodiscard]] fencing_token token() const noexcept;

private:
    bool lock_until(clock::time_point deadline);
    bool enter_again();
    bool entered(std::shared_ptr<detail::hold> taken);

    std::shared_ptr<detail::session> session_;
    std::string name_;
    lease_options options_;
};

}  // namespace v0
}  // namespace holdfast
