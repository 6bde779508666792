#pragma once

#include <holdfast/engine.hpp>
#include <memory>
#include <span>
#include <string_view>

/// Which engines there are: those of the library itself, those in libraries of their own, which add
/// themselves when they are loaded, and those that the application registers.
namespace holdfast::engines {
inline namespace v0 {

struct engine_entry {
    std::string_view scheme;
    std::unique_ptr<engine> (*open)(std::string_view rest, const client_identity& identity);
    /// Throws like `open` for an address that makes no sense.
    address_summary (*summarise)(std::string_view rest);
};

/// An engine in a library of its own. Stays for as long as the process.
struct engine_module {
    std::span<const engine_entry> entries;
    const engine_module* next{};
};

/// Before `main`, or when a library is loaded. Needs nothing that has to be constructed first.
HOLDFAST_EXPORT void add_engine_module(engine_module& added) noexcept;

/// An engine of holdfast's, whether or not it was built, and whether or not it is linked.
struct known_engine {
    std::string_view scheme;
    std::string_view name;
    /// What was missing when this library was built; empty if it was built.
    std::string_view missing;
};

/// Written by CMake.
[[nodiscard]] std::span<const engine_entry> builtin_engines() noexcept;
[[nodiscard]] std::span<const known_engine> known_engines() noexcept;

}  // namespace v0
}  // namespace holdfast::engines
