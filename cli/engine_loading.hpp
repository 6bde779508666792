#pragma once

#include <string_view>

namespace holdfast::cli {

/// Loads the engine "redis" from libholdfast_redis, which is where libholdfast is. Throws
/// `std::system_error` that names the package if it is not there.
void load_engine(std::string_view name);

}  // namespace holdfast::cli
