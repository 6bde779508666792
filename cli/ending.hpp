#pragma once

#include <chrono>
#include <holdfast/clock.hpp>
#include <optional>
#include <string>

namespace holdfast::cli {

/// When a command is told to end, and when it is killed, so that it is gone before its lease ends. Both
/// times follow from `valid_until`, which every renewal moves on.
///
///     last renewal ──────────▶ TERM ──(grace)──▶ KILL ──(slack)──▶ valid_until
struct ending_terms {
    std::chrono::milliseconds grace{};
    /// Time for the kernel to end the killed processes, and for us to reap them.
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

/// A quarter of `hold`, at most ten seconds. `hold` is the ttl, or `--max-hold` if that is shorter.
[[nodiscard]] std::chrono::milliseconds default_grace(std::chrono::milliseconds hold) noexcept;

/// The terms for a ttl. Throws `stop_program` with `exit_code::usage` when the grace does not fit: the
/// first renewal is due after a third of the ttl, and if it fails, there must be time for another one
/// before the command is told to end.
[[nodiscard]] ending_terms make_ending_terms(std::chrono::milliseconds ttl,
                                             std::optional<std::chrono::milliseconds> grace,
                                             std::optional<std::chrono::milliseconds> max_hold);

}  // namespace holdfast::cli
