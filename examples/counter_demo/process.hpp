#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>

namespace demo {

/// A directory that vanishes with the object.
class temporary_directory {
public:
    temporary_directory();
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    ~temporary_directory();

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

/// A child process that runs `work`; killed and reaped with the object.
class child_process {
public:
    explicit child_process(const std::function<int()>& work);
    child_process(child_process&& other) noexcept;
    child_process& operator=(child_process&&) = delete;
    child_process(const child_process&) = delete;
    child_process& operator=(const child_process&) = delete;
    ~child_process();

    void signal(int number) const;
    /// Waits until the kernel reports it as stopped.
    void wait_until_stopped() const;
    /// Its exit code, or -1 when it was killed.
    int wait();
    [[nodiscard]] pid_t pid() const noexcept { return pid_; }

private:
    pid_t pid_;
};

/// Lines from one process to another.
class channel {
public:
    channel();
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel();

    void send(const std::string& line) const;
    /// Throws when nothing comes for ten seconds.
    [[nodiscard]] std::string receive() const;

private:
    int ends_[2];
};

}  // namespace demo
