#pragma once

#include <holdfast/error.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace holdfast::cli {

/// What the program's exit status means where it is not the command's own. The numbers are those of
/// `sysexits.h` and of shells; scripts rely on them.
enum class exit_code : int {
    success = 0,
    usage = 64,
    unavailable = 69,
    internal = 70,
    resources = 71,
    store_error = 72,
    output = 74,
    not_acquired = 75,
    lost = 76,
    unauthorised = 77,
    configuration = 78,
    not_executable = 126,
    not_found = 127,
};

[[nodiscard]] constexpr int to_status(exit_code code) noexcept {
    return static_cast<int>(code);
}

/// As shells report a process that died of a signal.
[[nodiscard]] constexpr int status_of_signal(int signal) noexcept {
    return 128 + signal;
}

/// One word for programs: `unavailable`.
[[nodiscard]] std::string_view to_word(exit_code code) noexcept;

/// The exit code for an error of the library's, or for a lack of descriptors, processes or memory;
/// `internal` for anything else.
[[nodiscard]] exit_code exit_code_for(const std::error_code& error) noexcept;

/// What the library said in an exception. An error of anything else counts as a request without an
/// answer.
[[nodiscard]] failure failure_behind(const std::system_error& error);

/// Ends the program with a code and one line that says what to do.
class stop_program : public std::runtime_error {
public:
    stop_program(exit_code code, const std::string& message)
        : std::runtime_error{message}, code_{code} {}
    [[nodiscard]] exit_code code() const noexcept { return code_; }

private:
    exit_code code_;
};

/// What ended a command: its exit code and the line for people.
struct problem {
    exit_code code{exit_code::internal};
    std::string message;
};

/// Describes the exception being handled. Call it from a catch block.
[[nodiscard]] problem describe_current_exception();

}  // namespace holdfast::cli
