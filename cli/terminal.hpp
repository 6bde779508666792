#pragma once

#include <sys/types.h>

#include "descriptor.hpp"

namespace holdfast::cli {

/// The controlling terminal, if there is one, and which process group may read from it.
///
/// The command runs in a group of its own. Without the terminal it could not read from it, and would
/// not get Ctrl-C and Ctrl-Z; so it is lent the terminal for as long as it runs.
///
/// SIGTTOU has to be blocked by the caller.
class terminal {
public:
    terminal() noexcept;

    [[nodiscard]] bool present() const noexcept { return static_cast<bool>(tty_); }
    /// Whether our own group is in the foreground.
    [[nodiscard]] bool is_ours() const noexcept;
    [[nodiscard]] bool belongs_to(pid_t group) const noexcept;
    /// Whether a command should have the terminal from the start. Not when its output goes into a pipe:
    /// then the reader of the pipe (a pager) may want the terminal, and the command gets it when it
    /// asks.
    [[nodiscard]] bool should_be_lent() const noexcept;
    /// Async-signal-safe.
    void lend_to(pid_t group) const noexcept;
    /// Takes the terminal back only if `group` has it; a shell that has taken it meanwhile keeps it.
    void take_back_from(pid_t group) const noexcept;

private:
    descriptor tty_;
};

}  // namespace holdfast::cli
