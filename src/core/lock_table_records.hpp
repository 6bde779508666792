#pragma once

#include <core/lock_table.hpp>

#include <algorithm>

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

    waiter(waiter_id number, claim asked, clock::time_point now)
        : id{number}, what{std::move(asked)}, since{now}, deadline{number} {}
};

/// One contender at the store.
struct lock_table::contest {
    contest_id id;
    std::string name;
    acquisition way;
    terms how;
    timer wake;
    /// The waiter it works for; zero: whoever is at the front of the name's queue.
    waiter_id sole{};

    contest(contest_id number, std::string where, acquisition machine, const terms& asked)
        : id{number}, name{std::move(where)}, way{std::move(machine)}, how{asked}, wake{number} {}
    [[nodiscard]] bool for_queue() const noexcept { return sole == 0; }
};

/// A grant of the store's, while we keep it.
struct lock_table::tenure_record {
    tenure_id id{};
    std::string name;
    claim_mode mode{};
    lock_kind kind{};
    owner_id owner;
    terms how;
    hold_id hold{};
    fencing_token first_token;
    /// A downgrade was sent and not refused for certain: the store may let readers in.
    bool downgraded{};
    /// A request to acquire or convert it was never answered: it may still reach the store.
    bool unanswered{};
};

/// What a caller holds, or held and has not let go of yet.
struct lock_table::hold_record {
    hold_id id;
    tenure_id tenure;
    std::string name;
    claim_mode mode;
    lock_kind kind;
    owner_id owner;
    fencing_token token;
    terms how;
    clock::time_point since;
    timer longest;
    bool lost{};
    /// When the store forgets it by itself; known once it is lost.
    clock::time_point expires_by{};

    hold_record(hold_id number, const tenure_record& from, fencing_token its_token,
                clock::time_point now)
        : id{number},
          tenure{from.id},
          name{from.name},
          mode{from.mode},
          kind{from.kind},
          owner{from.owner},
          token{its_token},
          how{from.how},
          since{now},
          longest{number} {}
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

struct lock_table::name_record {
    std::string name;
    local_queue queue;
    /// The queue's contender, its tenure, and the release it waits for; zero when there is none.
    contest_id contender{};
    tenure_id tenure{};
    release_id releasing{};
    /// Everybody who contends for this name.
    std::vector<contest_id> contests;
    bool watched{};
    lock_kind kind{};

    /// Nobody works for the queue at the moment.
    [[nodiscard]] bool idle() const noexcept { return contender == 0 && tenure == 0 && releasing == 0; }
};

}  // namespace holdfast::core
