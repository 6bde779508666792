#pragma once

#define HOLDFAST_VERSION_MAJOR 0
#define HOLDFAST_VERSION_MINOR 1
#define HOLDFAST_VERSION_PATCH 0

namespace holdfast {

/// The version of the library that is linked, "0.1.0".
[[nodiscard]] const char* version() noexcept;

}  // namespace holdfast
