#pragma once

#include <string>
#include <system_error>
#include <type_traits>

#include <holdfast/export.hpp>

namespace holdfast {
inline namespace v0 {

/// What can go wrong. Contention is not in this list as far as the `try_` functions go: they
/// answer `false` or `std::nullopt`.
enum class errc {
    /// Somebody else holds it. Reported only where an answer needs a reason.
    busy = 1,
    /// The store cannot be reached; nothing was changed in it.
    store_unavailable,
    /// The request was sent and no answer came; the store may or may not have acted on it.
    outcome_unknown,
    /// The lease is over: its deadline passed, or the store no longer knows it. Or a latch that was
    /// waited for is gone without having opened.
    lost,
    /// Somebody released the lock by force.
    revoked,
    /// The lease reached its `max_hold`.
    max_hold_exceeded,
    /// Only the owner may do this.
    not_owner,
    /// The store refused our credentials, or they do not allow this.
    unauthorised,
    /// This store cannot give a guarantee that the caller requires.
    guarantee_not_met,
    /// The lock's name is empty, too long, not UTF-8 or holds control characters.
    invalid_name,
    /// An option is out of range.
    invalid_argument,
    /// The store address is not understood, or what it points to cannot be used.
    bad_configuration,
    /// The name is in use for another kind of lock, or with another permit limit.
    wrong_kind,
    /// The client was made by another process: make a new one after fork.
    forked,
    /// The client has been shut down.
    shut_down,
    /// The caller's stop token was triggered.
    cancelled,
    /// The store is damaged or answered something that makes no sense.
    store_error,
};

[[nodiscard]] HOLDFAST_EXPORT const std::error_category& error_category() noexcept;
[[nodiscard]] HOLDFAST_EXPORT std::error_code make_error_code(errc code) noexcept;

/// An error with the words that explain it. False when there is none.
struct HOLDFAST_EXPORT failure {
    errc code{};
    std::string detail;

    explicit operator bool() const noexcept { return code != errc{}; }
    /// Throws `std::system_error` with `what` and the detail in its text.
    [[noreturn]] void raise(const std::string& subject) const;
};

}  // namespace v0
}  // namespace holdfast

template <>
struct std::is_error_code_enum<holdfast::errc> : std::true_type {};
