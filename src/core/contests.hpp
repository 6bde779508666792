#pragma once

#include <cstddef>
#include <memory_resource>
#include <string>
#include <unordered_map>
#include <vector>

#include <core/acquisition.hpp>
#include <core/contest.hpp>
#include <core/deadline_heap.hpp>
#include <core/holds.hpp>
#include <core/local_queue.hpp>
#include <core/node_memory.hpp>
#include <core/outbox.hpp>
#include <core/places.hpp>
#include <core/releases.hpp>
#include <core/waiters.hpp>
#include <holdfast/clock.hpp>

namespace holdfast::core {

/// Asks the store for those who wait. Each contest is led by an `acquisition`.
///
/// The waiters in a queue share one contest. A waiter that leaves does not end it while a request is
/// under way: a grant that still comes goes to the next waiter, or back to the store.
class contests {
public:
    contests(const contention_settings& settings, const handover_limits& limits, outbox& out,
             places& its_places, waiters& its_waiters, releases& its_releases, holds& its_holds)
        : settings_{settings},
          limits_{limits},
          out_{out},
          places_{its_places},
          waiters_{its_waiters},
          releases_{its_releases},
          holds_{its_holds} {}

    /// For a waiter that is in no queue.
    void add(waiter& call, clock::time_point now);
    /// For the front of a queue that nothing works for. If other processes wait, too, they go first.
    void contend_for_front(place& site, clock::time_point now);
    /// Ends a call without a lock.
    void finish_waiter(waiter& call, const failure& reason, clock::time_point now);
    /// Ends it with the answer if its own request is under way.
    void on_deadline(waiter& call, clock::time_point now);

    void on_reply(request_id id, const engines::acquire_reply& reply, clock::time_point now);
    /// The name may have become free.
    void on_hint(place& site, clock::time_point now);
    /// False: nobody contends under this owner id.
    bool on_turn(place& site, const owner_id& owner, const std::optional<engines::turn_grant>& granted,
                 clock::time_point now);
    void on_time(clock::time_point now);
    [[nodiscard]] clock::time_point wake_at() const noexcept { return timers_.next(); }

    /// No contest begins from now on.
    void shut_down() noexcept { shut_down_ = true; }
    /// Of contests that wait for an answer.
    [[nodiscard]] std::vector<std::string> names() const;
    [[nodiscard]] std::size_t size() const noexcept { return contests_.size(); }
    [[nodiscard]] std::size_t requests() const noexcept { return requests_.size(); }

private:
    void start(waiter& first, clock::time_point not_before, clock::time_point now);
    void ask(contest& contender, clock::time_point now);
    void step(contest& contender, acquisition::verdict verdict, clock::time_point now);
    void settle(contest& contender, acquisition::verdict verdict, const engines::acquire_reply& reply,
                clock::time_point now);
    void settle_grant(contest& contender, const engines::acquire_reply& reply, clock::time_point now);
    void settle_late_grant(contest& contender, clock::time_point now);
    void settle_without_grant(contest& contender, acquisition::verdict verdict, clock::time_point now);
    void give_up(contest& contender, clock::time_point now);
    void end(contest& contender);
    void clean_up(const acquisition& after, clock::time_point now);

    void let_newcomers_ask(place& site, clock::time_point now);
    void let_first_ask(asking_turns& turns, clock::time_point now);
    void let_others_ask(place& site, const contest* asker, const engines::acquire_request& asked,
                        acquisition::verdict verdict, const engines::acquire_reply& reply,
                        clock::time_point now);

    void fail(waiter& call, const failure& reason, clock::time_point now);
    [[nodiscard]] failure reason_to_give_up(const waiter& call, clock::time_point now) const;
    [[nodiscard]] static contest* contest_for(const waiter& call);
    [[nodiscard]] waiter* first_of(const contest& contender) const;
    [[nodiscard]] std::vector<waiter_id> waiters_of(const contest& contender) const;
    [[nodiscard]] bool serves_front(const contest& contender) const;

    contention_settings settings_;
    handover_limits limits_;
    outbox& out_;
    places& places_;
    waiters& waiters_;
    releases& releases_;
    holds& holds_;
    bool shut_down_{};
    deadline_heap timers_;
    node_memory memory_;
    std::pmr::unordered_map<contest_id, contest> contests_{&memory_};
    std::pmr::unordered_map<request_id, contest_id> requests_{&memory_};
};

}  // namespace holdfast::core
