#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

/// The processes below this one. Process numbers here are those of /proc. This may be the /proc of an
/// outer pid namespace, in which our processes have other numbers: so a number from there is never
/// given to `kill`.
namespace holdfast::cli {

struct process {
    pid_t id{};
    pid_t parent{};
    pid_t group{};
    /// Tells a process from a later one with the same id.
    std::uint64_t started{};
    /// Its first thread has ended, and its parent has not asked for the status. Other threads of it may
    /// still run.
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

/// Sends `signal` to this very process, not to a later process with the same number. False: this host
/// has no means to do so, or not enough resources.
bool send_signal(const process& target, int signal);

/// For hosts that show no complete tree: sends `signal` to all children of this process that are as new
/// as `oldest`, except those in `spared_group`. Needs neither /proc nor descriptors. Children of a
/// killed process become ours (PR_SET_CHILD_SUBREAPER), so repeating this with SIGKILL ends them all.
void signal_children(pid_t oldest, pid_t spared_group, int signal) noexcept;

}  // namespace holdfast::cli
