#include "process.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <system_error>
#include <utility>

namespace demo {

namespace {

[[noreturn]] void fail(const char* call) {
    throw std::system_error{errno, std::generic_category(), call};
}

}  // namespace

temporary_directory::temporary_directory() {
    auto pattern = (std::filesystem::temp_directory_path() / "holdfast-demo-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
        fail("cannot make a temporary directory");
    }
    path_ = pattern;
}

temporary_directory::~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

child_process::child_process(const std::function<int()>& work) : pid_{-1} {
    std::cout.flush();
    pid_ = fork();
    if (pid_ < 0) {
        fail("cannot start a process");
    }
    if (pid_ == 0) {
        int code = 1;
        try {
            code = work();
        } catch (const std::exception& error) {
            std::cerr << "  process " << getpid() << ": " << error.what() << '\n';
        }
        _exit(code);
    }
}

child_process::child_process(child_process&& other) noexcept : pid_{std::exchange(other.pid_, -1)} {}

child_process::~child_process() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
}

void child_process::signal(int number) const {
    if (::kill(pid_, number) != 0) {
        fail("cannot signal a process");
    }
}

void child_process::wait_until_stopped() const {
    int status = 0;
    if (::waitpid(pid_, &status, WUNTRACED) != pid_ || !WIFSTOPPED(status)) {
        fail("the process did not stop");
    }
}

int child_process::wait() {
    int status = 0;
    if (::waitpid(std::exchange(pid_, -1), &status, 0) < 0) {
        fail("cannot wait for a process");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

channel::channel() : ends_{-1, -1} {
    if (::pipe(ends_) != 0) {
        fail("cannot make a pipe");
    }
}

channel::~channel() {
    ::close(ends_[0]);
    ::close(ends_[1]);
}

void channel::send(const std::string& line) const {
    const auto whole = line + '\n';
    if (::write(ends_[1], whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
        fail("cannot write to a pipe");
    }
}

std::string channel::receive() const {
    std::string line;
    for (char c = 0; c != '\n';) {
        pollfd readable{ends_[0], POLLIN, 0};
        if (::poll(&readable, 1, 10'000) != 1 || ::read(ends_[0], &c, 1) != 1) {
            fail("no answer from the other process");
        }
        line += c;
    }
    line.pop_back();
    return line;
}

}  // namespace demo
