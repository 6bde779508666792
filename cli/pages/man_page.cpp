#include <fmt/format.h>

#include <algorithm>
#include <holdfast/version.hpp>

#include "command_table.hpp"
#include "manual_text.hpp"
#include "pages.hpp"

namespace holdfast::cli {

namespace {

/// Text with nothing in it that roff would interpret.
[[nodiscard]] std::string literal(std::string_view text) {
    std::string line;
    for (const char c : text) {
        switch (c) {
            case '\\':
                line += "\\e";
                break;
            case '-':
                line += "\\-";
                break;
            case '\'':
                line += "\\(aq";
                break;
            default:
                line += c;
        }
    }
    return line.starts_with('.') ? "\\&" + line : line;
}

[[nodiscard]] std::string bold(std::string_view text) {
    return "\\fB" + literal(text) + "\\fR";
}

/// One word, bold if it is an option, a variable of ours or the program's name.
[[nodiscard]] std::string to_roff_word(std::string_view word) {
    const auto begin = std::min(word.find_first_not_of('('), word.size());
    const auto end = std::max(word.find_last_not_of(".,;:)") + 1, begin);
    const auto core = word.substr(begin, end - begin);
    const bool special = (core.size() > 2 && core.starts_with("--")) || core.starts_with("HOLDFAST_") ||
                         core == "holdfast";
    return special ? literal(word.substr(0, begin)) + bold(core) + literal(word.substr(end))
                   : literal(word);
}

[[nodiscard]] std::string to_roff(std::string_view text) {
    std::string line;
    while (!text.empty()) {
        const auto end = std::min(text.find(' '), text.size());
        line += (line.empty() ? "" : " ") + to_roff_word(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return line;
}

[[nodiscard]] std::string entry(const std::string& term, std::string_view text) {
    return fmt::format(".TP\n{}\n{}\n", term, to_roff(text));
}

[[nodiscard]] std::string format_blocks(std::string_view text) {
    std::string result;
    bool in_literal = false;
    for (const auto& block : parse_blocks(text)) {
        const bool is_literal = block.kind == text_block::shape::literal;
        if (is_literal != in_literal) {
            result += is_literal ? ".PP\n.EX\n" : ".EE\n";
            in_literal = is_literal;
        }
        switch (block.kind) {
            case text_block::shape::paragraph:
                result += ".PP\n" + to_roff(block.text) + "\n";
                break;
            case text_block::shape::entry:
                result += entry(bold(block.term), block.text);
                break;
            case text_block::shape::literal:
                result += literal(block.text) + "\n";
                break;
        }
    }
    return in_literal ? result + ".EE\n" : result;
}

[[nodiscard]] std::string titled(std::string_view title, const std::string& body) {
    return body.empty() ? std::string{} : fmt::format(".SH {}\n{}", title, body);
}

[[nodiscard]] std::string term_of(const option_entry& option) {
    auto term = option.letter.empty() ? std::string{} : bold(option.letter) + ", ";
    term += bold(option.name);
    return option.value.empty() ? term : fmt::format("{} \\fI{}\\fR", term, option.value);
}

[[nodiscard]] bool is_common(const option_entry& option) noexcept {
    return option.group == "COMMON OPTIONS";
}

[[nodiscard]] std::string format_command(const command_entry& command) {
    auto text = fmt::format(".SS holdfast {}\n", command.name);
    text += command.description.empty() ? to_roff(command.summary) + "\n"
                                        : format_blocks(command.description);
    for (const auto& option : option_entries()) {
        if (takes(command.name, option) && !is_common(option)) {
            text += entry(term_of(option), option.text);
        }
    }
    return text;
}

[[nodiscard]] std::string format_synopsis() {
    std::string text;
    for (const auto& command : command_entries()) {
        const auto name =
            command.name.empty() ? std::string{"holdfast"} : fmt::format("holdfast {}", command.name);
        text += fmt::format(".SY \"{}\"\n{}{}.YS\n", name, literal(command.arguments),
                            command.arguments.empty() ? "" : "\n");
    }
    return text;
}

}  // namespace

std::string man_page() {
    const auto& overview = command_entries().front();
    auto text = fmt::format(".TH HOLDFAST 1 \"\" \"holdfast {}\" \"User Commands\"\n", version());
    text += titled("NAME", fmt::format("holdfast \\- {}\n", literal(overview.summary)));
    text += titled("SYNOPSIS", format_synopsis());
    text += titled("DESCRIPTION", format_blocks(overview.description));
    std::string commands;
    std::string sections;
    std::string exits;
    std::string examples;
    for (const auto& command : command_entries()) {
        const bool is_overview = command.name.empty();
        commands += is_overview ? std::string{} : format_command(command);
        exits += is_overview || command.exit_status.empty()
                     ? std::string{}
                     : entry(bold(command.name), command.exit_status);
        examples += format_blocks(command.examples);
        for (const auto& each : command.sections) {
            sections += titled(each.title, format_blocks(each.text));
        }
    }
    text += titled("COMMANDS", commands);
    std::string common;
    for (const auto& option : option_entries()) {
        common += is_common(option) ? entry(term_of(option), option.text) : "";
    }
    text += titled("COMMON OPTIONS", common);
    std::string stores;
    for (const auto& store : store_entries()) {
        stores += entry(bold(store.address), store.text);
    }
    text += titled("STORES", stores);
    for (const auto& each : manual_sections()) {
        text += titled(each.title, format_blocks(each.text));
    }
    std::string statuses;
    for (const auto& one : exit_entries()) {
        statuses += entry(bold(std::to_string(to_status(one.code))), one.text);
    }
    text += titled("EXIT STATUS", statuses + ".PP\nBy command:\n" + exits);
    text += sections;
    text += titled("EXAMPLES", examples);
    return text + ".SH SEE ALSO\n.BR flock (1),\n.BR cron (8),\n.BR nohup (1)\n";
}

}  // namespace holdfast::cli
