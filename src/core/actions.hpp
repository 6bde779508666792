#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <core/local_queue.hpp>
#include <core/shared.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/engine.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/observer.hpp>

/// What the core asks of whoever drives it.
namespace holdfast::core {

using request_id = std::uint64_t;
/// A waiter that was granted the lock keeps its number as a hold.
using hold_id = waiter_id;

/// Send it, and answer with `lock_table::on_acquire_reply`.
struct send_acquire {
    request_id id{};
    engines::acquire_request request;
    clock::time_point deadline;
    /// The call that waits for it: its thread has nothing else to do.
    waiter_id on_behalf_of{};
};

struct send_renew {
    request_id id{};
    std::vector<engines::renew_request> requests;
    clock::time_point deadline;
};

struct send_release {
    request_id id{};
    engines::release_request request;
    clock::time_point deadline;
    /// The call that waits for it; zero when it is cleaning up.
    hold_id on_behalf_of{};
};

/// Whether `name` should be watched has changed: see `lock_table::wants_watch`.
struct update_watch {
    std::string name;
    lock_kind kind{};
};

/// The call's turn is a few microseconds away: its thread had better be awake by then.
struct stand_by {
    waiter_id id{};
};

/// The lock is free for this call, unless somebody is quicker: answer with `lock_table::take_turn`.
struct offer_turn {
    waiter_id id{};
};

/// The call is over. No error: granted.
struct finish_acquire {
    waiter_id id{};
    failure error;
    owner_id owner;
    fencing_token token;
    clock::time_point valid_until;
    shared_name name{};
    /// When its `max_hold` is over.
    clock::time_point longest{clock::time_point::max()};
    /// How much before its end it is at risk.
    clock::duration jeopardy{};
};

struct finish_release {
    hold_id id{};
    release_outcome outcome{};
    failure error;
};

/// Downgrade or upgrade is over. `errc::busy`: other readers are there, the share is kept.
struct finish_convert {
    hold_id id{};
    failure error;
    fencing_token token;
};

struct set_validity {
    hold_id id{};
    clock::time_point valid_until;
};

/// The hold is lost: tell its holder.
struct tell_loss {
    hold_id id{};
    failure why;
};

struct tell_observer {
    event news;
};

using action = std::variant<send_acquire, send_renew, send_release, update_watch, stand_by, offer_turn,
                            finish_acquire, finish_release, finish_convert, set_validity, tell_loss,
                            tell_observer>;

}  // namespace holdfast::core
