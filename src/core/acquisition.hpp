#pragma once

#include <chrono>
#include <cstdint>

#include <core/terms.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/engine.hpp>

namespace holdfast::core {

/// How a contender behaves towards the store.
struct contention_settings {
    clock::duration request_timeout{std::chrono::seconds{2}};
    /// How long calls without a deadline bear with a store that cannot be reached.
    clock::duration outage_patience{std::chrono::seconds{10}};
    /// Gives other processes this long to take a lock that went back for their sake.
    clock::duration courtesy{std::chrono::milliseconds{1}};
    /// The longest a waiter sleeps without asking, plus up to a quarter, in case a notification was
    /// lost.
    clock::duration recheck_cap{std::chrono::seconds{1}};
    /// How long a store may keep somebody in its line who does not ask any more.
    clock::duration line_patience{std::chrono::seconds{5}};
    /// The store may give a plain lock that is released to one who waits for it.
    bool store_hands_over{};
    /// How many of the waiters for permits or a share of one name ask the store at the same time.
    std::uint32_t most_asking{32};
    clock::duration shortest_pause{std::chrono::milliseconds{1}};
    clock::duration longest_backoff{std::chrono::milliseconds{500}};
};

/// One contender's way to a grant.
///
///     ┌──────── ask ────────┐
///     ▼                     │ hint, pause over
///     asking ── busy ──▶ waiting
///       │  ▲                │
///       │  └── pause over ──┼── backing off ◀── no answer, store unreachable
///       │                   │
///       └─ granted ─▶ done ◀┘ refused
///
/// One owner id serves the whole way: after a request without an answer the same owner asks again,
/// and the store either grants it or finds that it did so already. Nothing is ever guessed.
/// A hint that comes while a request is under way counts: the store may have decided before it.
/// A store that keeps us in mind may also grant without being asked (`on_turn`): waiting ─▶ done.
class acquisition {
public:
    enum class verdict : std::uint8_t {
        nothing,  ///< go on waiting until `wake_at`
        ask,      ///< send a request now
        granted,
        expired_grant,  ///< granted, but the answer came too late to be of use: give it back, ask anew
        failed,
    };

    acquisition(engines::acquire_request claim, const terms& its_terms,
                const contention_settings& settings);

    /// The request to send at `now`.
    [[nodiscard]] engines::acquire_request ask(clock::time_point now, std::uint32_t token_count);
    /// `jitter` is a random fraction, 0 ≤ jitter < 1.
    [[nodiscard]] verdict on_reply(const engines::acquire_reply& reply, clock::time_point now,
                                   double jitter);
    [[nodiscard]] verdict on_hint();
    /// The store says that it has granted the lock to us, who stand in its line.
    [[nodiscard]] verdict on_turn(const engines::turn_grant& grant, clock::time_point now);
    /// The pause is over.
    [[nodiscard]] verdict on_wake();
    /// Waits before it asks for the first time, so that others get their chance. Hints do not shorten
    /// it: the first one is about our own release.
    void hold_back(clock::time_point until);
    /// The name is watched already: no watch that begins will make us ask once more.
    void set_listening() noexcept { listens_ = true; }
    /// Whether the next request is for a caller that waits, and may stand in the store's line.
    void set_queueing(bool waits) noexcept { claim_.queue = waits; }
    /// Starts over as another owner.
    void restart(const owner_id& owner);

    [[nodiscard]] bool asking() const noexcept { return state_ == state::asking; }
    /// The store has said "busy", and was not asked again since.
    [[nodiscard]] bool waiting() const noexcept { return state_ == state::waiting; }
    /// When to call `on_wake`; `time_point::max()` while a request is under way.
    [[nodiscard]] clock::time_point wake_at() const noexcept { return wake_at_; }
    /// Somebody else has the lock, as far as the store said.
    [[nodiscard]] bool contended() const noexcept { return contended_; }
    /// The store may hold a grant for us that we do not know of.
    [[nodiscard]] bool may_be_granted() const noexcept { return may_be_granted_; }
    /// The store may remember us, as a holder or in a line, when we go without a grant.
    [[nodiscard]] bool leaves_traces() const noexcept {
        return may_be_granted_ || (stood_in_line_ && (contended_ || unanswered_));
    }
    /// The store was asked to keep us in mind, and to grant the lock when it is released.
    [[nodiscard]] bool stood_in_line() const noexcept { return stood_in_line_; }
    /// A request of this owner's was never answered: it may still reach the store.
    [[nodiscard]] bool unanswered() const noexcept { return unanswered_; }
    /// What keeps us, while the store does not answer, and since when.
    [[nodiscard]] const failure& trouble() const noexcept { return trouble_; }
    [[nodiscard]] clock::time_point trouble_since() const noexcept { return trouble_since_; }
    [[nodiscard]] const owner_id& owner() const noexcept { return claim_.owner; }
    [[nodiscard]] const engines::acquire_request& claim() const noexcept { return claim_; }
    [[nodiscard]] clock::time_point sent_at() const noexcept { return sent_at_; }
    /// After `granted`: until when the lease is ours, counted from the request.
    [[nodiscard]] clock::time_point valid_until() const noexcept { return valid_until_; }
    /// After `granted`: the ttl that the store gave, or the one that was asked for if that is shorter.
    [[nodiscard]] std::chrono::milliseconds ttl() const noexcept { return granted_ttl_; }

private:
    [[nodiscard]] bool stands_in_line() const noexcept;

    enum class state : std::uint8_t { idle, holding_back, asking, waiting, backing_off, done };

    [[nodiscard]] verdict on_busy(const engines::acquire_reply& reply, clock::time_point now,
                                  double jitter);
    [[nodiscard]] verdict on_failure(const failure& error, clock::time_point now, double jitter);

    engines::acquire_request claim_;
    contention_settings settings_;
    clock::duration margin_;
    /// A lease granted in line must have lost less than this of its ttl by the time we hear of it.
    /// Zero: such a grant is never taken as it is.
    clock::duration oldest_turn_;
    state state_{state::idle};
    clock::time_point sent_at_{};
    clock::time_point wake_at_{clock::time_point::max()};
    clock::time_point valid_until_{};
    std::chrono::milliseconds granted_ttl_{};
    clock::time_point trouble_since_{};
    failure trouble_;
    std::uint32_t failures_in_a_row_{};
    bool contended_{};
    bool listens_{};
    bool may_be_granted_{};
    bool unanswered_{};
    bool stood_in_line_{};
    bool hinted_while_asking_{};
};

}  // namespace holdfast::core
