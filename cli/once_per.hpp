#pragma once

#include <chrono>
#include <holdfast/client.hpp>
#include <holdfast/clock.hpp>
#include <optional>
#include <string>

namespace holdfast::cli {

/// "Not more often than once per period": a successful run leaves a marker in the store, a lease under
/// a name of its own that stays taken until the next run may start. Look at it and leave it only while
/// the lock itself is held, so that runs on several hosts agree.
class once_per {
public:
    once_per(client& store, const std::string& name, std::chrono::milliseconds period);

    /// The marker of a run that was not long enough ago.
    [[nodiscard]] std::optional<holder_info> earlier_run();
    /// Leaves the marker for a run that started then. False when the store did not confirm it.
    [[nodiscard]] bool remember(clock::time_point started);

private:
    client& store_;
    std::string marker_;
    std::chrono::milliseconds blocked_for_;
};

}  // namespace holdfast::cli
