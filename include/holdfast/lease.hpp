#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/export.hpp>
#include <holdfast/info.hpp>
#include <holdfast/owner.hpp>
#include <holdfast/token.hpp>

namespace holdfast::detail {
class hold;
struct access;
}  // namespace holdfast::detail

namespace holdfast {
inline namespace v0 {

enum class release_outcome : std::uint8_t {
    /// The store confirmed it.
    released,
    /// The lease had ended before; somebody else may have held the lock meanwhile.
    already_lost,
    /// The store did not answer in time. It will be freed by its ttl at the latest.
    unknown,
};

[[nodiscard]] HOLDFAST_EXPORT std::string_view to_string(release_outcome outcome) noexcept;

/// The proof of holding a lock.
///
///     held ──(renewals fail)──▶ at risk ──(deadline passes, revoked, max_hold)──▶ lost
///       └────────────(release, destructor)───────────▶ empty
///
/// Ownership is by this handle, never by thread: move it, pass it to a coroutine or another thread,
/// release it anywhere.
///
/// Whether the lease is valid is decided here, by the local clock, and pessimistically: from the
/// moment *before* the last successful request to the store, plus the ttl, minus the safety margin.
/// No answer from the store is needed to find out that it is lost. A holder that was stopped past
/// its deadline learns it from the first call it makes on the lease.
///
/// Empty, also after a move: not valid; no name and a zero token; `lost()` never triggers; `check`
/// throws `errc::lost`; `release` says `already_lost`.
///
/// Errors: a lost lease says so (`loss_reason`); only `check`, conversions and `release_after` throw.
/// Lifetime: assigning to a lease gives back what it had. The end of a thread changes nothing.
/// Thread safety: distinct calls on one lease may run at the same time, except `release`, conversions,
/// moves and the destructor.
class [[nodiscard]] HOLDFAST_EXPORT lease {
public:
    /// Empty: not valid, nothing to release.
    lease() noexcept;
    lease(lease&& other) noexcept;
    lease& operator=(lease&& other) noexcept;
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    /// Releases. Waits at most `release_timeout`, never throws.
    ~lease();

    /// Held, and valid at this moment.
    explicit operator bool() const noexcept;
    [[nodiscard]] const std::string& name() const noexcept;
    [[nodiscard]] fencing_token token() const noexcept;
    [[nodiscard]] owner_id owner() const noexcept;
    [[nodiscard]] clock::time_point valid_until() const noexcept;
    /// Zero when it is lost.
    [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;
    /// Still valid, but renewals have failed for so long that loss is near.
    [[nodiscard]] bool at_risk() const noexcept;

    /// Triggered once, when the lease is lost. Callbacks run on a thread of the client's that holds
    /// no lock; they share it, so keep them short. A token taken from here is never late: if the
    /// deadline has passed, it is already triggered.
    [[nodiscard]] std::stop_token lost() const noexcept;
    /// Why, or no error while it is held. Still says so after a `release` that was `already_lost`.
    [[nodiscard]] std::error_code loss_reason() const noexcept;
    /// The same in words: who revoked it and for what reason, or what the client saw. Empty while it
    /// is held, and until the client's thread has noticed a deadline that has just passed.
    [[nodiscard]] std::string loss_detail() const;
    /// Throws `std::system_error` when the lease is lost, with `loss_detail` in its text.
    void check() const;

    /// Gives the lock back. Empty afterwards, but for `loss_reason` and `loss_detail` of a lease that
    /// was lost. On an empty lease: `already_lost`. A `recursive_mutex` gives its lock back with the
    /// last of its levels.
    release_outcome release() noexcept;
    /// Gives the lease up, but the store keeps the name taken until `after` from now, whatever
    /// becomes of this process ("not again within five minutes"). Less than zero, or more than the
    /// store's `maximum_ttl`: throws `errc::invalid_argument`, and the lease is kept.
    release_outcome release_after(std::chrono::milliseconds after);

    /// A writer's lease of a `shared_mutex` becomes a reader's, with the same token; nobody writes in
    /// between. A reader's stays one. Empty afterwards. Throws when the lease is lost, or nothing was
    /// changed, and then stays as it is; one that is of no `shared_mutex` is `errc::invalid_argument`.
    /// A store that does not answer may keep other readers out until the end.
    [[nodiscard]] lease downgrade();
    /// A reader's lease of a `shared_mutex` becomes the writer's, with a new and larger token, if it is
    /// the only reader. Nothing when others read: this lease then stays as it is. Otherwise as
    /// `downgrade`.
    [[nodiscard]] std::optional<lease> try_upgrade();

private:
    friend struct detail::access;
    explicit lease(std::shared_ptr<detail::hold> hold) noexcept;
    [[nodiscard]] const detail::hold* current() const noexcept;
    release_outcome give_back(std::chrono::milliseconds linger) noexcept;
    [[nodiscard]] failure convert(claim_mode to);

    std::shared_ptr<detail::hold> hold_;
    /// It was a level of a `recursive_mutex`, and lost before it was released.
    bool left_{};
};

}  // namespace v0
}  // namespace holdfast
