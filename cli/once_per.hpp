#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/client.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/mutex.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// The name of the marker of a lock. The marker's name starts like the lock's own name, so a user who
/// may use `stock:*` may leave the marker. Where the name would get too long, a hash replaces its end.
[[nodiscard]] std::string once_per_marker(std::string_view name);

/// Whether a name is one of a marker. `holdfast run` takes no lock of such a name.
[[nodiscard]] bool is_once_per_marker(std::string_view name) noexcept;

/// What is known of the last run of a `--once-per` command that still keeps it from running.
struct earlier_run {
    /// The marker that it left. Empty: nothing keeps the command from running.
    std::optional<holder_info> marker;
    /// Why nobody can tell; empty when the answer is known.
    std::string problem;
};

/// Looks for the marker of `name`. It may be in a part of the store that does not answer.
[[nodiscard]] earlier_run find_earlier_run(client& store, const std::string& name);

/// "Not more often than once per period": a successful run leaves a marker in the store, a lease under
/// a name of its own that stays taken until the next run may start. Look at the marker and leave it
/// only while you hold the lock itself, so that runs on several hosts agree.
class once_per {
public:
    once_per(client& store, const std::string& name, std::chrono::milliseconds period);

    /// The marker of a run that was not long enough ago. Takes at most `timeout` (default: the client's
    /// `request_timeout`).
    [[nodiscard]] std::optional<holder_info> marker(
        std::optional<std::chrono::milliseconds> timeout = {});
    /// Whether a run that started then still keeps others from running.
    [[nodiscard]] bool counts(clock::time_point started) const;
    /// Whether to wait for a moment when the marker cannot be left at once.
    enum class patience : std::uint8_t { none, some };
    /// Leaves the marker for a run that started then, in place of an earlier run's. Returns an error if
    /// the store did not confirm the marker; the error has no text if only `client::shutdown` can tell
    /// the reason.
    [[nodiscard]] failure remember(clock::time_point started, patience waits);
    /// The lock that is the marker.
    [[nodiscard]] const std::string& marker_name() const noexcept { return marker_; }

private:
    [[nodiscard]] std::chrono::milliseconds rest(clock::time_point started) const;
    [[nodiscard]] std::optional<lease> take_marker(mutex& lock, patience waits);

    client& store_;
    std::string marker_;
    std::chrono::milliseconds blocked_for_;
};

}  // namespace holdfast::cli
