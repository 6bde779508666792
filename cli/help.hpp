#pragma once

#include <string>
#include <string_view>

namespace holdfast::cli {

/// The help for a command, or the overview for an empty name, for 80 columns. Empty when there is no
/// such command.
[[nodiscard]] std::string help_text(std::string_view name);

}  // namespace holdfast::cli
