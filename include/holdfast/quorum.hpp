#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/clock.hpp>
#include <holdfast/engine.hpp>
#include <holdfast/export.hpp>

namespace holdfast {
inline namespace v0 {

/// Several independent stores that hold a lock together: whoever has more than half of them has it.
///
///     holdfast::client client{holdfast::quorum{{"redis://a", "redis://b", "redis://c"}}};
///
/// The same as an address: `quorum:redis://a redis://b redis://c`, with options in front:
/// `quorum:?restart_grace=30s redis://a redis://b redis://c`. All clients of a lock must name the same
/// stores, best in the same order. What this is worth, and what not: docs/quorum.md.
struct quorum {
    /// At least one. Three survive the loss of one, five of two; an even number no more than the odd
    /// one below it.
    std::vector<std::string> stores;
    /// How long one member may take to answer before the others go on without it. Default: a twentieth
    /// of the ttl, between 20 ms and 500 ms.
    std::optional<std::chrono::milliseconds> member_timeout{};
    /// By how much the members' clocks may be apart at the end of a ttl. Default: a hundredth of the
    /// ttl and 2 ms.
    std::optional<std::chrono::milliseconds> drift{};
    /// A member that started less than this ago does not vote, in case it forgot a lock. At least the
    /// longest ttl in use makes members safe that keep nothing on disk. Zero: it votes at once.
    std::chrono::milliseconds restart_grace{};
};

}  // namespace v0
}  // namespace holdfast

namespace holdfast::engines {
inline namespace v0 {

/// Where a quorum gets its time and its chance from; what is left empty is the real thing.
struct quorum_environment {
    std::function<clock::time_point()> now{};
    /// Microseconds since 1970, the first guess at a token.
    std::function<std::uint64_t()> wall_clock{};
    /// 0 ≤ fraction < 1
    std::function<double()> random{};
};

/// As `quorum`, over engines made elsewhere.
struct quorum_options {
    std::optional<std::chrono::milliseconds> member_timeout{};
    std::optional<std::chrono::milliseconds> drift{};
    std::chrono::milliseconds restart_grace{};
    quorum_environment environment{};
};

/// One engine made of several. It has no thread and no timer of its own: members end their calls by
/// the deadlines they are given. Throws `std::system_error` with `errc::bad_configuration` if two of
/// them are the same store.
[[nodiscard]] HOLDFAST_EXPORT std::unique_ptr<engine> make_quorum(
    std::vector<std::unique_ptr<engine>> members, const quorum_options& options = {});

/// Opens all stores. A minority that cannot be opened now is tried again in the background, and so are
/// releases that a minority did not confirm.
[[nodiscard]] HOLDFAST_EXPORT std::unique_ptr<engine> open_quorum(const quorum& stores,
                                                                  const client_identity& identity);

}  // namespace v0
}  // namespace holdfast::engines
