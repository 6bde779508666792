#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <optional>

#include "descriptor.hpp"

namespace holdfast::cli {

/// The signals that concern the command, turned into something to poll for.
///
/// Make it before any thread is started: threads inherit the mask, and a signal that found a thread
/// without it would end the program. What was ignored when the program started (`nohup`, background
/// jobs of simple shells) stays ignored, here and in the command.
class signal_source {
public:
    signal_source();
    signal_source(const signal_source&) = delete;
    signal_source& operator=(const signal_source&) = delete;

    /// Readable while a signal waits.
    [[nodiscard]] int readable() const noexcept { return descriptor_.get(); }
    /// The next signal, if there is one. Never waits.
    [[nodiscard]] std::optional<int> next() const noexcept;

    /// Puts back what the program was started with. For the child, between fork and exec.
    void restore_for_child() const noexcept;

private:
    descriptor descriptor_;
    sigset_t inherited_mask_{};
    struct sigaction inherited_pipe_ {};
    struct sigaction inherited_file_size_ {};
};

/// Whether a signal ends the wait for a lock.
[[nodiscard]] bool ends_waiting(int signal) noexcept;

/// Lets SIGTSTP do to this process what it does by default. Returns when the process goes on; false
/// when it was not stopped, because there is no shell that could continue it.
bool stop_here() noexcept;

/// Dies of `signal` together with the rest of the process group, as if the terminal had sent it.
/// Returns if the signal is ignored.
void die_with_group_of(int signal) noexcept;

}  // namespace holdfast::cli
