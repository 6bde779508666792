#include <core/lock_table.hpp>

#include <utility>

namespace holdfast::core {

void lock_table::grant(waiter_id who, hold_record& hold, fencing_token token, event_kind kind,
                       clock::time_point now) {
    auto node = waiters_.extract(who);
    timers_.disarm(node.mapped().deadline);
    hold.token = token;
    hold.since = now;
    hold.longest.id = who;
    auto longest = clock::time_point::max();
    if (hold.how().max_hold) {
        longest = now + *hold.how().max_hold;
        timers_.arm(hold.longest, longest);
    }
    tell(kind, hold.name(), hold.tenure.owner, token, now - node.mapped().since);
    actions_.emplace_back(finish_acquire{who,
                                         {},
                                         hold.tenure.owner,
                                         token,
                                         validity(hold),
                                         hold.tenure.name,
                                         longest,
                                         hold.tenure.jeopardy()});
}

clock::time_point lock_table::validity(const hold_record& hold) {
    const auto lease = hold.tenure.valid_until();
    const auto& longest = hold.how().max_hold;
    return longest ? std::min(lease, hold.since + *longest) : lease;
}

/// When the store will have forgotten a lease at the latest: a renewal that is under way may reach it
/// at any moment until its request times out.
clock::time_point lock_table::gone_by(const terms& how, clock::time_point now) const {
    return now + settings_.contention.request_timeout + how.ttl;
}

/// The tenure is over: nothing of it is renewed or handed over any more.
void lock_table::detach(hold_record& hold) {
    timers_.disarm(hold.longest);
    renewal_.remove(hold.tenure);
    if (const auto found = names_.find(hold.name());
        found != names_.end() && found->second.busy_with == hold.id()) {
        found->second.busy_with = 0;
    }
}

void lock_table::lose(hold_record& hold, const failure& why, clock::time_point now) {
    if (hold.vacant) {
        give_up_vacancy(hold, now);
        return;
    }
    hold.lost = true;
    hold.expires_by = gone_by(hold.how(), now);
    actions_.emplace_back(tell_loss{hold.id(), why});
    tell(event_kind::lost, hold.name(), hold.tenure.owner, hold.token, now - hold.since, why);
    detach(hold);
    contend_for_front(hold.name(), 0, now);
}

void lock_table::release_hold(hold_id which, std::chrono::milliseconds linger, clock::time_point now) {
    const auto found = holds_.find(which);
    if (found == holds_.end() || found->second.vacant) {
        actions_.emplace_back(finish_release{which, release_outcome::already_lost, {}});
        return;
    }
    auto& hold = found->second;
    if (!hold.lost && now >= validity(hold)) {
        const bool too_long = hold.how().max_hold && now >= hold.since + *hold.how().max_hold;
        lose(hold,
             {too_long ? errc::max_hold_exceeded : errc::lost,
              "its deadline had passed when it was released"},
             now);
    }
    if (hold.lost) {
        // Nothing to wait for. If the store still has it, free it rather than let its ttl run.
        if (now < hold.expires_by) {
            send(add_release(hold.give_back(linger), hold.token, hold.expires_by), now);
        }
        actions_.emplace_back(finish_release{which, release_outcome::already_lost, {}});
        holds_.erase(found);
        return;
    }
    if (linger.count() == 0 && hand_over(hold, now)) {
        return;
    }
    auto& back = add_release(hold.give_back(linger), hold.token, gone_by(hold.how(), now));
    back.caller = which;
    back.held = true;
    back.held_since = hold.since;
    back.tell_by = now + hold.how().release_timeout;
    if (const auto record = names_.find(hold.name());
        record != names_.end() && record->second.busy_with == which) {
        back.queue_waits = true;
        record->second.busy_with = back.id;
    }
    // Renewal stops before the release is sent, or a late renewal could be answered after it.
    detach(hold);
    holds_.erase(found);
    send(back, now);
}

void lock_table::abandon(hold_id which, clock::time_point now) {
    const auto found = holds_.find(which);
    if (found == holds_.end() || !found->second.held() || now >= validity(found->second)) {
        release_hold(which, {}, now);
        return;
    }
    lose_and_give_back(
        found->second,
        {errc::lost, "its holder was destroyed, or its thread ended, before it was released"}, now);
    holds_.erase(found);
    actions_.emplace_back(finish_release{which, release_outcome::already_lost, {}});
}

/// Ends a hold whose lease the store still has. Its holder is told first.
void lock_table::lose_and_give_back(hold_record& hold, const failure& why, clock::time_point now) {
    auto& back = add_release(hold.give_back(), hold.token, gone_by(hold.how(), now));
    if (const auto record = names_.find(hold.name());
        record != names_.end() && record->second.busy_with == hold.id()) {
        // Those who wait here go on when it is back in the store.
        back.queue_waits = true;
        record->second.busy_with = back.id;
    }
    lose(hold, why, now);
    send(back, now);
}

/// The holder may hang: the next one does not wait for its release, nor for the ttl.
void lock_table::end_at_max_hold(hold_record& hold, clock::time_point now) {
    lose_and_give_back(hold, {errc::max_hold_exceeded, "it was held for its max_hold"}, now);
}

lock_table::release_record& lock_table::add_release(engines::release_request request,
                                                    fencing_token token, clock::time_point expires_by) {
    const auto id = next_id();
    return releases_.try_emplace(id, id, std::move(request), token, expires_by).first->second;
}

void lock_table::send(release_record& what, clock::time_point now) {
    const auto id = next_id();
    requests_.emplace(id, pending_request{pending_request::kind::release, what.id, now});
    if (what.caller != 0) {
        timers_.arm(what.wake, what.tell_by);
    } else {
        timers_.disarm(what.wake);
    }
    const auto deadline = std::min(now + settings_.contention.request_timeout, what.tell_by);
    actions_.emplace_back(send_release{id, what.way.ask(now), deadline, what.caller});
}

void lock_table::on_release_reply(request_id id, const engines::release_reply& reply,
                                  clock::time_point now) {
    const auto request = take_request(id);
    const auto found = request ? releases_.find(request->of) : releases_.end();
    if (found == releases_.end()) {
        return;
    }
    auto& what = found->second;
    if (what.way.on_reply(reply, now, jitter())) {
        finish(what, now);
        return;
    }
    if (what.caller != 0 && what.way.refused()) {
        finish_call(what, now);
    }
    if (what.caller == 0) {
        let_queue_go_on(what, now);
    }
    timers_.arm(what.wake,
                what.caller != 0 ? std::min(what.way.wake_at(), what.tell_by) : what.way.wake_at());
}

void lock_table::on_release_timer(release_record& what, clock::time_point now) {
    if (what.caller != 0 && now >= what.tell_by) {
        finish_call(what, now);
    }
    if (what.way.asking()) {
        return;
    }
    if (what.way.over(now)) {
        finish(what, now);
    } else if (now >= what.way.wake_at()) {
        send(what, now);
    } else {
        timers_.arm(what.wake, what.way.wake_at());
    }
}

/// Tells the caller how it went so far, and lets the queue go on.
void lock_table::finish_call(release_record& what, clock::time_point now) {
    const auto outcome = what.way.outcome(what.held);
    const auto kind = outcome == release_outcome::unknown    ? event_kind::release_unconfirmed
                      : outcome == release_outcome::released ? event_kind::released
                                                             : event_kind::lost;
    tell(kind, what.request.name, what.request.owner, what.token, now - what.held_since,
         what.way.trouble());
    actions_.emplace_back(finish_release{std::exchange(what.caller, 0), outcome, what.way.trouble()});
    what.tell_by = clock::time_point::max();
    let_queue_go_on(what, now);
}

void lock_table::let_queue_go_on(release_record& what, clock::time_point now) {
    if (std::exchange(what.queue_waits, false)) {
        if (const auto found = names_.find(what.request.name);
            found != names_.end() && found->second.busy_with == what.id) {
            found->second.busy_with = 0;
        }
        contend_for_front(what.request.name, what.way.others_waiting(), now);
    }
}

void lock_table::finish(release_record& what, clock::time_point now) {
    if (what.caller != 0) {
        finish_call(what, now);
    }
    let_queue_go_on(what, now);
    if (what.at_shutdown && what.way.trouble() && !what.way.over(now)) {
        refused_at_shutdown_.push_back({what.request.name, what.token, what.way.trouble()});
    }
    timers_.disarm(what.wake);
    releases_.erase(what.id);
}

void lock_table::convert(hold_id which, claim_mode to, clock::time_point now) {
    const auto found = holds_.find(which);
    if (found == holds_.end() || !found->second.held() || now >= validity(found->second)) {
        actions_.emplace_back(finish_convert{which, {errc::lost, "the lease is over"}, {}});
        return;
    }
    auto& hold = found->second;
    if (to == claim_mode::exclusive && hold.unanswered) {
        // An old request for a share, arriving late, would take the exclusive lock away unnoticed.
        actions_.emplace_back(finish_convert{
            which,
            {errc::outcome_unknown, "an earlier request was never answered; acquire it anew"},
            {}});
        return;
    }
    std::uint32_t attempts = 1;
    if (to == claim_mode::shared) {
        // From now on the store may know no more than a share. It may already, if nobody knows what
        // became of an earlier attempt.
        attempts += std::exchange(hold.downgraded, true) ? 1 : 0;
        renewal_.change_mode(hold.tenure, to, now);
    }
    send_convert(hold, to, attempts, now);
}

void lock_table::send_convert(const hold_record& hold, claim_mode to, std::uint32_t attempts,
                              clock::time_point now) {
    const auto id = next_id();
    requests_.emplace(id, pending_request{pending_request::kind::convert,
                                          hold.id(),
                                          now,
                                          {},
                                          to,
                                          attempts,
                                          std::make_unique<engines::release_request>(hold.give_back()),
                                          gone_by(hold.how(), now)});
    // Replicas do not confirm a conversion: a store that gave back what too few of them have would give
    // back the whole lock.
    actions_.emplace_back(send_acquire{id,
                                       {.name = hold.name(),
                                        .mode = to,
                                        .owner = hold.tenure.owner,
                                        .ttl = hold.how().ttl,
                                        .kind = hold.tenure.kind,
                                        .converts = true},
                                       now + settings_.contention.request_timeout,
                                       hold.id()});
}

void lock_table::on_convert_reply(const pending_request& request, const engines::acquire_reply& reply,
                                  clock::time_point now) {
    using outcome = engines::acquire_reply::outcome;
    const auto found = holds_.find(request.of);
    if (found == holds_.end() || !found->second.held()) {
        const bool may_be_converted =
            reply.result == outcome::granted || reply.error.code == errc::outcome_unknown;
        bool was_given_back = true;
        if (found != holds_.end()) {
            auto& lost = found->second;
            lost.expires_by = gone_by(lost.how(), now);  // it may have been granted anew
            was_given_back = lost.how().max_hold && now >= lost.since + *lost.how().max_hold;
        }
        if (was_given_back && may_be_converted) {
            // Meanwhile. The store may have carried that out first.
            give_back_unused(*request.give_back, request.gone_by, now);
        }
        actions_.emplace_back(
            finish_convert{request.of, {errc::lost, "the lease ended meanwhile"}, {}});
        return;
    }
    auto& hold = found->second;
    if (reply.result != outcome::granted) {
        auto why = reply.result == outcome::busy ? failure{errc::busy, "other readers are there"}
                                                 : reply.error;
        if (reply.result == outcome::busy && request.to == claim_mode::shared) {
            // Its owner is always given a share of an exclusive lock.
            why = {errc::lost, "somebody else has it"};
        }
        if (why.code == errc::lost) {
            lose(hold, why, now);
            actions_.emplace_back(finish_convert{request.of, std::move(why), {}});
            return;
        }
        const bool unknown = reply.error.code == errc::outcome_unknown;
        hold.unanswered = hold.unanswered || unknown;
        // Asking for a share again does no harm, and settles what the store knows.
        constexpr std::uint32_t most_attempts = 3;
        if (unknown && request.to == claim_mode::shared && request.attempts < most_attempts &&
            now < validity(hold)) {
            send_convert(hold, request.to, request.attempts + 1, now);
            return;
        }
        const bool undone = request.to == claim_mode::shared && !unknown && request.attempts == 1;
        if (undone) {
            hold.downgraded = false;
            renewal_.change_mode(hold.tenure, hold.mode, now);
        }
        if (undone || request.to == claim_mode::exclusive) {
            actions_.emplace_back(finish_convert{request.of, std::move(why), {}});
            return;
        }
        // The store has a share in its name, or still the whole lock: all that a reader needs.
    }
    renewal_.change_mode(hold.tenure, request.to, now);
    hold.mode = request.to;
    // After a hand-over the store knows only where the block of tokens starts.
    hold.token = std::max(hold.token, reply.first_token);
    hold.downgraded = false;
    if (reply.incomplete) {
        renewal_.complete_soon(hold.tenure, now);
    }
    actions_.emplace_back(finish_convert{request.of, {}, hold.token});
    if (const auto record = names_.find(hold.name());
        record != names_.end() && record->second.busy_with == hold.id()) {
        record->second.busy_with = 0;  // a reader does not hand over to writers
        contend_for_front(hold.name(), 0, now);
    }
}

void lock_table::run_renewals(clock::time_point now) {
    for (const auto& what : renewal_.on_time(now)) {
        apply(what, now);
    }
    while (true) {
        auto batch = renewal_.next_batch(now);
        if (batch.ids.empty()) {
            return;
        }
        const auto id = next_id();
        requests_.emplace(id,
                          pending_request{pending_request::kind::renew, 0, now, std::move(batch.ids)});
        const auto deadline = std::min(now + settings_.contention.request_timeout, batch.useful_until);
        actions_.emplace_back(send_renew{id, std::move(batch.requests), deadline});
    }
}

void lock_table::on_renew_replies(request_id id, const std::vector<engines::renew_reply>& replies,
                                  clock::time_point now) {
    const auto request = take_request(id);
    if (!request) {
        return;
    }
    for (std::size_t i = 0; i < request->tenures.size(); ++i) {
        const auto found = holds_.find(request->tenures[i]);
        if (found == holds_.end() || found->second.lost) {
            continue;  // released or lost meanwhile
        }
        const engines::renew_reply missing{engines::renew_reply::outcome::failed,
                                           {errc::store_error, "an answer is missing"}};
        if (const auto what =
                renewal_.on_reply(found->second.tenure, i < replies.size() ? replies[i] : missing,
                                  request->sent_at, now)) {
            apply(*what, now);
        }
    }
}

void lock_table::apply(const renewal::event& what, clock::time_point now) {
    using kind = renewal::event::kind;
    const auto found = holds_.find(what.id);
    if (found == holds_.end() || found->second.lost) {
        return;
    }
    auto& hold = found->second;
    if (hold.vacant && what.what != kind::lost) {
        return;  // nobody to tell
    }
    const auto& owner = hold.tenure.owner;
    switch (what.what) {
        case kind::extended:
            tell(event_kind::renewed, hold.name(), owner, hold.token);
            actions_.emplace_back(set_validity{hold.id(), validity(hold)});
            break;
        case kind::failed:
            tell(event_kind::renewal_failed, hold.name(), owner, hold.token, {}, what.error);
            break;
        case kind::jeopardy:
            tell(event_kind::jeopardy, hold.name(), owner, hold.token);
            break;
        case kind::lost:
            lose(hold, what.error, now);
            break;
    }
}

}  // namespace holdfast::core
