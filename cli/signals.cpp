#include "signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

namespace holdfast::cli {

namespace {

constexpr std::array taken{SIGHUP,  SIGINT,   SIGQUIT, SIGTERM, SIGUSR1,
                           SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT, SIGCHLD};

[[nodiscard]] bool is_ignored(int signal) noexcept {
    struct sigaction current {};
    return sigaction(signal, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
           current.sa_handler == SIG_IGN;
}

void set_handler(int signal, void (*handler)(int), struct sigaction* before = nullptr) noexcept {
    struct sigaction action {};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, before);
}

void unblock(int signal) noexcept {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void block(int signal) noexcept {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

signal_source::signal_source() {
    // An inherited "ignore" would make the kernel reap the command behind our back.
    set_handler(SIGCHLD, SIG_DFL);
    // A closed standard error must not end the program while the command runs.
    set_handler(SIGPIPE, SIG_IGN, &inherited_pipe_);
    // A store that reaches `ulimit -f` gets an error, and says so. The signal would end the program.
    set_handler(SIGXFSZ, SIG_IGN, &inherited_file_size_);
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int signal : taken) {
        if (!is_ignored(signal)) {
            sigaddset(&wanted, signal);
        }
    }
    auto blocked = wanted;
    sigaddset(&blocked, SIGTTOU);  // for tcsetpgrp from the background
    pthread_sigmask(SIG_BLOCK, &blocked, &inherited_mask_);
    descriptor_ = checked(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
}

std::optional<int> signal_source::next() const noexcept {
    signalfd_siginfo info{};
    if (::read(descriptor_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
        return std::nullopt;
    }
    return static_cast<int>(info.ssi_signo);
}

void signal_source::restore_for_child() const noexcept {
    sigaction(SIGPIPE, &inherited_pipe_, nullptr);
    sigaction(SIGXFSZ, &inherited_file_size_, nullptr);
    sigprocmask(SIG_SETMASK, &inherited_mask_, nullptr);
}

bool ends_waiting(int signal) noexcept {
    return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM;
}

bool stop_here() noexcept {
    unblock(SIGTSTP);
    raise(SIGTSTP);
    block(SIGTSTP);
    // If somebody sent SIGCONT, it stays pending for the signal source.
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
}

void die_with_group_of(int signal) noexcept {
    kill(0, signal);
    unblock(signal);
}

}  // namespace holdfast::cli
