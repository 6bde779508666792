#include <core/lock_table.hpp>

#include <utility>

/// How a lock goes from thread to thread without the store.
///
/// While holds are fleeting it would cost more to wake the next thread than it works. So the front of
/// the queue is woken and *offered* the lock, which is vacant until it comes; a thread that asks in the
/// meantime takes it and gives it back before the other is there. How often the same front may be
/// overtaken is bounded; after that, and after any longer hold, it is given the lock while it sleeps.
namespace holdfast::core {

/// The record goes by the next holder's number from now on.
void lock_table::pass_on(hold_record& hold, const waiter& next) {
    const auto former = hold.id();
    auto node = holds_.extract(former);  // the record itself stays where it is
    node.key() = next.id;
    holds_.insert(std::move(node));
    if (hold.tenure.asked_for()) {
        for (auto& [id, request] : requests_) {
            std::replace(request.tenures.begin(), request.tenures.end(), former, next.id);
        }
    }
    renewal_.pass_on(hold.tenure, next.id, shared(next.what.how));
}

bool lock_table::may_pass_to(const waiter& next, const hold_record& hold, const local_queue& queue,
                             clock::time_point now) const {
    return queue.may_hand_over(settings_.handover, now) && next.what.how.interchangeable(hold.how()) &&
           next.what.kind == hold.tenure.kind &&
           // One that may have been revoked goes to the store, which knows.
           !hold.tenure.in_doubt() &&
           // A lease whose renewals fail is not worth passing on.
           hold.tenure.valid_until() - now >= hold.how().ttl / 3;
}

void lock_table::pass_to(const waiter& next, hold_record& hold, name_record& where,
                         clock::time_point now) {
    auto& queue = where.waiting->queue;
    hold.vacant = false;
    pass_on(hold, next);
    where.busy_with = next.id;
    grant(next.id, hold, queue.next_token(), event_kind::handed_over, now);
    const auto soon = queue.soon_after_hand_over();
    if (soon && !queue.may_be_overtaken(settings_.handover)) {
        actions_.emplace_back(stand_by{*soon});
    }
    tidy(hold.name());
}

bool lock_table::hand_over(hold_record& hold, clock::time_point now) {
    const auto place = names_.find(hold.name());
    if (place == names_.end() || place->second.busy_with != hold.id() || !place->second.waiting ||
        hold.downgraded) {
        return false;
    }
    auto& queue = place->second.waiting->queue;
    if (queue.empty() || !may_pass_to(waiters_.at(queue.front()), hold, queue, now)) {
        return false;
    }
    queue.note_hold(now - hold.since);
    tell(event_kind::released, hold.name(), hold.tenure.owner, hold.token, now - hold.since);
    actions_.emplace_back(finish_release{hold.id(), release_outcome::released, {}});
    timers_.disarm(hold.longest);
    if (queue.may_be_overtaken(settings_.handover)) {
        hold.vacant = true;
        actions_.emplace_back(offer_turn{queue.front()});
        return true;
    }
    pass_to(waiters_.at(queue.pop()), hold, place->second, now);
    return true;
}

/// The hold of this name that nobody has at the moment, if there is one.
lock_table::hold_record* lock_table::vacancy_of(const name_record& where) {
    const auto found = holds_.find(where.busy_with);
    return found != holds_.end() && found->second.vacant ? &found->second : nullptr;
}

/// Somebody who has just come takes what the front of the queue has not taken yet. Not one who asks
/// once: to it a lock that others wait for is busy, also when it asks for several together.
bool lock_table::overtake(const waiter& who, name_record& where, clock::time_point now) {
    auto* const hold = vacancy_of(where);
    if (hold == nullptr || !who.what.wait || !may_pass_to(who, *hold, where.waiting->queue, now)) {
        return false;
    }
    where.waiting->queue.overtake();
    pass_to(who, *hold, where, now);
    return true;
}

void lock_table::take_turn(waiter_id who, clock::time_point now) {
    const auto found = waiters_.find(who);
    if (found == waiters_.end()) {
        return;
    }
    auto& where = names_.at(found->second.what.name);
    auto* const hold = vacancy_of(where);
    if (hold == nullptr || where.waiting->queue.front() != who) {
        return;
    }
    auto& queue = where.waiting->queue;
    if (!may_pass_to(found->second, *hold, queue, now)) {
        give_up_vacancy(*hold, now);
        return;
    }
    queue.pop();
    pass_to(found->second, *hold, where, now);
}

/// Somebody left the queue. If it was the one to whom the lock was offered, it is the next one's turn.
void lock_table::offer_again(name_record& where, clock::time_point now) {
    auto* const hold = vacancy_of(where);
    if (hold == nullptr) {
        return;
    }
    const auto& queue = where.waiting->queue;
    if (!queue.empty()) {
        actions_.emplace_back(offer_turn{queue.front()});
    } else {
        give_up_vacancy(*hold, now);
    }
}

/// Nobody here may have it any more: back to the store.
void lock_table::give_up_vacancy(hold_record& hold, clock::time_point now) {
    auto& back = add_release(hold.give_back(), hold.token, gone_by(hold.how(), now));
    back.at_shutdown = shut_down_;
    if (const auto record = names_.find(hold.name());
        record != names_.end() && record->second.busy_with == hold.id()) {
        back.queue_waits = true;
        record->second.busy_with = back.id;
    }
    detach(hold);
    holds_.erase(hold.id());
    send(back, now);
}

}  // namespace holdfast::core
