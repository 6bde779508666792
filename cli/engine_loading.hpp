#pragma once

#include <string_view>

namespace holdfast::cli {

/// Loads an engine: "redis" from libholdfast_redis, in the directory of libholdfast. Throws
/// `std::system_error` that names the missing package.
void load_engine(std::string_view name);

}  // namespace holdfast::cli
