#pragma once

#include <cstddef>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include <core/claim.hpp>
#include <core/contest.hpp>
#include <core/deadline_heap.hpp>
#include <core/local_queue.hpp>
#include <core/node_memory.hpp>
#include <core/outbox.hpp>
#include <core/shared.hpp>
#include <holdfast/clock.hpp>

namespace holdfast::core {

struct place;

/// One call that waits.
struct waiter {
    waiter_id id;
    claim request;
    shared_terms terms;
    place& site;
    clock::time_point since;
    timer deadline;
    /// The contest that serves nobody else. Waiters in a queue have none.
    contest* own_contest{};
    /// Its deadline has passed. It ends with the answer to its request, which is under way.
    bool overdue{};

    waiter(waiter_id number, const claim& wish, shared_terms its_terms, place& its_place,
           clock::time_point now)
        : id{number},
          request{wish},
          terms{std::move(its_terms)},
          site{its_place},
          since{now},
          deadline{number} {}
};

/// The calls of a client that wait, and their deadlines.
class waiters {
public:
    explicit waiters(outbox& out) : out_{out} {}

    waiter& add(waiter_id id, const claim& request, place& site, clock::time_point now);
    [[nodiscard]] waiter* find(waiter_id id);
    [[nodiscard]] waiter& at(waiter_id id) { return waiters_.at(id); }
    /// It waits no more. Returns since when it has waited.
    clock::time_point remove(waiter_id id);
    /// Ends the call without a lock.
    void fail(const waiter& call, const failure& reason, clock::time_point now);

    void set_deadline(waiter& call, clock::time_point deadline);
    /// A call whose deadline has passed; null: there are no more.
    [[nodiscard]] waiter* take_due(clock::time_point now);
    [[nodiscard]] clock::time_point wake_at() const noexcept { return deadlines_.next(); }

    /// In the order in which they came.
    [[nodiscard]] std::vector<waiter_id> all() const;
    [[nodiscard]] std::size_t size() const noexcept { return waiters_.size(); }

private:
    outbox& out_;
    /// The terms that were asked for last: most leases of a program have the same.
    shared_terms latest_terms_;
    deadline_heap deadlines_;
    node_memory memory_;
    std::pmr::unordered_map<waiter_id, waiter> waiters_{&memory_};
};

}  // namespace holdfast::core
