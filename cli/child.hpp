#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "death_watch.hpp"
#include "signals.hpp"
#include "terminal.hpp"

namespace holdfast::cli {

struct child_request {
    const std::vector<std::string>& command;
    /// `NAME=value`, all of them.
    const std::vector<std::string>& environment;
    const signal_source& signals;
    const terminal& tty;
};

struct spawned_child {
    pid_t id{};
    /// Why the command could not be executed; the child is already reaped then. Zero: it runs.
    int exec_error{};
    /// Over the command's process group.
    death_watch watch{};
};

/// Starts the command in a process group of its own, without a shell in between. It is killed when
/// the calling *thread* ends, so call this from one that lives as long as the program. Throws
/// `std::system_error`, and starts nothing, when there is no descriptor or no process to be had.
[[nodiscard]] spawned_child spawn(const child_request& request);

/// This process's environment with `overrides` (`NAME=value`) in place of what was inherited, and
/// without the variables named in `withheld`.
[[nodiscard]] std::vector<std::string> merge_environment(const std::vector<std::string>& overrides,
                                                         const std::vector<std::string_view>& withheld);

}  // namespace holdfast::cli
