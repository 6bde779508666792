#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <core/actions.hpp>
#include <core/claim.hpp>
#include <core/contests.hpp>
#include <core/conversions.hpp>
#include <core/handover.hpp>
#include <core/holds.hpp>
#include <core/outbox.hpp>
#include <core/places.hpp>
#include <core/releases.hpp>
#include <core/waiters.hpp>

namespace holdfast::core {

struct table_settings {
    contention_settings contention;
    handover_limits handover;
    /// Whether anybody listens to `tell_observer`.
    bool observed{};
    /// For jitter.
    std::uint64_t seed{1};
};

/// All locks of one client: brings the parts together.
///
///     waiters ── contests ──▶ holds ──▶ releases      conversions   of holds
///        └────── places ───────┘           │          handover      from hold to waiter
///                  └───────────────────────┘
///
/// Fed with calls, replies, hints and the time. Answers with actions, to be performed in order. Knows
/// no clock, thread or store, so the runtime and the simulator drive the very same code.
///
/// Every input goes to the part that it concerns. The parts touch the places that they change. At the
/// end of the step the table looks at these: a queue that nothing works for gets a contest.
///
/// Not thread-safe: the caller serialises.
class lock_table {
public:
    lock_table(const table_settings& settings, const owner_id& client);
    lock_table(const lock_table&) = delete;
    lock_table& operator=(const lock_table&) = delete;
    ~lock_table() = default;

    /// Answered by `finish_acquire`. Busy is an error here: `errc::busy`.
    waiter_id acquire(const claim& request, clock::time_point now);
    /// The caller gives up waiting. No effect once the call is finished.
    void cancel(waiter_id id, errc reason, clock::time_point now);
    /// Answered by `finish_release`, by the release timeout at the latest.
    void release_hold(hold_id id, std::chrono::milliseconds linger, clock::time_point now);
    /// Nobody can release it any more: it is lost, and given back without an answer to anybody.
    void abandon(hold_id id, clock::time_point now);
    /// The answer to `offer_turn`. No effect when somebody was quicker.
    void take_turn(waiter_id id, clock::time_point now);
    /// Exclusive to shared or back. Answered by `finish_convert`.
    void convert(hold_id id, claim_mode to, clock::time_point now);

    void on_acquire_reply(request_id id, const engines::acquire_reply& reply, clock::time_point now);
    void on_renew_replies(request_id id, const std::vector<engines::renew_reply>& replies,
                          clock::time_point now);
    void on_release_reply(request_id id, const engines::release_reply& reply, clock::time_point now);
    /// `name` may have become free.
    void on_hint(const std::string& name, clock::time_point now);
    /// It may be the turn of `owner`, who stands in line for `name`; with a grant it is. A grant to an
    /// owner that nobody knows is given back.
    void on_turn(const std::string& name, const owner_id& owner,
                 const std::optional<engines::turn_grant>& granted, clock::time_point now);
    /// The watch on `name` is in place now: what happened before was not seen.
    void on_watch_active(const std::string& name, clock::time_point now);
    void on_holds_may_have_changed(clock::time_point now);
    void on_time(clock::time_point now);
    /// When `on_time` is due next.
    [[nodiscard]] clock::time_point wake_at() const noexcept;

    /// Ends all waiting, tells every holder, gives everything back.
    void shut_down(clock::time_point now);

    /// After `shut_down`, when nobody will feed the table any more: everybody who waits for a release
    /// is told how it went so far.
    void finish_release_calls(clock::time_point now);

    /// After `shut_down`: what may still be ours in the store.
    [[nodiscard]] std::vector<unreleased_lock> unreleased() const;

    [[nodiscard]] bool wants_watch(const std::string& name) const { return places_.wants_watch(name); }
    /// What is to be done, in order. `spare` lends its memory.
    [[nodiscard]] std::vector<action> take_actions(std::vector<action> spare = {}) {
        return out_.take(std::move(spare));
    }

    /// How much is going on, for tests and leak checks.
    struct census {
        std::size_t waiters{}, contests{}, tenures{}, holds{}, releases{}, names{}, requests{};
        [[nodiscard]] bool quiet() const noexcept {
            return waiters + contests + tenures + holds + releases + names + requests == 0;
        }
    };
    [[nodiscard]] census count() const noexcept;

private:
    void join_queue(waiter& call, clock::time_point now);
    void look_at_touched(clock::time_point now);

    bool shut_down_{};
    outbox out_;
    places places_;
    waiters waiters_;
    releases releases_;
    holds holds_;
    contests contests_;
    conversions conversions_;
    handover handover_;
};

}  // namespace holdfast::core
