#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace holdfast::cli {

struct process {
    pid_t id{};
    pid_t parent{};
    pid_t group{};
    /// Tells a process from a later one with the same id.
    std::uint64_t started{};
    /// Its first thread ended and nobody has asked how. Others of its threads may still run.
    bool zombie{};
};

/// All processes below this one, from /proc; empty where that is not mounted. With
/// PR_SET_CHILD_SUBREAPER set, a process cannot leave this tree by forking twice or by `setsid`.
[[nodiscard]] std::vector<process> descendants();

/// Sends `signal` to this very process, not to one that got its id meanwhile. False when it could not.
bool send_signal(const process& target, int signal) noexcept;

}  // namespace holdfast::cli
