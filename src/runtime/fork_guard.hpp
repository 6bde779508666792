#pragma once

#include <cstdint>

namespace holdfast::detail {

/// How often this process is a forked child of the one that loaded the library. Costs one load, where
/// asking for the pid would be a system call.
[[nodiscard]] std::uint32_t fork_generation() noexcept;

}  // namespace holdfast::detail
