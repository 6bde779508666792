#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace holdfast::engines::redis {

/// Reads `text` as one number; false if anything else is in it.
template <class Number>
[[nodiscard]] bool read_number(std::string_view text, Number& result) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
    return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace holdfast::engines::redis
