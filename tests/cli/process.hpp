#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// Real processes for tests: started, watched, and gone at the end of the test whatever happens.
/// Everything that waits has a deadline, and throws `std::runtime_error` when it passes.
namespace holdfast::cli::testing {

inline constexpr std::chrono::seconds patience{20};

/// Asks again and again until `condition` holds.
void wait_until(const std::string& what, const std::function<bool()>& condition);

[[nodiscard]] std::string read_file(const std::filesystem::path& path);
/// What the file holds once it holds a whole line, without the newline.
[[nodiscard]] std::string wait_for_line(const std::filesystem::path& path);

/// Whether there is such a process, zombies included.
[[nodiscard]] bool exists(pid_t id);
[[nodiscard]] std::int64_t epoch_now();

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

struct program_options {
    /// Set (or, when empty, removed) in the environment.
    std::map<std::string, std::string> environment{};
    /// What standard input holds. Without it, standard input stays open and empty until `close_input`.
    std::optional<std::string> input{};
    /// Started with this signal ignored, as by `nohup`.
    int ignored_signal{};
    std::filesystem::path working_directory{};
    /// Called in the new process at last, to change what it finds (its descriptors, say).
    std::function<void()> prepare{};
};

/// A program with standard output and error going to files.
class program {
public:
    explicit program(const std::vector<std::string>& command, const program_options& options = {});
    program(const program&) = delete;
    program& operator=(const program&) = delete;
    /// Kills it if it still runs.
    ~program();

    [[nodiscard]] pid_t id() const noexcept { return id_; }
    void signal(int number) const;
    void close_input();
    void wait_for_output(const std::string& text) const;
    void wait_for_errors(const std::string& text) const;
    /// Its exit status as a shell would show it: 128+n for a signal.
    int wait();

    [[nodiscard]] std::string output() const { return read_file(files_.path() / "out"); }
    [[nodiscard]] std::string errors() const { return read_file(files_.path() / "err"); }
    /// The last line on standard error.
    [[nodiscard]] std::string last_error_line() const;

private:
    temporary_directory files_;
    int input_{-1};
    pid_t id_{};
    std::optional<int> status_;
};

/// A program on a terminal of its own.
class terminal_program {
public:
    explicit terminal_program(const std::vector<std::string>& command,
                              const std::map<std::string, std::string>& environment = {});
    terminal_program(const terminal_program&) = delete;
    terminal_program& operator=(const terminal_program&) = delete;
    ~terminal_program();

    [[nodiscard]] pid_t id() const noexcept { return id_; }
    void type(const std::string& text) const;
    /// Waits for text that appears after everything waited for before.
    void wait_for(const std::string& text);
    int wait();
    [[nodiscard]] const std::string& screen() const noexcept { return screen_; }

private:
    void read_some();

    int terminal_{-1};
    pid_t id_{};
    std::optional<int> status_;
    std::string screen_;
    std::size_t seen_{};
};

}  // namespace holdfast::cli::testing
