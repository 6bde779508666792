#include "manual_text.hpp"

#include <algorithm>

namespace holdfast::cli {

namespace {

using shape = text_block::shape;

constexpr std::string_view literal_indent = "    ";
constexpr std::string_view entry_mark = "- ";
constexpr std::string_view term_end = " | ";

[[nodiscard]] text_block parse_entry(std::string_view line) {
    const auto end = std::min(line.find(term_end), line.size());
    const auto text = std::min(end + term_end.size(), line.size());
    return {shape::entry, std::string{line.substr(0, end)}, std::string{line.substr(text)}};
}

}  // namespace

std::vector<text_block> parse_blocks(std::string_view text) {
    std::vector<text_block> blocks;
    bool goes_on = false;
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        const auto line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.empty()) {
            goes_on = false;
        } else if (line.starts_with(literal_indent)) {
            blocks.push_back({shape::literal, {}, std::string{line.substr(literal_indent.size())}});
            goes_on = false;
        } else if (line.starts_with(entry_mark)) {
            blocks.push_back(parse_entry(line.substr(entry_mark.size())));
            goes_on = true;
        } else if (goes_on) {
            blocks.back().text.append(" ").append(line);
        } else {
            blocks.push_back({shape::paragraph, {}, std::string{line}});
            goes_on = true;
        }
    }
    return blocks;
}

std::string_view brief(std::string_view text) noexcept {
    return text.substr(0, std::min(text.find(';'), text.find(" (")));
}

}  // namespace holdfast::cli
