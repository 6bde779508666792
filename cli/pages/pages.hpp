#pragma once

#include <string>
#include <string_view>

/// The pages that are made from the command table when the program is built.
namespace holdfast::cli {

[[nodiscard]] std::string man_page();

/// Completions for a shell (`bash`, `zsh` or `fish`): the template with every line that consists of
/// `@commands@`, `@options@`, `@values@` or `@help@` replaced by what the table has for it. Throws
/// `std::runtime_error` when the shell is not known.
[[nodiscard]] std::string completions(std::string_view shell, std::string_view pattern);

}  // namespace holdfast::cli
