#pragma once

#include <holdfast/engine.hpp>
#include <memory>
#include <string_view>
#include <vector>

namespace holdfast::engines {

struct builtin_engine {
    std::string_view scheme;
    std::unique_ptr<engine> (*open)(std::string_view rest, const client_identity& identity);
    /// Throws like `open` for an address that makes no sense.
    address_summary (*summarise)(std::string_view rest);
};

/// The engines compiled into the library.
[[nodiscard]] const std::vector<builtin_engine>& builtin_engines();

}  // namespace holdfast::engines
