#include "help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "command_table.hpp"
#include "manual_text.hpp"

namespace holdfast::cli {

namespace {

constexpr std::size_t last_column = 79;
constexpr std::size_t margin = 2;
constexpr std::size_t entry_margin = 22;

/// The words of `text` in lines that start at `indent`. The first line follows what is there already.
[[nodiscard]] std::string wrap(std::string_view text, std::size_t indent, std::string line) {
    std::string lines;
    line.resize(std::max(line.size(), indent), ' ');
    auto used = line.size();
    bool first = true;
    while (!text.empty()) {
        const auto end = std::min(text.find(' '), text.size());
        const auto word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!first && used + 1 + word.size() > last_column) {
            lines += line + "\n";
            line.assign(indent, ' ');
            used = indent;
            first = true;
        }
        line += (first ? "" : " ") + std::string{word};
        used = line.size();
        first = false;
    }
    return lines + line + "\n";
}

[[nodiscard]] std::string entry(std::string_view term, std::string_view text,
                                std::size_t column = entry_margin) {
    auto line = std::string(margin, ' ') + std::string{term};
    if (line.size() < column) {
        return wrap(text, column, std::move(line));
    }
    return line + "\n" + wrap(text, column, {});
}

/// An empty line between blocks of different kinds, and between paragraphs.
[[nodiscard]] std::string format_blocks(std::string_view text) {
    std::string result;
    const text_block* previous = nullptr;
    const auto blocks = parse_blocks(text);
    for (const auto& block : blocks) {
        const bool apart = previous != nullptr && block.kind == text_block::shape::paragraph;
        result += apart ? "\n" : "";
        switch (block.kind) {
            case text_block::shape::paragraph:
                result += wrap(block.text, margin, {});
                break;
            case text_block::shape::entry:
                result += entry(block.term, block.text);
                break;
            case text_block::shape::literal:
                result += std::string(blocks.size() > 1 ? margin + 2 : margin, ' ') + block.text + "\n";
                break;
        }
        previous = &block;
    }
    return result;
}

[[nodiscard]] std::string titled(std::string_view title, const std::string& body) {
    return body.empty() ? std::string{} : fmt::format("\n{}\n{}", title, body);
}

[[nodiscard]] std::string synopsis_of(const command_entry& command) {
    return fmt::format("  holdfast{}{}{}{}\n", command.name.empty() ? "" : " ", command.name,
                       command.arguments.empty() ? "" : " ", command.arguments);
}

[[nodiscard]] std::string term_of(const option_entry& option) {
    return fmt::format("{}{}{}{}{}", option.letter, option.letter.empty() ? "" : ", ", option.name,
                       option.value.empty() ? "" : " ", option.value);
}

[[nodiscard]] std::string_view heading_of(const option_entry& option) noexcept {
    return option.group.empty() ? "OPTIONS" : option.group;
}

/// Everything a command takes, under its headings in the order of the table.
[[nodiscard]] std::string format_options(std::string_view command) {
    std::vector<std::pair<std::string_view, std::string>> groups;
    for (const auto& option : option_entries()) {
        const bool shown =
            command.empty() ? heading_of(option) == "COMMON OPTIONS" : takes(command, option);
        if (!shown) {
            continue;
        }
        const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& one) {
            return one.first == heading_of(option);
        });
        const auto line = entry(term_of(option), option.text);
        if (group == groups.end()) {
            groups.emplace_back(heading_of(option), line);
        } else {
            group->second += line;
        }
    }
    std::string text;
    for (const auto& [heading, lines] : groups) {
        text += titled(heading, lines);
    }
    return text;
}

[[nodiscard]] std::string format_stores() {
    std::string text;
    for (const auto& store : store_entries()) {
        text += entry(store.address, store.text);
    }
    return text;
}

[[nodiscard]] std::string format_exits() {
    std::string text;
    for (const auto& one : exit_entries()) {
        text += entry(fmt::format("{:>3}", to_status(one.code)), one.text, 8);
    }
    return text;
}

[[nodiscard]] std::string format_commands() {
    std::string text;
    for (const auto& command : command_entries()) {
        text += command.name.empty() ? "" : entry(command.name, command.summary, 12);
    }
    return text;
}

[[nodiscard]] std::string format_synopsis(const command_entry& command) {
    if (!command.name.empty()) {
        return synopsis_of(command);
    }
    std::string text;
    for (const auto& each : command_entries()) {
        text += each.name.empty() ? "" : synopsis_of(each);
    }
    return text + synopsis_of(command);
}

}  // namespace

std::string help_text(std::string_view name) {
    const auto* const command = find_command(name);
    if (command == nullptr) {
        return {};
    }
    const bool overview = name.empty();
    auto text = fmt::format("NAME\n  holdfast{}{} - {}\n", overview ? "" : " ", name, command->summary);
    text += titled("SYNOPSIS", format_synopsis(*command));
    text += titled("DESCRIPTION", format_blocks(command->description));
    text += overview ? titled("COMMANDS", format_commands()) : "";
    text += format_options(name);
    text += overview || name == "run" ? titled("STORES", format_stores()) : "";
    const bool all_exits = overview || name == "run";
    const auto exits = format_blocks(command->exit_status);
    text += titled("EXIT STATUS", all_exits ? exits + "\n" + format_exits() : exits);
    for (const auto& each : command->sections) {
        text += titled(each.title, format_blocks(each.text));
    }
    text += titled("EXAMPLES", format_blocks(command->examples));
    return overview ? text + "\nSEE ALSO\n  man holdfast\n" : text;
}

}  // namespace holdfast::cli
