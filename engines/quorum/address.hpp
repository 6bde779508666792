#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <holdfast/quorum.hpp>

namespace holdfast::engines::quorums {

/// `[?option=value&…] store store …`, separated by white space. Options: member_timeout, drift,
/// restart_grace; values like 500ms, 30s, 2m, 1h. Throws `errc::bad_configuration`.
[[nodiscard]] quorum parse_quorum(std::string_view rest);

/// The address of a quorum, from its members' addresses as people may see them.
[[nodiscard]] std::string text_of(const quorum_options& options,
                                  const std::vector<std::string>& stores);

/// The identity of a quorum, from its members': the same in whatever order they are named.
[[nodiscard]] std::string identity_of(std::vector<std::string> members);

/// Throws `errc::bad_configuration` with this reason.
[[noreturn]] void refuse_quorum(std::string reason);

}  // namespace holdfast::engines::quorums
