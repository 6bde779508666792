#pragma once

#include <holdfast/engine.hpp>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::engines {

using builtin_factory = std::unique_ptr<engine> (*)(std::string_view rest,
                                                    const client_identity& identity);

/// The engines compiled into the library, by scheme.
[[nodiscard]] const std::vector<std::pair<std::string_view, builtin_factory>>& builtin_engines();

}  // namespace holdfast::engines
