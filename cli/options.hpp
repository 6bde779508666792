#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/owner.hpp>
#include <holdfast/token.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command_table.hpp"

namespace holdfast::cli {

/// The options and arguments of one command line, read by the command table. Every value has the form
/// that the table asks for.
///
/// The accessors take the name of an option that the command has; for another name they throw
/// `std::logic_error`. An accessor of a value is empty when the option was not given.
class given_options {
public:
    /// Reads the words after the command's name. Throws `stop_program` with `exit_code::usage`.
    given_options(std::string command, const std::vector<std::string>& words);

    [[nodiscard]] const std::string& command() const noexcept { return command_; }
    /// Names of locks, or what stands in their place.
    [[nodiscard]] const std::vector<std::string>& arguments() const noexcept { return arguments_; }
    /// All values of an option, in their order. A switch has an empty value for each time it was given.
    [[nodiscard]] const std::vector<std::string>& all(std::string_view name) const;
    [[nodiscard]] bool has(std::string_view name) const { return !all(name).empty(); }
    [[nodiscard]] std::string text(std::string_view name) const;
    [[nodiscard]] std::optional<std::chrono::milliseconds> duration(std::string_view name) const;
    [[nodiscard]] std::optional<std::uint64_t> number(std::string_view name) const;
    [[nodiscard]] std::optional<owner_id> owner(std::string_view name) const;
    [[nodiscard]] std::optional<fencing_token> token(std::string_view name) const;

private:
    void add_argument(const std::string& text);
    [[nodiscard]] std::vector<std::string> take_arguments(const std::vector<std::string>& words);
    void read(std::vector<std::string> words);

    std::string command_;
    std::vector<std::string> arguments_;
    std::map<std::string_view, std::vector<std::string>> values_;
};

/// Why the table does not accept this value of an option; empty when it does.
[[nodiscard]] std::string problem_with(const option_entry& option, const std::string& text);

[[nodiscard]] std::optional<std::uint64_t> parse_number(const std::string& text);

/// `problem (see holdfast run --help)`; without a command the overview is named.
[[nodiscard]] std::string with_hint(const std::string& problem, const std::string& command);

/// Throws `stop_program` with `exit_code::usage`.
[[noreturn]] void refuse(const std::string& problem, const std::string& command = {});

}  // namespace holdfast::cli
