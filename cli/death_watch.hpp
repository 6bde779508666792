#pragma once

#include <sys/types.h>

#include "descriptor.hpp"

namespace holdfast::cli {

/// Kills the process group of a command when this process dies.
///
/// PR_SET_PDEATHSIG is not enough: the kernel forgets it when the command changes its user, and it says
/// nothing about what the command has started. So a second process in the command's group has the
/// reading end of a pipe whose only writing end is here. When that is closed, it kills its own group.
/// As long as it is a member, no other group can get the number.
///
/// `wait` and `waitpid` do not show this process: it has no exit signal.
class death_watch {
public:
    /// Watches nothing.
    death_watch() noexcept = default;
    /// Throws `std::system_error` when there is no descriptor or no process to be had.
    death_watch(pid_t group, descriptor reader, descriptor writer);
    death_watch(death_watch&& other) noexcept;
    death_watch& operator=(death_watch&& other) noexcept;
    ~death_watch() { end(); }

    /// From now on the group outlives this process.
    void end() noexcept;

private:
    descriptor writer_;
    pid_t id_{};
};

}  // namespace holdfast::cli
