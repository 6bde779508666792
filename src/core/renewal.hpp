#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <core/deadline_heap.hpp>
#include <core/shared.hpp>
#include <core/terms.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/engine.hpp>

namespace holdfast::core {

using tenure_id = std::uint64_t;

/// Keeps leases alive, and says when one is over.
///
///     fresh ──(a third of the ttl)──▶ due ──sent──▶ under way ──renewed──▶ fresh
///                                      ▲                │
///                                      └──(short pause)─┤ no answer
///     jeopardy mark passes ─▶ reported once             └─ gone ─▶ lost
///     deadline passes ───────▶ lost, whether or not any answer ever came
///
/// A fixed lease (`renewal_mode::none`) is asked after only when it is suspected to be gone, or when a
/// part of the store does not know it yet, and is not extended by that.
///
/// A renewal only moves a deadline forward, to the moment *before* it was sent plus the ttl that was
/// granted minus the margin. A tenure that was removed is never renewed again: an answer that comes
/// later is ignored.
class renewal {
public:
    static constexpr std::size_t largest_batch = 256;
    /// The first renewal of a lease that a part of the store does not know yet.
    static constexpr std::chrono::milliseconds first_completion{50};

    /// What is renewed. Lives inside the record of who holds it, which must not move meanwhile.
    struct tenure : private timer {
        shared_name name;
        shared_terms terms;
        owner_id owner;
        claim_mode mode{};
        lock_kind kind{lock_kind::mutex};

        [[nodiscard]] tenure_id id() const noexcept { return timer::id; }
        /// A request was sent for it and not answered yet.
        [[nodiscard]] bool asked_for() const noexcept { return under_way_; }
        /// Something happened that may have ended it, and the store has not confirmed it since.
        [[nodiscard]] bool in_doubt() const noexcept { return in_doubt_; }
        [[nodiscard]] clock::time_point valid_until() const noexcept {
            return latest_sent_at_ + granted_ - terms->margin;
        }
        /// Of a ttl that is shorter than asked for, the same part. Otherwise every lease would be at
        /// risk before it is due.
        [[nodiscard]] clock::duration jeopardy() const noexcept {
            return granted_ == terms->ttl
                       ? terms->jeopardy
                       : clock::duration{static_cast<clock::rep>(
                             static_cast<double>(terms->jeopardy.count()) *
                             (std::chrono::duration<double>{granted_} / terms->ttl))};
        }

    private:
        friend class renewal;

        bool under_way_{};
        bool jeopardy_told_{};
        bool in_doubt_{};
        /// Since the request that is under way was sent.
        bool suspected_{};
        bool chosen_{};
        clock::time_point latest_sent_at_{};
        /// The ttl in the store; never longer than the one that was asked for.
        clock::duration granted_{};
        clock::time_point due_at_{};
        /// Not zero: the next renewal comes after this rather than after a third of the ttl.
        clock::duration completion_{};
        /// When it became a share of what it was; never, if it did not.
        clock::time_point downgraded_at_{clock::time_point::min()};
    };

    struct event {
        enum class kind : std::uint8_t { extended, failed, jeopardy, lost } type{};
        tenure_id id{};
        clock::time_point valid_until;
        failure error;
    };

    struct batch {
        std::vector<tenure_id> ids;
        std::vector<engines::renew_request> requests;
        /// An answer after this is of no use to any of them.
        clock::time_point useful_until;
    };

    /// Starts when the grant is known. `sent_at` is when the request that brought it left, `granted`
    /// the ttl that the store gave. An `incomplete` one is renewed soon, and then in growing intervals
    /// until all of the store knows it.
    void add(tenure& held, tenure_id id, clock::time_point sent_at, clock::duration granted,
             bool incomplete = false);
    void remove(tenure& held);
    /// It goes by another number and on another holder's terms from now on, also in the answer to what
    /// is under way.
    void pass_on(tenure& held, tenure_id id, shared_terms terms);
    void change_mode(tenure& held, claim_mode mode, clock::time_point now);
    /// A part of the store does not know what it has become, since `now`.
    void complete_soon(tenure& held, clock::time_point now);
    /// Ask after it as soon as possible: something happened that may have ended it.
    void suspect(tenure& held, clock::time_point now);

    /// What is due at `now`: leases that ended, leases at risk. Then `next_batch` until it is empty.
    [[nodiscard]] std::vector<event> on_time(clock::time_point now);
    [[nodiscard]] batch next_batch(clock::time_point now);
    /// Only for what was not removed since.
    [[nodiscard]] std::optional<event> on_reply(tenure& held, engines::renew_reply reply,
                                                clock::time_point sent_at, clock::time_point now);

    [[nodiscard]] clock::time_point wake_at() const noexcept { return heap_.next(); }
    [[nodiscard]] std::size_t size() const noexcept { return heap_.size() + chosen_.size(); }

private:
    void schedule(tenure& one);
    void choose(tenure& one);
    static void extend(tenure& one, clock::time_point sent_at, clock::duration granted);
    [[nodiscard]] static clock::duration period(const tenure& one) {
        const clock::duration usual = one.granted_ / 3;
        return one.completion_.count() > 0 ? std::min(usual, one.completion_) : usual;
    }
    [[nodiscard]] static bool is_fixed(const tenure& one) {
        return one.terms->renewal == renewal_mode::none;
    }

    deadline_heap heap_;
    /// Due, and to be sent with the next batches.
    std::vector<tenure*> chosen_;
};

}  // namespace holdfast::core
