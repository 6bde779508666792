#include <core/handover.hpp>

namespace holdfast::core {

namespace {

/// The hold of this name that nobody has at the moment; null: there is none.
[[nodiscard]] hold_record* vacancy_of(const place& site) {
    return site.holder != nullptr && site.holder->vacant() ? site.holder : nullptr;
}

}  // namespace

bool handover::may_pass_to(const waiter& next, const hold_record& hold, clock::time_point now) const {
    return next.site.waiting->queue.may_hand_over(limits_, now) &&
           next.terms->interchangeable(hold.its_terms()) && next.request.kind == hold.tenure.kind &&
           // One that may have been revoked goes to the store, which knows.
           !hold.tenure.in_doubt() &&
           // A lease whose renewals fail is not worth passing on.
           hold.tenure.valid_until() - now >= hold.its_terms().ttl / 3;
}

void handover::pass_to(const waiter& next, hold_record& hold, clock::time_point now) {
    auto& site = next.site;
    auto& queue = site.waiting->queue;
    const auto id = next.id;
    holds_.pass_on(hold, id, next.terms);
    holds_.begin(hold, queue.next_token(), event_kind::handed_over, waiters_.remove(id), now);
    const auto soon = queue.soon_after_hand_over();
    if (soon && !queue.may_be_overtaken(limits_)) {
        out_.add(stand_by{*soon});
    }
    places_.touch(site);
}

void handover::offer(hold_record& hold, waiter_id front) {
    hold.offered_to = front;
    out_.add(offer_turn{front});
}

bool handover::hand_over(hold_record& hold, clock::time_point now) {
    if (hold.serves == nullptr || !hold.serves->waiting || hold.downgraded) {
        return false;
    }
    auto& queue = hold.serves->waiting->queue;
    if (queue.empty() || !may_pass_to(waiters_.at(queue.front()), hold, now)) {
        return false;
    }
    queue.note_hold(now - hold.since);
    holds_.end_without_release(hold, now);
    if (queue.may_be_overtaken(limits_)) {
        offer(hold, queue.front());
    } else {
        pass_to(waiters_.at(queue.pop()), hold, now);
    }
    return true;
}

/// Not by one who asks once: to it a lock that others wait for is busy, also when it asks for several
/// together.
bool handover::overtake(const waiter& newcomer, clock::time_point now) {
    auto* const hold = vacancy_of(newcomer.site);
    if (hold == nullptr || !newcomer.request.wait || !may_pass_to(newcomer, *hold, now)) {
        return false;
    }
    newcomer.site.waiting->queue.overtake();
    pass_to(newcomer, *hold, now);
    return true;
}

void handover::take_turn(waiter& front, clock::time_point now) {
    auto* const hold = vacancy_of(front.site);
    if (hold == nullptr || hold->offered_to != front.id) {
        return;
    }
    if (!may_pass_to(front, *hold, now)) {
        holds_.give_back(*hold, now);
        return;
    }
    front.site.waiting->queue.pop();
    pass_to(front, *hold, now);
}

void handover::offer_again(place& site, clock::time_point now) {
    auto* const hold = vacancy_of(site);
    if (hold == nullptr) {
        return;
    }
    const auto& queue = site.waiting->queue;
    if (queue.empty()) {
        holds_.give_back(*hold, now);
    } else if (queue.front() != hold->offered_to) {
        offer(*hold, queue.front());
    }
}

}  // namespace holdfast::core
