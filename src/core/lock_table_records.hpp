#pragma once

#include <core/lock_table.hpp>

#include <algorithm>
#include <limits>

/// What `lock_table` remembers. Only for its own source files.
namespace holdfast::core {

/// One call that waits.
struct lock_table::waiter {
    waiter_id id;
    claim what;
    clock::time_point since;
    timer deadline;
    /// The contest that works for it: its own, or that of its queue (then zero).
    contest_id own_contest{};
    /// Its deadline has passed. It ends with the answer to its request, which is under way.
    bool overdue{};

    waiter(waiter_id number, claim asked, clock::time_point now)
        : id{number}, what{std::move(asked)}, since{now}, deadline{number} {}
};

/// One contender at the store.
struct lock_table::contest {
    contest_id id;
    shared_name name;
    acquisition way;
    shared_terms how;
    timer wake;
    /// The waiter it works for; zero: whoever is at the front of the name's queue.
    waiter_id sole{};
    /// The waiter for whom the last request was sent, and when the engine answers it at the latest.
    waiter_id asker{};
    clock::time_point answer_by{};
    /// One of those who ask in turn.
    bool in_turn{};

    contest(contest_id number, shared_name where, acquisition machine, shared_terms asked)
        : id{number},
          name{std::move(where)},
          way{std::move(machine)},
          how{std::move(asked)},
          wake{number} {}
    [[nodiscard]] bool for_queue() const noexcept { return sole == 0; }
};

/// Something on its way back to the store.
struct lock_table::release_record {
    release_id id;
    engines::release_request request;
    release way;
    fencing_token token;
    timer wake;
    /// The call that waits for it; zero: none, or told already.
    hold_id caller{};
    clock::time_point tell_by{clock::time_point::max()};
    clock::time_point held_since{};
    /// The lease was valid when its holder let go.
    bool held{};
    /// The name's queue waits for it before it contends again.
    bool queue_waits{};
    /// Whether `unreleased` reports a refusal.
    bool at_shutdown{};

    release_record(release_id number, engines::release_request what, fencing_token its_token,
                   clock::time_point expires_by)
        : id{number}, request{what}, way{std::move(what), expires_by}, token{its_token}, wake{number} {}
};

/// The threads that wait for a name, and who contends for them. Only there while it is needed.
struct lock_table::line {
    local_queue queue;
    /// Everybody who contends for this name.
    std::vector<contest_id> contests;
    /// Those who ask in turn and have not asked yet, in the order they came.
    std::vector<waiter_id> standing;
    /// How many of those who ask in turn may do so now, within `most_asking`. One after "busy", more
    /// with every grant.
    std::uint32_t window{unlimited};
    static constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();
};

}  // namespace holdfast::core
