#include "child.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

#include "exit_code.hpp"

namespace holdfast::cli {

namespace {

[[nodiscard]] std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (const auto& text : texts) {
        pointers.push_back(const_cast<char*>(text.c_str()));
    }
    pointers.push_back(nullptr);
    return pointers;
}

struct pipe_ends {
    descriptor reader;
    descriptor writer;
};

[[noreturn]] void fail(const char* call) {
    throw std::system_error{errno, std::generic_category(), call};
}

[[nodiscard]] pipe_ends make_pipe() {
    int ends[2]{};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        fail("pipe");
    }
    return {descriptor{ends[0]}, descriptor{ends[1]}};
}

struct prepared_child {
    std::vector<char*> arguments;
    std::vector<char*> environment;
    pid_t parent{};
    int report{};
    /// Has one byte for the child when everything is ready for the command, and ends when the parent
    /// does.
    const pipe_ends& life;
    bool lend_terminal{};
};

/// False: the parent died before.
[[nodiscard]] bool wait_for_start(const pipe_ends& life) noexcept {
    ::close(life.writer.get());
    char start{};
    ssize_t length = 0;
    do {
        length = ::read(life.reader.get(), &start, sizeof start);
    } while (length < 0 && errno == EINTR);
    return length == 1;
}

/// The child between fork and exec. Only async-signal-safe calls: other threads of the parent may
/// have held any lock when it forked.
[[noreturn]] void become(const prepared_child& prepared, const child_request& request) noexcept {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != prepared.parent || !wait_for_start(prepared.life)) {
        _exit(to_status(exit_code::internal));
    }
    if (prepared.lend_terminal) {
        request.tty.lend_to(getpid());
    }
    request.signals.restore_for_child();
    execvpe(prepared.arguments[0], prepared.arguments.data(), prepared.environment.data());
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(prepared.report, &error, sizeof error);
    _exit(to_status(exit_code::not_found));
}

/// The child's errno, or zero once exec has closed the pipe.
[[nodiscard]] int read_report(int pipe) noexcept {
    int error = 0;
    ssize_t length = 0;
    do {
        length = ::read(pipe, &error, sizeof error);
    } while (length < 0 && errno == EINTR);
    return length == static_cast<ssize_t>(sizeof error) ? error : 0;
}

/// Lets the child go on when its group is watched.
[[nodiscard]] death_watch watch_over(pid_t child, pipe_ends life) {
    const int go = life.writer.get();
    try {
        death_watch watch{child, std::move(life.reader), std::move(life.writer)};
        [[maybe_unused]] const auto written = ::write(go, "", 1);
        return watch;
    } catch (...) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        throw;
    }
}

[[nodiscard]] std::string_view name_of(std::string_view assignment) noexcept {
    return assignment.substr(0, assignment.find('='));
}

}  // namespace

spawned_child spawn(const child_request& request) {
    auto report = make_pipe();
    auto life = make_pipe();
    const prepared_child prepared{pointers_to(request.command),
                                  pointers_to(request.environment),
                                  getpid(),
                                  report.writer.get(),
                                  life,
                                  request.tty.should_be_lent()};
    const auto id = fork();
    if (id < 0) {
        fail("fork");
    }
    if (id == 0) {
        become(prepared, request);
    }
    report.writer.close();
    // In both processes, so that it is done before either goes on.
    setpgid(id, id);
    auto watch = watch_over(id, std::move(life));
    const int error = read_report(report.reader.get());
    if (error != 0) {
        waitpid(id, nullptr, 0);
        request.tty.take_back_from(id);
    }
    return {id, error, std::move(watch)};
}

std::vector<std::string> merge_environment(const std::vector<std::string>& overrides,
                                           const std::vector<std::string_view>& withheld) {
    auto merged = overrides;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const auto same = [entry](std::string_view one) { return name_of(one) == name_of(*entry); };
        if (std::none_of(overrides.begin(), overrides.end(), same) &&
            std::none_of(withheld.begin(), withheld.end(), same)) {
            merged.emplace_back(*entry);
        }
    }
    return merged;
}

}  // namespace holdfast::cli
