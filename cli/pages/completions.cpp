#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>

#include "command_table.hpp"
#include "manual_text.hpp"
#include "pages.hpp"

namespace holdfast::cli {

namespace {

/// The text with each of `special` preceded by `escape`.
[[nodiscard]] std::string escaped(std::string_view text, std::string_view special,
                                  std::string_view escape = "\\") {
    std::string result;
    for (const char c : text) {
        if (special.find(c) != std::string_view::npos) {
            result += escape;
        }
        result += c;
    }
    return result;
}

/// For single quotes of bash and zsh, in which nothing can be escaped.
[[nodiscard]] std::string in_quotes(std::string_view text) {
    std::string result;
    for (const char c : text) {
        result += c == '\'' ? std::string{"'\\''"} : std::string{c};
    }
    return "'" + result + "'";
}

/// The schemes of all stores, separated by spaces.
[[nodiscard]] std::string schemes() {
    std::string all;
    for (const auto& store : store_entries()) {
        const auto colon = store.address.find(':');
        const auto length = store.address.substr(colon).starts_with("://") ? colon + 3 : colon + 1;
        const auto scheme = store.address.substr(0, length);
        if (!contains_word(all, scheme)) {
            all += (all.empty() ? "" : " ") + std::string{scheme};
        }
    }
    return all;
}

[[nodiscard]] std::string offered_values(const option_entry& option) {
    if (option.value == "ADDRESS") {
        return schemes();
    }
    return std::string{option.choices.empty() ? option.suggestions : option.choices};
}

/// The commands that the table knows, without the overview.
[[nodiscard]] std::span<const command_entry> real_commands() noexcept {
    return command_entries().subspan(1);
}

/// Whether completions offer the names of locks for its argument.
[[nodiscard]] bool takes_name(const command_entry& command) noexcept {
    return command.arguments.starts_with("NAME") || command.arguments.starts_with("[NAME") ||
           command.arguments.starts_with("[PREFIX");
}

/// The names of commands that `fits` accepts, separated by spaces.
template <class Predicate>
[[nodiscard]] std::string names_of_commands(Predicate fits) {
    std::string names;
    for (const auto& command : real_commands()) {
        if (fits(command)) {
            names += (names.empty() ? "" : " ") + std::string{command.name};
        }
    }
    return names;
}

[[nodiscard]] std::string all_names() {
    return names_of_commands([](const command_entry&) { return true; });
}

/// Calls `visit` for every option of a command.
void for_options_of(std::string_view command, const std::function<void(const option_entry&)>& visit) {
    for (const auto& option : option_entries()) {
        if (takes(command, option)) {
            visit(option);
        }
    }
}

using page_parts = std::map<std::string_view, std::string>;

[[nodiscard]] page_parts bash_parts() {
    std::string options;
    for (const auto& command : real_commands()) {
        std::string names;
        for_options_of(command.name, [&](const option_entry& option) {
            names += (names.empty() ? "" : " ") + std::string{option.name};
        });
        options += fmt::format("        {}) options={}{} ;;\n", command.name, in_quotes(names),
                               takes_name(command) ? " named=yes" : "");
    }
    // Several commands may have an option of the same name; its value is of the same kind then.
    std::map<std::string_view, std::string> values;
    for (const auto& option : option_entries()) {
        if (!option.value.empty()) {
            values.emplace(option.name, offered_values(option));
        }
    }
    std::string rows;
    for (const auto& [name, words] : values) {
        rows += fmt::format("        {}) values={} ;;\n", name, in_quotes(words));
    }
    return {{"@commands@", fmt::format("    local commands={}\n", in_quotes(all_names() + " help"))},
            {"@options@", options},
            {"@values@", rows}};
}

[[nodiscard]] std::string zsh_option(const option_entry& option) {
    const auto explained = fmt::format("[{}]", escaped(brief(option.text), "[]:"));
    const auto words = offered_values(option);
    auto value = option.value.empty() ? std::string{} : fmt::format(":{}:", option.value);
    value += words.empty() ? std::string{} : fmt::format("({})", escaped(words, ":"));
    const auto* const repeated = option.repeatable ? "*" : "";
    if (option.letter.empty()) {
        return in_quotes(repeated + std::string{option.name} + explained + value);
    }
    return fmt::format("'({0} {1})'{{{0},{1}}}{2}", option.letter, option.name,
                       in_quotes(explained + value));
}

[[nodiscard]] page_parts zsh_parts() {
    std::string commands;
    std::string options;
    for (const auto& command : real_commands()) {
        commands +=
            fmt::format("            {}\n",
                        in_quotes(fmt::format("{}:{}", command.name, escaped(command.summary, ":"))));
        options += fmt::format("        {})\n            specs=(\n", command.name);
        for_options_of(command.name, [&](const option_entry& option) {
            options += fmt::format("                {}\n", zsh_option(option));
        });
        options += takes_name(command) ? "                '1:lock:_holdfast_names'\n" : "";
        options += "            )\n            ;;\n";
    }
    return {{"@commands@", commands},
            {"@options@", options},
            {"@help@", fmt::format("            _values command {}\n", all_names())}};
}

[[nodiscard]] std::string fish_quotes(std::string_view text) {
    return "'" + escaped(text, "'\\") + "'";
}

[[nodiscard]] page_parts fish_parts() {
    std::string commands;
    for (const auto& command : real_commands()) {
        commands += fmt::format("complete -c holdfast -n __fish_use_subcommand -a {} -d {}\n",
                                command.name, fish_quotes(command.summary));
    }
    std::string options;
    for (const auto& option : option_entries()) {
        auto line = fmt::format("complete -c holdfast -n '__holdfast_using {}'", option.commands);
        line += option.letter.empty() ? "" : fmt::format(" -s {}", option.letter.substr(1));
        line += fmt::format(" -l {}", option.name.substr(2));
        line += option.value.empty() ? "" : " -x";
        line += offered_values(option).empty()
                    ? std::string{}
                    : fmt::format(" -a {}", fish_quotes(offered_values(option)));
        options += fmt::format("{} -d {}\n", line, fish_quotes(brief(option.text)));
    }
    options += fmt::format("complete -c holdfast -n '__holdfast_using {}' -a '(__holdfast_names)'\n",
                           names_of_commands(takes_name));
    options +=
        fmt::format("complete -c holdfast -n '__holdfast_using help' -a {}\n", in_quotes(all_names()));
    return {{"@commands@", commands}, {"@options@", options}};
}

[[nodiscard]] page_parts parts_for(std::string_view shell) {
    if (shell == "bash") {
        return bash_parts();
    }
    if (shell == "zsh") {
        return zsh_parts();
    }
    if (shell == "fish") {
        return fish_parts();
    }
    throw std::runtime_error{"no completions for " + std::string{shell}};
}

}  // namespace

std::string completions(std::string_view shell, std::string_view pattern) {
    const auto parts = parts_for(shell);
    std::string page;
    while (!pattern.empty()) {
        const auto end = std::min(pattern.find('\n'), pattern.size());
        const auto line = pattern.substr(0, end);
        pattern.remove_prefix(std::min(end + 1, pattern.size()));
        const auto part = parts.find(line);
        page += part == parts.end() ? std::string{line} + "\n" : part->second;
    }
    return page;
}

}  // namespace holdfast::cli
