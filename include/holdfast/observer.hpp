#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <holdfast/error.hpp>
#include <holdfast/export.hpp>
#include <holdfast/owner.hpp>
#include <holdfast/token.hpp>

namespace holdfast {
inline namespace v0 {

enum class event_kind : std::uint8_t {
    acquired,
    contended,     ///< had to wait
    not_acquired,  ///< busy until the deadline, cancelled, or failed (see error)
    handed_over,   ///< acquired from another thread of this process
    released,
    release_unconfirmed,  ///< the store did not answer, or refused; tried again until the ttl frees it
    renewed,
    renewal_failed,
    jeopardy,
    lost,
    degraded,  ///< the store refuses something that locks work without, but less well (see error)
};

/// The enumerator's name: `release_unconfirmed`.
[[nodiscard]] HOLDFAST_EXPORT std::string_view to_string(event_kind kind) noexcept;

struct event {
    event_kind kind{};
    std::string name;
    owner_id owner{};
    fencing_token token{};
    failure error{};
    /// acquired, handed_over, not_acquired: how long it waited. released, lost: how long it was held.
    std::chrono::nanoseconds duration{};
};

/// Sees what a client does, for logs and metrics. A slow observer delays nobody, `lost()` and
/// `shutdown` included: beyond 4096 waiting events new ones are dropped (`client::dropped_events`).
///
/// Lifetime: `shutdown` drops the events that it could not deliver within half a second. A call that is
/// under way then may end after the client is gone; no other follows it.
/// Thread safety: called on a thread that does nothing else, one event at a time, with no lock held.
class HOLDFAST_EXPORT observer {
public:
    virtual ~observer() = default;
    virtual void on_event(const event& news) noexcept = 0;
};

}  // namespace v0
}  // namespace holdfast
