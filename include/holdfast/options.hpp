#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/export.hpp>

namespace holdfast {
inline namespace v0 {

class observer;

enum class renewal_mode : std::uint8_t {
    /// The client renews the lease in the background until it is released.
    automatic,
    /// The lease runs out after its ttl, whatever happens.
    none,
};

/// How many replicas must have a lock before it counts as taken, in stores that copy it to others
/// later than they answer. If too few confirm it in time, it is given back and is not ours. Renewals,
/// upgrades and downgrades are not confirmed.
struct replica_policy {
    enum class rule : std::uint8_t {
        none,      ///< the store's own word is enough
        at_least,  ///< so many of them
        majority,  ///< the store and its replicas are counted, and more than half must have it
    } what{rule::none};
    std::uint32_t count{};

    [[nodiscard]] static constexpr replica_policy at_least(std::uint32_t count) noexcept {
        return {rule::at_least, count};
    }
    [[nodiscard]] static constexpr replica_policy majority() noexcept { return {rule::majority, 0}; }
    friend bool operator==(const replica_policy&, const replica_policy&) = default;
};

/// The terms of a lease. How long to *wait* for it is never among them: that is an argument of
/// the call that waits.
struct lease_options {
    /// How long the store keeps the lock if it hears nothing more from us.
    std::chrono::milliseconds ttl{std::chrono::seconds{30}};
    renewal_mode renewal{renewal_mode::automatic};
    /// The longest one hold may last, renewed or not. Then it is lost.
    std::optional<std::chrono::milliseconds> max_hold{};
    /// Stop trusting the lease this long before the store would end it. Default: a twentieth of
    /// the ttl, between 5 ms and 500 ms, but at least 500 millionths of it: two clocks may run apart
    /// by so much.
    std::optional<std::chrono::milliseconds> safety_margin{};
    /// Report jeopardy when less than this remains. Default: a third of the ttl.
    std::optional<std::chrono::milliseconds> jeopardy{};
    /// The longest that unlock, release and destructors wait for the store's answer.
    std::chrono::milliseconds release_timeout{std::chrono::seconds{2}};
    replica_policy replicas{};
};

/// Whom a lock in a store keeps out.
enum class scope : std::uint8_t { process, host, fleet };

[[nodiscard]] HOLDFAST_EXPORT std::string_view to_string(scope reach) noexcept;

struct client_options {
    /// Words of your own for `holdfast list` ("billing worker 3"). UTF-8, at most 1024 bytes: the store
    /// keeps them (`errc::invalid_argument`).
    std::string label{};
    /// Refuse any store whose locks do not exclude at least this much. `HOLDFAST_REQUIRE` may ask for
    /// more.
    scope require{scope::process};
    /// Told of every event, on a thread of the client's own.
    std::shared_ptr<observer> events{};
    /// How long one request to the store may take before it counts as unanswered.
    std::chrono::milliseconds request_timeout{std::chrono::seconds{2}};
    /// How long a call without a deadline goes on trying while the store cannot be reached.
    std::chrono::milliseconds outage_patience{std::chrono::seconds{10}};
    /// How long making the client goes on trying while the store cannot be reached: a server that is
    /// starting, sentinels without a master, a cluster that is not formed, too few members of a quorum.
    /// A refusal (password, TLS, address) ends it at once. Zero: one attempt.
    std::chrono::milliseconds opening_patience{};
    /// Threads of one process hand a lock to each other, without asking the store, at
    /// most this often and for this long before other processes get their chance.
    std::uint32_t handover_count{128};
    std::chrono::milliseconds handover_time{50};
};

}  // namespace v0
}  // namespace holdfast
