#include <core/releases.hpp>

#include <algorithm>
#include <utility>

#include <core/loss_reason.hpp>

namespace holdfast::core {

release_record& releases::add(engines::release_request&& request, fencing_token token,
                              clock::time_point expires_by) {
    const auto id = out_.next_id();
    return releases_.try_emplace(id, id, std::move(request), token, expires_by).first->second;
}

void releases::send(release_record& back, clock::time_point now) {
    if (back.caller != 0 && back.tell_by <= now) {
        // Its caller does not wait. The release has its whole time all the same.
        finish_call(back, now);
    }
    const auto id = out_.next_id();
    requests_.emplace(id, back.id);
    if (back.caller != 0) {
        timers_.arm(back.wake, back.tell_by);
    } else {
        timers_.disarm(back.wake);
    }
    const auto deadline = std::min(now + request_timeout_, back.tell_by);
    out_.add(send_release{id, back.machine.ask(now), deadline, back.caller});
}

bool releases::has(const owner_id& owner) const {
    return std::any_of(releases_.begin(), releases_.end(),
                       [&](const auto& each) { return each.second.request.owner == owner; });
}

void releases::on_reply(request_id id, const engines::release_reply& reply, clock::time_point now) {
    const auto request = requests_.extract(id);
    const auto found = request.empty() ? releases_.end() : releases_.find(request.mapped());
    if (found == releases_.end()) {
        return;
    }
    auto& back = found->second;
    if (back.machine.on_reply(reply, now, out_.jitter())) {
        back.loss = back.machine.trouble() ? failure{} : reply.error;
        if (back.caller != 0 && back.held && back.loss.code != errc::revoked &&
            back.machine.outcome(back.held) == release_outcome::already_lost) {
            ask_for_reason(back, now);
        } else {
            finish(back, now);
        }
        return;
    }
    if (back.caller != 0 && back.machine.refused()) {
        finish_call(back, now);
    }
    if (back.caller == 0) {
        let_queue_go_on(back);
    }
    timers_.arm(back.wake, back.caller != 0 ? std::min(back.machine.wake_at(), back.tell_by)
                                            : back.machine.wake_at());
}

/// The lease was valid, and the store no longer has it. There is nothing left to release.
void releases::ask_for_reason(release_record& back, clock::time_point now) {
    const auto id = out_.next_id();
    requests_.emplace(id, back.id);
    const auto& lease = back.request;
    out_.add(send_renew{id,
                        {{lease.name, lease.mode, lease.owner, back.shortest_ttl, lease.kind}},
                        std::min(now + request_timeout_, back.tell_by)});
    let_queue_go_on(back);
    timers_.disarm(back.wake);
    gone_.insert(releases_.extract(back.id));
}

bool releases::on_reason(request_id id, const std::vector<engines::renew_reply>& replies,
                         clock::time_point now) {
    const auto request = requests_.find(id);
    const auto found = request == requests_.end() ? gone_.end() : gone_.find(request->second);
    if (found == gone_.end()) {
        return false;
    }
    requests_.erase(request);
    auto& back = found->second;
    if (back.caller != 0) {
        take_loss_reason(back.loss, replies);
        finish_call(back, now);
    }
    gone_.erase(found);
    return true;
}

void releases::on_time(clock::time_point now) {
    while (const auto* const due = timers_.pop_due(now)) {
        on_timer(releases_.at(due->id), now);
    }
}

void releases::on_timer(release_record& back, clock::time_point now) {
    if (back.caller != 0 && now >= back.tell_by) {
        finish_call(back, now);
    }
    if (back.machine.asking()) {
        return;
    }
    if (back.machine.over(now)) {
        finish(back, now);
    } else if (now >= back.machine.wake_at()) {
        send(back, now);
    } else {
        timers_.arm(back.wake, back.machine.wake_at());
    }
}

/// Tells the caller how it went so far, and lets the queue go on.
void releases::finish_call(release_record& back, clock::time_point now) {
    const auto outcome = back.machine.outcome(back.held);
    const auto& trouble = outcome == release_outcome::already_lost ? back.loss : back.machine.trouble();
    const auto kind = outcome == release_outcome::unknown    ? event_kind::release_unconfirmed
                      : outcome == release_outcome::released ? event_kind::released
                                                             : event_kind::lost;
    out_.tell(kind, back.request.name, back.request.owner, back.token, now - back.held_since, trouble);
    out_.add(finish_release{std::exchange(back.caller, 0), outcome, trouble});
    back.tell_by = clock::time_point::max();
    let_queue_go_on(back);
}

void releases::let_queue_go_on(release_record& back) {
    if (auto* const site = std::exchange(back.awaited_at, nullptr); site != nullptr) {
        places_.free(*site, back.machine.others_waiting());
    }
}

void releases::finish(release_record& back, clock::time_point now) {
    if (back.caller != 0) {
        finish_call(back, now);
    }
    let_queue_go_on(back);
    if (back.at_shutdown && back.machine.trouble() && !back.machine.over(now)) {
        refused_at_shutdown_.push_back({back.request.name, back.token, back.machine.trouble()});
    }
    timers_.disarm(back.wake);
    releases_.erase(back.id);
}

void releases::finish_calls(clock::time_point now) {
    for (auto* const some : {&releases_, &gone_}) {
        for (auto& [id, back] : *some) {
            if (back.caller != 0) {
                finish_call(back, now);
            }
        }
    }
}

std::vector<unreleased_lock> releases::unreleased() const {
    auto result = refused_at_shutdown_;
    for (const auto& [id, back] : releases_) {
        auto reason = back.machine.trouble();
        if (!reason) {
            reason = {errc::outcome_unknown, "the store has not answered its release yet"};
        }
        result.push_back({back.request.name, back.token, std::move(reason)});
    }
    return result;
}

}  // namespace holdfast::core
