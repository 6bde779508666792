#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::interop {

/// A program that we talk to line by line through its standard input and output; its standard error
/// goes where ours goes. It dies with us, whatever happens to us.
///
/// Thread safety: `write_line` and `read_line` may run at the same time, each in one thread at a time;
/// `kill` may be called beside them, and ends them.
class child_process {
public:
    /// Throws `std::system_error` when it cannot be started. The first word is the program's path.
    explicit child_process(const std::vector<std::string>& command);
    child_process(const child_process&) = delete;
    child_process& operator=(const child_process&) = delete;
    ~child_process();

    [[nodiscard]] pid_t id() const noexcept { return id_; }
    /// False when it does not read any more.
    bool write_line(const std::string& line);
    /// Waits for a line; empty when there will be no more.
    [[nodiscard]] std::optional<std::string> read_line();
    /// The same, but throws `std::runtime_error` when the line does not come in time, or never will.
    [[nodiscard]] std::string read_line_within(std::chrono::milliseconds limit);
    /// SIGKILL, as an operating system short of memory would do it, and waits for its end.
    void kill() noexcept;

private:
    [[nodiscard]] bool readable_within(std::chrono::milliseconds limit) const;

    pid_t id_{-1};
    int channel_{-1};
    std::string received_;
};

}  // namespace holdfast::interop
