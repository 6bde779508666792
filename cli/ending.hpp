#pragma once

#include <chrono>
#include <holdfast/clock.hpp>
#include <optional>
#include <string>

namespace holdfast::cli {

/// When a command has to be told to end, and when it is made to, so that it is gone before its lease
/// is. All of it follows from `valid_until`, which moves on with every renewal.
///
///     last renewal ──────────▶ TERM ──(grace)──▶ KILL ──(slack)──▶ valid_until
struct ending_terms {
    std::chrono::milliseconds grace{};
    /// For the kernel to end and for us to reap what was killed.
    std::chrono::milliseconds slack{};

    [[nodiscard]] clock::time_point terminate_at(clock::time_point valid_until) const noexcept {
        return valid_until - slack - grace;
    }
    /// For a command that is told to end at `now`.
    [[nodiscard]] clock::time_point kill_at(clock::time_point valid_until,
                                            clock::time_point now) const noexcept {
        const clock::time_point latest = valid_until - slack;
        const clock::time_point polite = now + grace;
        return polite < latest ? polite : latest;
    }
};

/// A quarter of the longest that a hold lasts without renewal, or at all; at most ten seconds.
[[nodiscard]] std::chrono::milliseconds default_grace(std::chrono::milliseconds hold) noexcept;

/// The terms for a ttl. Throws `stop_program` with `exit_code::usage` when the grace does not
/// fit: a renewal is only tried a third into the ttl, and one that fails should be tried again before
/// the command is told to end.
[[nodiscard]] ending_terms make_ending_terms(std::chrono::milliseconds ttl,
                                             std::optional<std::chrono::milliseconds> grace,
                                             std::optional<std::chrono::milliseconds> max_hold);

}  // namespace holdfast::cli
