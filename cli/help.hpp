#pragma once

#include <string>
#include <string_view>

namespace holdfast::cli {

/// The help for a command, or the overview for an empty name, for 80 columns. Empty when there is no
/// such command.
///
/// CLI11's own formatter knows options only. It does not wrap lines, and has no place for the table's
/// sections, exit codes and examples.
[[nodiscard]] std::string help_text(std::string_view name);

}  // namespace holdfast::cli
