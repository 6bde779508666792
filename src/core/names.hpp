#pragma once

#include <string>
#include <string_view>

#include <holdfast/error.hpp>

namespace holdfast::core {

inline constexpr std::size_t longest_name = 1024;

/// No error for a name that every store can carry: not empty, at most 1 KiB, UTF-8, no control
/// characters.
[[nodiscard]] failure check_name(std::string_view name);

/// "is not UTF-8" or "holds a control character"; empty for a text that every store can carry.
[[nodiscard]] std::string_view flaw_in(std::string_view text) noexcept;
/// Control characters may be in it.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

/// The name in quotes, shortened and made printable, for messages.
[[nodiscard]] std::string quote_name(std::string_view name);

}  // namespace holdfast::core
