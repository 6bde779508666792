#include "child_process.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace holdfast::interop {

namespace {

[[noreturn]] void fail(const char* what) {
    throw std::system_error{errno, std::generic_category(), what};
}

/// Only what is safe between fork and exec in a process with threads.
[[noreturn]] void become(char* const* arguments, int channel, pid_t parent) noexcept {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
        ::_exit(98);  // it died before we asked to be told
    }
    ::dup2(channel, STDIN_FILENO);
    ::dup2(channel, STDOUT_FILENO);
    ::execv(arguments[0], arguments);
    ::_exit(99);
}

}  // namespace

child_process::child_process(const std::vector<std::string>& command) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        fail("socketpair");
    }
    std::vector<char*> arguments;
    for (const auto& word : command) {
        arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    const auto parent = ::getpid();
    id_ = ::fork();
    if (id_ == 0) {
        become(arguments.data(), ends[1], parent);
    }
    ::close(ends[1]);
    channel_ = ends[0];
    if (id_ < 0) {
        ::close(channel_);
        fail("fork");
    }
}

child_process::~child_process() {
    kill();
    ::close(channel_);
}

bool child_process::write_line(const std::string& line) {
    const auto text = line + '\n';
    // A child that was killed is an answer, not a reason to die. A line is far shorter than what the
    // socket holds, so it goes in as a whole.
    return ::send(channel_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
}

std::optional<std::string> child_process::read_line() {
    while (true) {
        if (const auto end = received_.find('\n'); end != std::string::npos) {
            auto line = received_.substr(0, end);
            received_.erase(0, end + 1);
            return line;
        }
        std::array<char, 4096> buffer{};
        const auto length = ::read(channel_, buffer.data(), buffer.size());
        if (length < 0 && errno == EINTR) {
            continue;
        }
        if (length <= 0) {
            return std::nullopt;
        }
        received_.append(buffer.data(), static_cast<std::size_t>(length));
    }
}

bool child_process::readable_within(std::chrono::milliseconds limit) const {
    pollfd source{channel_, POLLIN, 0};
    return ::poll(&source, 1, static_cast<int>(limit.count())) > 0;
}

std::string child_process::read_line_within(std::chrono::milliseconds limit) {
    if (received_.find('\n') == std::string::npos && !readable_within(limit)) {
        throw std::runtime_error{"a child process said nothing in time"};
    }
    auto line = read_line();
    if (!line) {
        throw std::runtime_error{"a child process ended without a word"};
    }
    return *line;
}

void child_process::kill() noexcept {
    if (id_ > 0) {
        ::kill(id_, SIGKILL);
        ::waitpid(id_, nullptr, 0);
        id_ = -1;
    }
}

}  // namespace holdfast::interop
