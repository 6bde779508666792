#include <core/contests.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace holdfast::core {

namespace {

/// Why the store does not answer `asker`, for a waiter that waits with it. Only the asker is in doubt.
[[nodiscard]] failure trouble_for(waiter_id id, waiter_id asker, failure trouble) {
    if (trouble.code == errc::outcome_unknown && id != asker) {
        trouble.code = errc::store_unavailable;
    }
    return trouble;
}

/// Whether the contest asks for what this waiter wants. Otherwise the store might answer it otherwise.
[[nodiscard]] bool suits(const contest& contender, const waiter& call) {
    return call.terms->interchangeable(*contender.terms) &&
           call.request.kind == contender.machine.claim().kind;
}

}  // namespace

void contests::add(waiter& call, clock::time_point now) {
    if (!call.request.asks_in_turn()) {
        start(call, now, now);
        return;
    }
    places_.line_of(call.site).turns.add_newcomer(call.id, call.request);
    let_newcomers_ask(call.site, now);
    if (call.own_contest == nullptr) {
        out_.tell(event_kind::contended, call.request.name);
    }
}

void contests::contend_for_front(place& site, clock::time_point now) {
    const bool others_wait = std::exchange(site.others_waiting, 0) > 0;
    if (shut_down_ || !site.idle() || !site.waiting || site.waiting->queue.empty()) {
        return;
    }
    const auto courtesy =
        others_wait
            ? std::chrono::duration_cast<clock::duration>(settings_.courtesy * (1.0 + out_.jitter()))
            : clock::duration::zero();
    start(waiters_.at(site.waiting->queue.front()), now + courtesy, now);
}

void contests::start(waiter& first, clock::time_point not_before, clock::time_point now) {
    auto& site = first.site;
    const auto id = out_.next_id();
    const auto& [name, mode, permits, limit, terms, deadline, wait, kind] = first.request;
    engines::acquire_request request{*site.name, mode, permits, limit, out_.next_owner(),
                                     terms.ttl,  1,    kind,    wait,  terms.replicas};
    auto& who =
        contests_
            .try_emplace(id, id, site, acquisition{std::move(request), terms, settings_}, first.terms)
            .first->second;
    if (site.watched) {
        who.machine.set_listening();
    }
    auto& here = places_.line_of(site);
    who.in_turn = first.request.asks_in_turn();
    if (who.in_turn) {
        here.turns.add(who);
    } else {
        here.contests.push_back(&who);
    }
    if (first.request.queues_here()) {
        site.contender = &who;
    } else {
        who.sole = first.id;
        first.own_contest = &who;
    }
    if (not_before > now) {
        who.machine.hold_back(not_before);
        step(who, acquisition::verdict::nothing, now);
    } else {
        ask(who, now);
    }
}

void contests::ask(contest& contender, clock::time_point now) {
    const auto wanted =
        contender.for_queue() ? contender.site.waiting->queue.tokens_wanted(limits_) : 1;
    timers_.disarm(contender.wake);
    const auto id = out_.next_id();
    requests_.emplace(id, contender.id);
    // A call may overrun its own deadline by this much rather than be cut off while the answer is
    // coming.
    constexpr std::chrono::milliseconds least{50};
    auto deadline = now + settings_.request_timeout;
    contender.asker = 0;
    if (const auto* const first = first_of(contender); first != nullptr) {
        contender.asker = first->id;
        contender.machine.set_queueing(first->request.wait);
        if (const auto& own = first->request.deadline) {
            deadline = std::min(deadline, std::max<clock::time_point>(*own, now + least));
        }
    }
    contender.answer_by = deadline;
    out_.add(send_acquire{id, contender.machine.ask(now, wanted), deadline, contender.asker});
}

/// Carries out what an acquisition decided, short of a grant.
void contests::step(contest& contender, acquisition::verdict verdict, clock::time_point now) {
    if (verdict == acquisition::verdict::ask) {
        ask(contender, now);
        return;
    }
    if (contender.machine.wake_at() != clock::time_point::max()) {
        timers_.arm(contender.wake, contender.machine.wake_at());
    }
    if (contender.machine.contended() && !contender.site.watched) {
        out_.tell(event_kind::contended, *contender.site.name);
    }
    places_.touch(contender.site);
}

void contests::on_reply(request_id id, const engines::acquire_reply& reply, clock::time_point now) {
    const auto request = requests_.extract(id);
    const auto found = request.empty() ? contests_.end() : contests_.find(request.mapped());
    if (found == contests_.end()) {
        return;
    }
    auto& contender = found->second;
    if (!contender.in_turn) {
        settle(contender, contender.machine.on_reply(reply, now, out_.jitter()), reply, now);
        return;
    }
    auto& site = contender.site;
    const auto asked = contender.machine.claim();
    const auto verdict = contender.machine.on_reply(reply, now, out_.jitter());
    settle(contender, verdict, reply, now);
    const auto still = contests_.find(request.mapped());
    let_others_ask(site, still == contests_.end() ? nullptr : &still->second, asked, verdict, reply,
                   now);
}

void contests::settle(contest& contender, acquisition::verdict verdict,
                      const engines::acquire_reply& reply, clock::time_point now) {
    switch (verdict) {
        case acquisition::verdict::granted:
            settle_grant(contender, reply, now);
            return;
        case acquisition::verdict::expired_grant:
            settle_late_grant(contender, now);
            return;
        case acquisition::verdict::failed:
        case acquisition::verdict::ask:
        case acquisition::verdict::nothing:
            settle_without_grant(contender, verdict, now);
            return;
    }
}

void contests::settle_grant(contest& contender, const engines::acquire_reply& reply,
                            clock::time_point now) {
    if (!serves_front(contender)) {
        clean_up(contender.machine, now);
        end(contender);
        return;
    }
    const auto& first = *first_of(contender);
    auto& hold = holds_.add(first.id, contender, first.terms, reply.incomplete);
    auto token = reply.first_token;
    if (contender.for_queue()) {
        auto& site = contender.site;
        auto& queue = site.waiting->queue;
        queue.begin(reply.first_token, reply.token_count, now);
        token = queue.next_token();
        queue.pop();
        site.contender = nullptr;
        site.holder = &hold;
        hold.serves = &site;
    }
    holds_.begin(hold, token, event_kind::acquired, waiters_.remove(first.id), now);
    end(contender);
}

/// The lease was over before we knew that we had it.
void contests::settle_late_grant(contest& contender, clock::time_point now) {
    clean_up(contender.machine, now);
    contender.machine.restart(out_.next_owner());
    for (const auto id : waiters_of(contender)) {
        auto& waits = waiters_.at(id);
        if (!waits.request.wait || waits.overdue) {
            fail(waits,
                 {errc::store_unavailable, "the store's answer took longer than the lease lasts"}, now);
        }
    }
    if (serves_front(contender)) {
        ask(contender, now);
    } else {
        give_up(contender, now);
    }
}

/// Busy, no answer, or refused: those who asked once are told, and those whose patience is over.
void contests::settle_without_grant(contest& contender, acquisition::verdict verdict,
                                    clock::time_point now) {
    const auto& trouble = contender.machine.trouble();
    const bool refused = verdict == acquisition::verdict::failed;
    const bool out_of_patience =
        trouble && !refused && now - contender.machine.trouble_since() >= settings_.outage_patience;
    if (contender.in_turn && out_of_patience) {
        // Those who have not asked yet know no better.
        for (const auto id : contender.site.waiting->turns.newcomers()) {
            if (auto& newcomer = waiters_.at(id); !newcomer.request.deadline) {
                fail(newcomer, trouble_for(id, contender.asker, trouble), now);
            }
        }
    }
    for (const auto id : waiters_of(contender)) {
        auto& waits = waiters_.at(id);
        if (suits(contender, waits) && (refused || !waits.request.wait || waits.overdue ||
                                        (out_of_patience && !waits.request.deadline))) {
            fail(waits,
                 trouble ? trouble_for(id, contender.asker, trouble)
                         : failure{errc::busy, "somebody else holds it"},
                 now);
        }
    }
    if (serves_front(contender)) {
        step(contender, verdict, now);
    } else {
        give_up(contender, now);
    }
}

/// Ends a contest that has no request under way. If somebody is left in its queue, another begins.
void contests::give_up(contest& contender, clock::time_point now) {
    if (contender.machine.leaves_traces()) {
        clean_up(contender.machine, now);
    }
    end(contender);
}

void contests::end(contest& contender) {
    auto& site = contender.site;
    if (contender.in_turn) {
        site.waiting->turns.remove(contender);
    } else {
        std::erase(site.waiting->contests, &contender);
    }
    if (site.contender == &contender) {
        places_.free(site);
    }
    places_.touch(site);
    timers_.disarm(contender.wake);
    contests_.erase(contender.id);
}

/// Takes back a grant that nobody wants, or that may be there without our knowing.
void contests::clean_up(const acquisition& after, clock::time_point now) {
    const auto& claim = after.claim();
    // One who stands in line may be granted it as long as its place lasts.
    const auto in_line = after.stood_in_line() ? settings_.line_patience : clock::duration::zero();
    releases_.send(releases_.add({claim.name, claim.mode, claim.owner, {}, claim.kind}, {},
                                 now + in_line + claim.ttl),
                   now);
}

void contests::on_hint(place& site, clock::time_point now) {
    if (!site.waiting) {
        return;
    }
    for (auto* const each : site.waiting->contests) {
        step(*each, each->machine.on_hint(), now);
    }
    let_first_ask(site.waiting->turns, now);
}

bool contests::on_turn(place& site, const owner_id& owner,
                       const std::optional<engines::turn_grant>& granted, clock::time_point now) {
    if (!site.waiting) {
        return false;
    }
    const auto& here = site.waiting->contests;
    const auto found = std::find_if(
        here.begin(), here.end(), [&](const contest* each) { return each->machine.owner() == owner; });
    if (found == here.end()) {
        return false;
    }
    auto& contender = **found;
    const auto verdict =
        granted ? contender.machine.on_turn(*granted, now) : contender.machine.on_hint();
    if (verdict != acquisition::verdict::granted) {
        step(contender, verdict, now);
        return true;
    }
    engines::acquire_reply reply;
    reply.result = engines::acquire_reply::outcome::granted;
    reply.first_token = granted->first_token;
    reply.token_count = granted->token_count;
    settle_grant(contender, reply, now);
    return true;
}

void contests::on_time(clock::time_point now) {
    while (const auto* const due = timers_.pop_due(now)) {
        auto& contender = contests_.at(due->id);
        step(contender, contender.machine.on_wake(), now);
    }
}

/// Somebody came, left or was answered.
void contests::let_newcomers_ask(place& site, clock::time_point now) {
    while (!shut_down_ && site.waiting) {
        const auto next = site.waiting->turns.take_next(settings_.most_asking);
        if (!next) {
            return;
        }
        start(waiters_.at(*next), now, now);
    }
}

/// The name may have become free: the first contender finds out for the others. Answers to requests
/// under way may be older than the news: if they are "busy", they do not count.
void contests::let_first_ask(asking_turns& turns, clock::time_point now) {
    bool asks = false;
    for (auto* const each : turns.contests()) {
        if (waiters_.find(each->sole) != nullptr && (!asks || each->machine.asking())) {
            step(*each, each->machine.on_hint(), now);
            asks = asks || each->machine.asking();
        }
    }
}

/// What the answer to one contender means for the others. Null: its contest is over.
void contests::let_others_ask(place& site, const contest* asker, const engines::acquire_request& asked,
                              acquisition::verdict verdict, const engines::acquire_reply& reply,
                              clock::time_point now) {
    auto& turns = site.waiting->turns;
    const bool busy = reply.result == engines::acquire_reply::outcome::busy;
    const auto let_smaller_ask = [&] {
        if (auto* const smaller = turns.smaller_refused(asked.permits); smaller != nullptr) {
            step(*smaller, smaller->machine.on_hint(), now);
        }
    };
    if (asker != nullptr && asker->machine.asking()) {
        // It was told of something meanwhile, and asks again.
        if (busy) {
            let_smaller_ask();
            const auto newcomer = turns.take_smaller(asked.permits, settings_.most_asking);
            if (newcomer) {
                start(waiters_.at(*newcomer), now, now);
            }
        }
        return;
    }
    if (verdict == acquisition::verdict::granted) {
        turns.widen(asked.mode);
        while (auto* const next = turns.next_refused(settings_.most_asking)) {
            step(*next, next->machine.on_hint(), now);
        }
    } else if (busy && verdict == acquisition::verdict::nothing) {
        turns.narrow();
        let_smaller_ask();
    } else {
        // It does not know, or was told of something and has left.
        turns.narrow();
        let_first_ask(turns, now);
    }
    let_newcomers_ask(site, now);
}

void contests::finish_waiter(waiter& call, const failure& reason, clock::time_point now) {
    auto& site = call.site;
    auto* const contender = contest_for(call);
    const bool in_turn = call.request.asks_in_turn();
    fail(call, reason, now);
    if (contender != nullptr && !contender->machine.asking() && !serves_front(*contender)) {
        give_up(*contender, now);
    }
    if (in_turn) {
        let_newcomers_ask(site, now);
    }
}

/// The contest that served it is not looked at.
void contests::fail(waiter& call, const failure& reason, clock::time_point now) {
    if (auto* const here = call.site.waiting.get(); here != nullptr) {
        here->queue.remove(call.id);
        here->turns.remove_newcomer(call.id);
    }
    places_.touch(call.site);
    waiters_.fail(call, reason, now);
}

void contests::on_deadline(waiter& call, clock::time_point now) {
    // For an engine that does not keep its deadline, or a thread that does not get to run.
    constexpr std::chrono::seconds grace{1};
    const auto* const contender = contest_for(call);
    if (contender != nullptr && contender->asker == call.id && contender->machine.asking() &&
        !contender->machine.contended() && now < contender->answer_by + grace) {
        call.overdue = true;
        waiters_.set_deadline(call, contender->answer_by + grace);
        return;
    }
    finish_waiter(call, reason_to_give_up(call, now), now);
}

/// Why a call that ran out of time did not get the lock. One for whom nothing was asked knows that it
/// has nothing: the lock was busy, unless the store does not answer the others either.
failure contests::reason_to_give_up(const waiter& call, clock::time_point now) const {
    constexpr std::chrono::milliseconds long_silence{500};
    const auto own = contest_for(call);
    std::span<contest* const> ahead{&own, own != nullptr ? 1U : 0U};
    if (own == nullptr && call.request.asks_in_turn()) {
        ahead = call.site.waiting->turns.contests();
    }
    bool silent = false;
    bool answered = false;
    for (const contest* const each : ahead) {
        const auto& machine = each->machine;
        // The store's last word was "busy", and the only request since then had no longer than this
        // call: whether the engine gives up on it before or after us says nothing about the store.
        const bool cut_short = each->asker == call.id && machine.contended() && call.request.deadline &&
                               machine.trouble_since() == machine.sent_at() &&
                               each->answer_by >= *call.request.deadline;
        if (machine.trouble() && !cut_short) {
            return trouble_for(call.id, each->asker, machine.trouble());
        }
        const bool unheard = machine.asking() && !machine.contended();
        if (unheard && each->asker == call.id) {
            return {errc::outcome_unknown, "the store has not answered yet"};
        }
        const bool silence = unheard && now - machine.sent_at() >= long_silence;
        silent = silent || silence;
        answered = answered || !silence;
    }
    return silent && !answered ? failure{errc::store_unavailable, "the store has not answered yet"}
                               : failure{errc::busy, "somebody else held it the whole time"};
}

/// Null: nothing is asked for this call.
contest* contests::contest_for(const waiter& call) {
    return call.request.queues_here() ? call.site.contender : call.own_contest;
}

/// The waiter that gets what the contest brings; null: nobody.
waiter* contests::first_of(const contest& contender) const {
    if (!contender.for_queue()) {
        return waiters_.find(contender.sole);
    }
    const auto& queue = contender.site.waiting->queue;
    return queue.empty() ? nullptr : waiters_.find(queue.front());
}

std::vector<waiter_id> contests::waiters_of(const contest& contender) const {
    if (contender.for_queue()) {
        return contender.site.waiting->queue.all();
    }
    return waiters_.find(contender.sole) != nullptr ? std::vector{contender.sole}
                                                    : std::vector<waiter_id>{};
}

/// False when everybody left, or when the one it was meant for did and the next wants other terms.
bool contests::serves_front(const contest& contender) const {
    const auto* const first = first_of(contender);
    return first != nullptr && suits(contender, *first);
}

std::vector<std::string> contests::names() const {
    std::vector<std::string> names;
    for (const auto& [id, contender] : contests_) {
        names.push_back(*contender.site.name);
    }
    return names;
}

}  // namespace holdfast::core
