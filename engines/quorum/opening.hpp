#pragma once

#include <string>
#include <string_view>

#include <holdfast/quorum.hpp>

namespace holdfast::engines::quorums {

/// `[?option=value&…] store store …`, separated by white space. Options: member_timeout, drift,
/// restart_grace; values like 500ms, 30s, 2m, 1h. Throws `errc::bad_configuration`.
[[nodiscard]] quorum parse_quorum(std::string_view rest);

}  // namespace holdfast::engines::quorums
