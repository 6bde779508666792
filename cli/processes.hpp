#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

/// The processes below this one. Numbers are those of /proc, which may be that of an outer pid
/// namespace and number our processes in another way than we do: a number from there is never given to
/// `kill`.
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

struct process_tree {
    std::vector<process> found;
    /// False: there may be more. /proc is not there, does not show us, or could not be read.
    bool complete{};
};

/// All processes below this one. With PR_SET_CHILD_SUBREAPER set, a process cannot leave this tree by
/// forking twice or by `setsid`.
[[nodiscard]] process_tree descendants();

/// The number under which /proc has the process that is `id` to us. Zero: unknown.
[[nodiscard]] pid_t number_in_proc(pid_t id);

/// Sends `signal` to this very process, not to one that got its number meanwhile. False: this host has
/// no means for that, or not enough resources.
bool send_signal(const process& target, int signal);

/// For where there is no complete tree: sends `signal` to all children of this process that are as new
/// as `oldest`, except those in `spared_group`. Needs neither /proc nor descriptors. Children of a
/// killed process become ours (PR_SET_CHILD_SUBREAPER), so repeating this with SIGKILL ends them all.
void signal_children(pid_t oldest, pid_t spared_group, int signal) noexcept;

}  // namespace holdfast::cli
