#include "death_watch.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace holdfast::cli {

namespace {

/// Closes all other descriptors, which would otherwise stay open as long as this process lives.
/// Kernels before 5.9 have no such call: there they stay open until the command ends.
void close_all_but([[maybe_unused]] int number) noexcept {
#ifdef SYS_close_range
    if (number > 0) {
        ::syscall(SYS_close_range, 0, number - 1, 0);
    }
    ::syscall(SYS_close_range, number + 1, ~0U, 0);
#endif
}

/// Only async-signal-safe calls, as after every fork of a process with threads.
[[noreturn]] void watch(pid_t group, int reader, int writer) noexcept {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    ::close(writer);
    close_all_but(reader);
    if (setpgid(0, group) != 0) {
        ::_exit(1);
    }
    pollfd end{reader, 0, 0};  // nothing but the end of the last writer
    while (::poll(&end, 1, -1) <= 0) {
    }
    ::kill(0, SIGKILL);
    ::_exit(0);
}

}  // namespace

death_watch::death_watch(pid_t group, descriptor reader, descriptor writer)
    : writer_{std::move(writer)},
      // A fork without a signal at its end. Zero for all arguments: their order differs among machines.
      id_{static_cast<pid_t>(::syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L))} {
    if (id_ == 0) {
        watch(group, reader.get(), writer_.get());
    }
    if (id_ < 0) {
        throw std::system_error{errno, std::generic_category(), "clone"};
    }
    setpgid(id_, group);  // it does so itself, but perhaps later
}

death_watch::death_watch(death_watch&& other) noexcept
    : writer_{std::move(other.writer_)}, id_{std::exchange(other.id_, 0)} {}

death_watch& death_watch::operator=(death_watch&& other) noexcept {
    std::swap(writer_, other.writer_);
    std::swap(id_, other.id_);
    return *this;
}

void death_watch::end() noexcept {
    if (id_ > 0) {
        ::kill(id_, SIGKILL);
        ::waitpid(std::exchange(id_, 0), nullptr, __WALL);
    }
    writer_.close();
}

}  // namespace holdfast::cli
