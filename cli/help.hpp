#pragma once

#include <string_view>

namespace holdfast::cli {

/// The help for a command, or the overview for an empty name. Empty when there is no such command.
[[nodiscard]] std::string_view help_text(std::string_view command) noexcept;

}  // namespace holdfast::cli
