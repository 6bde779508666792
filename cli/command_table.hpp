#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "exit_code.hpp"

/// The command line in one table. The parser, `--help`, the man page and the completions are made from
/// it, so none of them can know an option that another does not.
///
/// Longer texts are written as follows. An empty line separates paragraphs. A line that starts with
/// four spaces is shown as it is. A line `- TERM | text` is an entry of a list.
namespace holdfast::cli {

struct option_entry {
    std::string_view name;      ///< `--verbose`
    std::string_view letter;    ///< `-v`; empty: it has none
    std::string_view value;     ///< `DURATION`; empty: a switch
    std::string_view commands;  ///< the commands that have it, separated by spaces
    std::string_view group;     ///< the heading in the help; empty: `OPTIONS`
    /// What stands before the first semicolon or bracket has to make sense alone: completions show it.
    std::string_view text;
    std::string_view choices{};      ///< the only values that are accepted, separated by spaces
    std::string_view suggestions{};  ///< values that completions offer; others are accepted, too
    bool repeatable{};
};

struct section {
    std::string_view title;
    std::string_view text;
};

struct command_entry {
    std::string_view name;       ///< empty: the overview
    std::string_view summary;    ///< one line
    std::string_view arguments;  ///< for the synopsis
    std::string_view description;
    std::string_view exit_status;
    std::string_view examples;
    std::span<const section> sections{};  ///< other sections of its help
};

/// A form of a store's address.
struct store_entry {
    std::string_view address;
    std::string_view text;
};

struct exit_entry {
    exit_code code;
    std::string_view text;
};

/// The first entry is the overview.
[[nodiscard]] std::span<const command_entry> command_entries() noexcept;
[[nodiscard]] std::span<const option_entry> option_entries() noexcept;
[[nodiscard]] std::span<const store_entry> store_entries() noexcept;
[[nodiscard]] std::span<const exit_entry> exit_entries() noexcept;
/// What only the man page has.
[[nodiscard]] std::span<const section> manual_sections() noexcept;

/// Null when there is no such command.
[[nodiscard]] const command_entry* find_command(std::string_view name) noexcept;
/// Null when the command has no such option.
[[nodiscard]] const option_entry* find_option(std::string_view command, std::string_view name) noexcept;
[[nodiscard]] bool takes(std::string_view command, const option_entry& option) noexcept;
/// Whether `list`, words separated by spaces, has `word`.
[[nodiscard]] bool contains_word(std::string_view list, std::string_view word) noexcept;

}  // namespace holdfast::cli
