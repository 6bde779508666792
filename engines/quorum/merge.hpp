#pragma once

#include <optional>
#include <string>
#include <vector>

#include <holdfast/info.hpp>

namespace holdfast::engines::quorums {

/// One picture from what the members say about a name. `answers` are as many as the members; an empty
/// one is a member that did not answer.
///
/// A holder is one that a majority has, or may have if those that did not answer are counted in.
/// Others are left out: contenders on their way in or out, and what was forgotten on a few members.
[[nodiscard]] lock_info merge(const std::string& name,
                              const std::vector<std::optional<lock_info>>& answers);

}  // namespace holdfast::engines::quorums
