#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// A piece of the longer texts in the command table.
struct text_block {
    enum class shape : std::uint8_t { paragraph, entry, literal } kind{};
    std::string term;  ///< of an entry
    std::string text;
};

/// Reads the notation that `command_table.hpp` describes.
[[nodiscard]] std::vector<text_block> parse_blocks(std::string_view text);

/// The text up to its first semicolon or bracket: what completions have room for.
[[nodiscard]] std::string_view brief(std::string_view text) noexcept;

}  // namespace holdfast::cli
