#pragma once

#include <core/holds.hpp>
#include <core/local_queue.hpp>
#include <core/outbox.hpp>
#include <core/places.hpp>
#include <core/waiters.hpp>
#include <holdfast/clock.hpp>

namespace holdfast::core {

/// Passes locks from thread to thread of this process without asking the store.
///
/// While holds are fleeting it would cost more to wake the next thread than it works. So the front of
/// the queue is woken and *offered* the lock, which is vacant until the thread comes. A thread that
/// asks in the meantime takes it, and gives it back before the other is there. How often the same front
/// may be overtaken is bounded. After that, and after any longer hold, the front is given the lock
/// while it sleeps.
class handover {
public:
    handover(const handover_limits& limits, outbox& out, places& its_places, waiters& its_waiters,
             holds& its_holds)
        : limits_{limits}, out_{out}, places_{its_places}, waiters_{its_waiters}, holds_{its_holds} {}

    /// To the front of the queue, instead of a release. False: the store has to be asked.
    [[nodiscard]] bool hand_over(hold_record& hold, clock::time_point now);
    /// To somebody who has just come, ahead of the front that was offered the lock.
    [[nodiscard]] bool overtake(const waiter& newcomer, clock::time_point now);
    /// To the waiter that was offered the lock. No effect if somebody was quicker.
    void take_turn(waiter& front, clock::time_point now);
    /// The queue has changed: a vacant lock is offered to whoever is in front now.
    void offer_again(place& site, clock::time_point now);

private:
    [[nodiscard]] bool may_pass_to(const waiter& next, const hold_record& hold,
                                   clock::time_point now) const;
    void pass_to(const waiter& next, hold_record& hold, clock::time_point now);
    void offer(hold_record& hold, waiter_id front);

    handover_limits limits_;
    outbox& out_;
    places& places_;
    waiters& waiters_;
    holds& holds_;
};

}  // namespace holdfast::core
