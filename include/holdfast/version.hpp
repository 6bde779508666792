#pragma once

#include <holdfast/export.hpp>

#define HOLDFAST_VERSION_MAJOR 0
#define HOLDFAST_VERSION_MINOR 1
#define HOLDFAST_VERSION_PATCH 0

namespace holdfast {
inline namespace v0 {

/// The version of the library that is linked, "0.1.0".
[[nodiscard]] HOLDFAST_EXPORT const char* version() noexcept;

}  // namespace v0
}  // namespace holdfast
