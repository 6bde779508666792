#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <holdfast/info.hpp>

/// The record that a revocation leaves: `<owner> <token> <at, ms since 1970> <length of actor> <actor>
/// <reason>`, with one blank between each.
namespace holdfast::engines::redis {

[[nodiscard]] std::string write_revocation(const revocation_info& what);
[[nodiscard]] std::optional<revocation_info> read_revocation(std::string_view text);

}  // namespace holdfast::engines::redis
