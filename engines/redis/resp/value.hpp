#pragma once

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
    /// error: its first word, "MOVED" or "NOSCRIPT"; otherwise empty.
    [[nodiscard]] std::string_view error_code() const noexcept;
};

/// Appends a command in the server's own notation.
void append_command(std::string& out, std::span<const std::string_view> words);

}  // namespace holdfast::engines::redis
