#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::engines::redis {

/// One answer of a server's.
struct value {
    enum class kind : std::uint8_t { nil, integer, text, error, array } type{kind::nil};
    std::int64_t integer{};
    /// text, error: the words.
    std::string text;
    /// array: the elements.
    std::vector<value> items;

    [[nodiscard]] bool is_error() const noexcept { return type == kind::error; }
    /// error: its first word, "MOVED" or "NOSCRIPT"; otherwise empty. An error that a script ran into
    /// has the same code, whatever words the server's version puts around it, and a command that its
    /// user may not run is "NOPERM".
    [[nodiscard]] std::string_view error_code() const noexcept;
};

/// Appends a command in the server's own notation.
void append_command(std::string& out, std::span<const std::string_view> words);
/// Appends the beginning of one, which says how many words follow.
void append_word_count(std::string& out, std::size_t count);
void append_word(std::string& out, std::string_view word);
void append_word(std::string& out, std::integral auto number) {
    std::array<char, 20> digits;  // all of any 64-bit number
    const auto* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    append_word(out, std::string_view{digits.data(), static_cast<std::size_t>(end - digits.data())});
}

}  // namespace holdfast::engines::redis
