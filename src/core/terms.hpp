#pragma once

#include <chrono>
#include <optional>

#include <holdfast/clock.hpp>
#include <holdfast/engine.hpp>
#include <holdfast/error.hpp>
#include <holdfast/options.hpp>

namespace holdfast::core {

/// `lease_options`, checked and with every default filled in.
struct terms {
    std::chrono::milliseconds ttl{};
    renewal_mode renewal{renewal_mode::automatic};
    /// The shortest that the store takes.
    std::chrono::milliseconds shortest_ttl{1};
    clock::duration margin{};
    clock::duration jeopardy{};
    std::optional<clock::duration> max_hold;
    clock::duration release_timeout{};
    replica_policy replicas;

    /// Whether a lease taken on these terms can be passed on to somebody who asked for `other`.
    [[nodiscard]] bool interchangeable(const terms& other) const noexcept {
        return ttl == other.ttl && renewal == other.renewal && margin == other.margin &&
               replicas == other.replicas;
    }
    friend bool operator==(const terms&, const terms&) = default;
};

/// For how long a lease may be trusted: the ttl that the store says it granted (zero: the one that was
/// asked for), but no longer than was asked for.
[[nodiscard]] constexpr std::chrono::milliseconds trusted_ttl(
    std::chrono::milliseconds asked_for, std::chrono::milliseconds granted) noexcept {
    return granted.count() > 0 && granted < asked_for ? granted : asked_for;
}

/// The terms, or why the options make no sense for this store.
[[nodiscard]] failure make_terms(const lease_options& options, const engines::guarantees& promises,
                                 terms& result);

}  // namespace holdfast::core
