#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <core/deadline_heap.hpp>
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
/// A renewal only moves a deadline forward, to the moment *before* it was sent plus the ttl minus the
/// margin. A tenure that was removed is never renewed again: an answer that comes later is ignored.
class renewal {
public:
    static constexpr std::size_t largest_batch = 256;

    struct tenure {
        std::string name;
        claim_mode mode{};
        owner_id owner;
        terms how;
        clock::time_point sent_at;
        lock_kind kind{lock_kind::mutex};
    };

    struct event {
        enum class kind : std::uint8_t { extended, failed, jeopardy, lost } what{};
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

    /// Starts when the grant is known. `sent_at` is when the request that brought it left.
    void add(tenure_id id, const tenure& what);
    void remove(tenure_id id);
    void change_mode(tenure_id id, claim_mode mode, clock::time_point now);
    /// Renew everything as soon as possible: something happened that may have ended leases.
    void suspect_all(clock::time_point now);

    /// What is due at `now`: leases that ended, leases at risk. Then `next_batch` until it is empty.
    [[nodiscard]] std::vector<event> on_time(clock::time_point now);
    [[nodiscard]] batch next_batch(clock::time_point now);
    [[nodiscard]] std::vector<event> on_replies(const std::vector<tenure_id>& ids,
                                                const std::vector<engines::renew_reply>& replies,
                                                clock::time_point sent_at, clock::time_point now);

    [[nodiscard]] clock::time_point wake_at() const noexcept { return heap_.next(); }
    [[nodiscard]] clock::time_point valid_until(tenure_id id) const;
    [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }

private:
    struct item {
        tenure what;
        timer wake;
        clock::time_point valid_until;
        clock::time_point latest_sent_at;
        clock::time_point due_at;
        clock::time_point suspected_at;
        /// When it became a share of what it was; never, if it did not.
        clock::time_point downgraded_at{clock::time_point::min()};
        bool under_way{};
        bool jeopardy_told{};

        item(tenure_id id, const tenure& granted) : what{granted}, wake{id} {}
    };

    void schedule(item& one);
    void extend(item& one, clock::time_point sent_at);
    [[nodiscard]] static clock::duration period(const item& one) { return one.what.how.ttl / 3; }

    std::unordered_map<tenure_id, item> items_;
    deadline_heap heap_;
    std::vector<tenure_id> due_;
};

}  // namespace holdfast::core
