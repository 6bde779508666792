#include <core/lock_table.hpp>

#include <utility>

namespace holdfast::core {

namespace {

/// What keeps the store from answering `asker`, for one who waits with it. Only who has asked is in
/// doubt.
[[nodiscard]] failure trouble_for(waiter_id who, waiter_id asker, failure trouble) {
    if (trouble.code == errc::outcome_unknown && who != asker) {
        trouble.code = errc::store_unavailable;
    }
    return trouble;
}

}  // namespace

void lock_table::start_contest(name_record& where, const waiter& first, clock::time_point not_before,
                               clock::time_point now) {
    const auto id = next_id();
    engines::acquire_request request{*where.name,
                                     first.what.mode,
                                     first.what.permits,
                                     first.what.limit,
                                     next_owner(),
                                     first.what.how.ttl,
                                     1,
                                     first.what.kind,
                                     first.what.wait,
                                     first.what.how.replicas};
    auto& who = contests_
                    .try_emplace(id, id, where.name,
                                 acquisition{std::move(request), first.what.how, settings_.contention},
                                 shared(first.what.how))
                    .first->second;
    if (where.watched) {
        who.way.set_listening();
    }
    line_of(where).contests.push_back(id);
    if (first.what.queues_here()) {
        where.busy_with = id;
    } else {
        who.sole = first.id;
        who.in_turn = first.what.asks_in_turn();
        waiters_.at(first.id).own_contest = id;
    }
    if (not_before > now) {
        who.way.hold_back(not_before);
        step(who, acquisition::verdict::nothing, now);
    } else {
        ask(who, now);
    }
}

/// The lock left our hands while others wait for it here: contend again. If other processes wait too,
/// they go first.
void lock_table::contend_for_front(const std::string& name, std::uint32_t others_waiting,
                                   clock::time_point now) {
    const auto found = names_.find(name);
    if (found == names_.end()) {
        return;
    }
    auto& where = found->second;
    if (where.waiting && !where.waiting->queue.empty() && where.idle() && !shut_down_) {
        const auto courtesy =
            others_waiting > 0 ? settings_.contention.courtesy : clock::duration::zero();
        start_contest(where, waiters_.at(where.waiting->queue.front()),
                      now + std::chrono::duration_cast<clock::duration>(courtesy * (1.0 + jitter())),
                      now);
    }
    tidy(name);
}

void lock_table::ask(contest& who, clock::time_point now) {
    const auto wanted = who.for_queue() ? queue_of(who).tokens_wanted(settings_.handover) : 1;
    timers_.disarm(who.wake);
    const auto id = next_id();
    requests_.emplace(id, pending_request{pending_request::kind::acquire, who.id, now});
    // A call may overrun its own deadline by this much rather than be cut off while the answer is
    // coming.
    constexpr std::chrono::milliseconds least{50};
    auto deadline = now + settings_.contention.request_timeout;
    const auto on_behalf = first_of(who);
    if (on_behalf != 0) {
        const auto& waits = waiters_.at(on_behalf).what;
        who.way.set_queueing(waits.wait);
        if (waits.deadline) {
            deadline = std::min(deadline, std::max<clock::time_point>(*waits.deadline, now + least));
        }
    }
    who.asker = on_behalf;
    who.answer_by = deadline;
    actions_.emplace_back(send_acquire{id, who.way.ask(now, wanted), deadline, on_behalf});
}

void lock_table::on_acquire_reply(request_id id, const engines::acquire_reply& reply,
                                  clock::time_point now) {
    const auto request = take_request(id);
    if (!request) {
        return;
    }
    if (request->what == pending_request::kind::convert) {
        on_convert_reply(*request, reply, now);
        return;
    }
    const auto found = contests_.find(request->of);
    if (found != contests_.end()) {
        auto& who = found->second;
        const auto asked =
            who.in_turn ? std::optional{who.way.claim()} : std::optional<engines::acquire_request>{};
        const auto verdict = who.way.on_reply(reply, now, jitter());
        settle(who, verdict, reply, now);
        if (asked) {
            after_asking(request->of, *asked, verdict, reply, now);
        }
    }
}

void lock_table::settle(contest& who, acquisition::verdict verdict, const engines::acquire_reply& reply,
                        clock::time_point now) {
    switch (verdict) {
        case acquisition::verdict::granted:
            settle_grant(who, reply, now);
            return;
        case acquisition::verdict::expired_grant:
            settle_late_grant(who, now);
            return;
        case acquisition::verdict::failed:
        case acquisition::verdict::ask:
        case acquisition::verdict::nothing:
            if (!settle_without_grant(who, verdict, now)) {
                step(who, verdict, now);
            }
            return;
    }
}

/// The lease was over before we knew that we had it.
void lock_table::settle_late_grant(contest& who, clock::time_point now) {
    const auto id = who.id;
    clean_up(who.way, now);
    who.way.restart(next_owner());
    for (const auto one : waiters_of(who)) {
        if (!waiters_.at(one).what.wait || waiters_.at(one).overdue) {
            finish_waiter(
                one, {errc::store_unavailable, "the store's answer took longer than the lease lasts"},
                now);
        }
    }
    if (!contests_.contains(id)) {
        return;
    }
    if (serves_front(who)) {
        ask(who, now);
    } else {
        start_over(who, now);
    }
}

void lock_table::settle_grant(contest& who, const engines::acquire_reply& reply,
                              clock::time_point now) {
    const auto first = first_of(who);
    if (!serves_front(who)) {
        clean_up(who.way, now);
        const auto name = who.name;
        end_contest(who);
        contend_for_front(*name, 0, now);
        return;
    }
    auto& hold = holds_[first];
    hold.mode = who.way.claim().mode;
    hold.unanswered = who.way.unanswered();
    hold.contended = who.way.contended();
    hold.tenure.name = who.name;
    hold.tenure.how = shared(waiters_.at(first).what.how);
    hold.tenure.owner = who.way.owner();
    hold.tenure.mode = hold.mode;
    hold.tenure.kind = who.way.claim().kind;
    renewal_.add(hold.tenure, first, who.way.sent_at(), who.way.ttl(), reply.incomplete);
    auto token = reply.first_token;
    if (who.for_queue()) {
        names_.at(*who.name).busy_with = first;
        auto& queue = queue_of(who);
        queue.begin(reply.first_token, reply.token_count, now);
        token = queue.next_token();
        queue.pop();
    }
    grant(first, hold, token, event_kind::acquired, now);
    end_contest(who);
}

/// Busy, no answer, or refused: those who asked once are told, and those whose patience is over. True
/// when nobody is left and the contest is over.
bool lock_table::settle_without_grant(contest& who, acquisition::verdict verdict,
                                      clock::time_point now) {
    const auto id = who.id;
    const auto trouble = who.way.trouble();
    const auto asker = who.asker;
    const bool refused = verdict == acquisition::verdict::failed;
    const auto terms = who.how;
    const auto kind = who.way.claim().kind;
    const bool out_of_patience =
        trouble && !refused && now - who.way.trouble_since() >= settings_.contention.outage_patience;
    if (who.in_turn && out_of_patience) {
        // Those who have not asked yet know no better.
        for (const auto one : std::vector{names_.at(*who.name).waiting->standing}) {
            if (!waiters_.at(one).what.deadline) {
                finish_waiter(one, trouble_for(one, asker, trouble), now);
            }
        }
    }
    for (const auto one : waiters_of(who)) {
        const auto& waits = waiters_.at(one).what;
        if (!waits.how.interchangeable(*terms) || waits.kind != kind) {
            continue;  // the store might answer it otherwise
        }
        if (refused || !waits.wait || waiters_.at(one).overdue ||
            (out_of_patience && !waits.deadline)) {
            finish_waiter(one,
                          trouble ? trouble_for(one, asker, trouble)
                                  : failure{errc::busy, "somebody else holds it"},
                          now);
        }
    }
    if (!contests_.contains(id)) {
        return true;
    }
    if (serves_front(who)) {
        return false;
    }
    start_over(who, now);
    return true;
}

/// False when everybody left, or when the one it was meant for did and the next wants other terms.
bool lock_table::serves_front(const contest& who) const {
    const auto first = first_of(who);
    return first != 0 && waiters_.at(first).what.how.interchangeable(*who.how) &&
           waiters_.at(first).what.kind == who.way.claim().kind;
}

/// Ends a contest that has no request under way. If somebody is left in its queue, another begins.
void lock_table::start_over(contest& who, clock::time_point now) {
    if (who.way.leaves_traces()) {
        clean_up(who.way, now);
    }
    const auto name = who.name;
    const bool for_queue = who.for_queue();
    end_contest(who);
    if (for_queue) {
        contend_for_front(*name, 0, now);
    }
}

/// Carries out what an acquisition decided, short of a grant.
void lock_table::step(contest& who, acquisition::verdict verdict, clock::time_point now) {
    if (verdict == acquisition::verdict::ask) {
        ask(who, now);
        return;
    }
    if (who.way.wake_at() != clock::time_point::max()) {
        timers_.arm(who.wake, who.way.wake_at());
    }
    if (who.way.contended() && !names_.at(*who.name).watched) {
        tell(event_kind::contended, *who.name, client_, {});
    }
    tidy(*who.name);
}

std::vector<waiter_id> lock_table::waiters_of(const contest& who) const {
    if (who.for_queue()) {
        return queue_of(who).all();
    }
    return waiters_.contains(who.sole) ? std::vector{who.sole} : std::vector<waiter_id>{};
}

waiter_id lock_table::first_of(const contest& who) const {
    if (who.for_queue()) {
        const auto& queue = queue_of(who);
        return queue.empty() ? 0 : queue.front();
    }
    return waiters_.contains(who.sole) ? who.sole : 0;
}

/// The queue that a contest works for.
local_queue& lock_table::queue_of(const contest& who) {
    return names_.at(*who.name).waiting->queue;
}

const local_queue& lock_table::queue_of(const contest& who) const {
    return names_.at(*who.name).waiting->queue;
}

/// The contest that works for a call, if there is one.
lock_table::contest* lock_table::contest_for(const waiter& who) {
    const auto found =
        contests_.find(who.what.queues_here() ? names_.at(who.what.name).busy_with : who.own_contest);
    return found == contests_.end() ? nullptr : &found->second;
}

/// A call whose own request is under way ends with the answer: the engine has until `answer_by`.
void lock_table::on_deadline(waiter& who, clock::time_point now) {
    // For an engine that does not keep its deadline, or a thread that does not get to run.
    constexpr std::chrono::seconds grace{1};
    const auto* const contender = contest_for(who);
    if (contender != nullptr && contender->asker == who.id && contender->way.asking() &&
        !contender->way.contended() && now < contender->answer_by + grace) {
        who.overdue = true;
        timers_.arm(who.deadline, contender->answer_by + grace);
        return;
    }
    finish_waiter(who.id, reason_to_give_up(who, now), now);
}

/// Why a call that ran out of time did not get the lock. One for whom nothing was asked knows that it
/// has nothing: the lock was busy, unless the store does not answer the others either.
failure lock_table::reason_to_give_up(const waiter& who, clock::time_point now) const {
    constexpr std::chrono::milliseconds long_silence{500};
    const auto& where = names_.at(who.what.name);
    const auto own = who.what.queues_here() ? where.busy_with : who.own_contest;
    const bool stands = own == 0 && who.what.asks_in_turn();
    bool silent = false;
    bool answered = false;
    for (const auto id : where.waiting->contests) {
        const auto& ahead = contests_.at(id);
        if (stands ? !ahead.in_turn : id != own) {
            continue;
        }
        // The store's last word was "busy", and the only request since then had no longer than this
        // call: whether the engine gives up on it before or after us says nothing about the store.
        const bool cut_short = ahead.asker == who.id && ahead.way.contended() && who.what.deadline &&
                               ahead.way.trouble_since() == ahead.way.sent_at() &&
                               ahead.answer_by >= *who.what.deadline;
        if (ahead.way.trouble() && !cut_short) {
            return trouble_for(who.id, ahead.asker, ahead.way.trouble());
        }
        const bool unheard = ahead.way.asking() && !ahead.way.contended();
        if (unheard && ahead.asker == who.id) {
            return {errc::outcome_unknown, "the store has not answered yet"};
        }
        const bool silence = unheard && now - ahead.way.sent_at() >= long_silence;
        silent = silent || silence;
        answered = answered || !silence;
    }
    return silent && !answered ? failure{errc::store_unavailable, "the store has not answered yet"}
                               : failure{errc::busy, "somebody else held it the whole time"};
}

/// Ends a call without a lock. The contest goes on if others wait for it, or if an answer is still due.
void lock_table::finish_waiter(waiter_id who, const failure& why, clock::time_point now) {
    auto node = waiters_.extract(who);
    const auto& left = node.mapped();
    timers_.disarm(node.mapped().deadline);
    auto& record = names_.at(left.what.name);
    if (record.waiting && record.waiting->queue.remove(who)) {
        offer_again(record, now);
    }
    if (record.waiting && left.own_contest == 0 && left.what.asks_in_turn()) {
        std::erase(record.waiting->standing, who);
    }
    if (auto* const contender = contest_for(left);
        contender != nullptr && !contender->way.asking() && !serves_front(*contender)) {
        start_over(*contender, now);
    }
    tell(event_kind::not_acquired, left.what.name, client_, {}, now - left.since, why);
    actions_.emplace_back(finish_acquire{who, why, {}, {}, {}});
    if (left.what.asks_in_turn()) {
        let_some_ask(left.what.name, now);
    }
    tidy(left.what.name);
}

void lock_table::end_contest(contest& who) {
    auto& record = names_.at(*who.name);
    std::erase(record.waiting->contests, who.id);
    if (record.busy_with == who.id) {
        record.busy_with = 0;
    }
    timers_.disarm(who.wake);
    const auto name = who.name;
    contests_.erase(who.id);
    tidy(*name);
}

/// Takes back a grant that nobody wants, or that may be there without our knowing.
void lock_table::clean_up(const acquisition& after, clock::time_point now) {
    const auto& claim = after.claim();
    // One who stands in line may be granted it as long as its place lasts.
    const auto in_line =
        after.stood_in_line() ? settings_.contention.line_patience : clock::duration::zero();
    send(add_release({claim.name, claim.mode, claim.owner, {}, claim.kind}, {},
                     now + in_line + claim.ttl),
         now);
}

}  // namespace holdfast::core
