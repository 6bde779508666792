#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// What tests need to run real servers: processes that do not outlive the test program, free ports,
/// directories that go away. Everything that waits has a deadline.
namespace holdfast::testing_support {

/// For everything that a healthy server does in a moment, on a machine that has other things to do.
inline constexpr std::chrono::seconds server_patience{30};

/// Asks again and again until `condition` holds; whether it did in time.
[[nodiscard]] bool became_true(const std::function<bool()>& condition,
                               std::chrono::milliseconds limit = server_patience);
/// The same, and throws `std::runtime_error` if it did not.
void wait_until(const std::string& what, const std::function<bool()>& condition,
                std::chrono::milliseconds limit = server_patience);

[[nodiscard]] std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view text);

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

/// A port on the loopback interface, below those that the system hands out by itself, that nobody
/// listens on now. The port 10000 above it, which belongs to it in a cluster, is free as well.
[[nodiscard]] std::uint16_t free_port();

/// A child that is killed when the test program ends, however it ends.
class server_process {
public:
    /// Standard output and error are appended to `output`.
    server_process(const std::vector<std::string>& command, const std::filesystem::path& output);
    server_process(const server_process&) = delete;
    server_process& operator=(const server_process&) = delete;
    ~server_process();

    [[nodiscard]] pid_t pid() const noexcept { return pid_; }
    [[nodiscard]] bool running();
    void signal(int number) const;
    /// With SIGSTOP; all its threads have stopped when it returns.
    void stop() const;
    /// Throws when it has not ended in time.
    void wait_for_end(std::chrono::milliseconds limit = server_patience);
    /// Kills it if it runs, and returns when it is gone.
    void end_now() noexcept;

private:
    pid_t pid_{-1};
    bool ended_{};
};

/// Runs a program to its end; throws with what it said when it fails.
void run_tool(const std::vector<std::string>& command);

}  // namespace holdfast::testing_support
