#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <holdfast/export.hpp>
#include <holdfast/options.hpp>

namespace holdfast::engines {
inline namespace v0 {

enum class fencing : std::uint8_t {
    none,
    best_effort,  ///< tokens may repeat or fall after the store lost data
    strict,       ///< every grant's token is larger than all before it
};

[[nodiscard]] HOLDFAST_EXPORT std::string_view to_string(fencing tokens) noexcept;

/// By how much the clocks that a ttl is counted with may differ at its end.
struct clock_drift {
    std::chrono::milliseconds fixed{};
    std::uint32_t per_thousand{};

    [[nodiscard]] constexpr std::chrono::milliseconds over(
        std::chrono::milliseconds ttl) const noexcept {
        return fixed + ttl * per_thousand / 1000;
    }
};

/// What an engine promises. A caller may require it, and is refused rather than downgraded.
struct guarantees {
    scope reach{scope::process};
    /// The reach in words: "this host only (user alice)".
    std::string reach_text;
    fencing tokens{fencing::none};
    /// The kinds of lock beside the exclusive one. Latches and fair locks need an ability each
    /// (`latches`, `lines`).
    bool shared{};
    bool permits{};
    bool latches{};
    bool fair{};
    /// Why there are none, where that is not obvious.
    std::string why_no_permits{};
    std::string why_no_latches{};
    /// Whether `replica_policy` means anything here.
    bool replicas{};
    /// Whether a holder whose process died is noticed before its ttl ends.
    bool notices_dead_holders{};
    /// Added to the safety margin: clock drift between the parts of the store.
    clock_drift drift{};
    std::chrono::milliseconds minimum_ttl{};
    std::chrono::milliseconds maximum_ttl{std::chrono::hours{24 * 366}};
    /// The store counts ttls in steps of this length. A reply says what was granted.
    std::chrono::milliseconds ttl_granularity{1};
};

}  // namespace v0
}  // namespace holdfast::engines
