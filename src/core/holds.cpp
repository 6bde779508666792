#include <core/holds.hpp>

#include <utility>

#include <core/loss_reason.hpp>

namespace holdfast::core {

hold_record& holds::add(hold_id id, const contest& granted, shared_terms its_terms, bool incomplete) {
    const auto& machine = granted.machine;
    auto& hold = holds_[id];
    hold.mode = machine.claim().mode;
    hold.unanswered = machine.unanswered();
    hold.contended = machine.contended();
    hold.tenure.name = granted.site.name;
    hold.tenure.terms = std::move(its_terms);
    hold.tenure.owner = machine.owner();
    hold.tenure.mode = hold.mode;
    hold.tenure.kind = machine.claim().kind;
    renewal_.add(hold.tenure, id, machine.sent_at(), machine.ttl(), incomplete);
    return hold;
}

void holds::begin(hold_record& hold, fencing_token token, event_kind kind,
                  clock::time_point waited_since, clock::time_point now) {
    hold.token = token;
    hold.since = now;
    hold.offered_to = 0;
    hold.longest.id = hold.id();
    if (hold.its_terms().max_hold) {
        longest_.arm(hold.longest, hold.ends_at());
    }
    out_.tell(kind, hold.name(), hold.tenure.owner, token, now - waited_since);
    out_.add(finish_acquire{hold.id(),
                            {},
                            hold.tenure.owner,
                            token,
                            hold.valid_until(),
                            hold.tenure.name,
                            hold.ends_at(),
                            hold.tenure.jeopardy()});
}

void holds::pass_on(hold_record& hold, hold_id next, const shared_terms& its_terms) {
    const auto former = hold.id();
    auto node = holds_.extract(former);  // the record itself stays where it is
    node.key() = next;
    holds_.insert(std::move(node));
    if (hold.tenure.asked_for()) {
        for (auto& [id, request] : requests_) {
            std::replace(request.tenures.begin(), request.tenures.end(), former, next);
        }
    }
    renewal_.pass_on(hold.tenure, next, its_terms);
}

hold_record* holds::find(hold_id id) {
    const auto found = holds_.find(id);
    return found == holds_.end() ? nullptr : &found->second;
}

/// The lease is over: it is not renewed or handed over any more.
void holds::detach(hold_record& hold) {
    longest_.disarm(hold.longest);
    renewal_.remove(hold.tenure);
    if (auto* const site = std::exchange(hold.serves, nullptr); site != nullptr) {
        places_.free(*site);
    }
}

/// To be sent when nothing of the hold is renewed any more. A queue that it serves waits for the
/// answer.
release_record& holds::begin_release(hold_record& hold, std::chrono::milliseconds linger,
                                     clock::time_point now) {
    auto& back = releases_.add(hold.give_back(linger), hold.token, gone_by(hold.its_terms(), now));
    back.at_shutdown = shut_down_;
    if (auto* const site = std::exchange(hold.serves, nullptr); site != nullptr) {
        site->holder = nullptr;
        site->awaits_release = true;
        back.awaited_at = site;
    }
    return back;
}

void holds::release(hold_record& hold, std::chrono::milliseconds linger, clock::time_point now) {
    if (hold.lost) {
        // Nothing to wait for. If the store still has it, free it rather than let its ttl run.
        if (now < hold.expires_by) {
            releases_.send(releases_.add(hold.give_back(linger), hold.token, hold.expires_by), now);
        }
        out_.add(finish_release{hold.id(), release_outcome::already_lost, {}});
        forget(hold);
        return;
    }
    auto& back = begin_release(hold, linger, now);
    back.caller = hold.id();
    back.held = true;
    back.held_since = hold.since;
    back.shortest_ttl = hold.its_terms().shortest_ttl;
    back.tell_by = now + hold.its_terms().release_timeout;
    // Renewal stops before the release is sent, or a late renewal could be answered after it.
    detach(hold);
    forget(hold);
    releases_.send(back, now);
}

void holds::end_without_release(hold_record& hold, clock::time_point now) {
    out_.tell(event_kind::released, hold.name(), hold.tenure.owner, hold.token, now - hold.since);
    out_.add(finish_release{hold.id(), release_outcome::released, {}});
    longest_.disarm(hold.longest);
}

void holds::give_back(hold_record& hold, clock::time_point now) {
    auto& back = begin_release(hold, {}, now);
    detach(hold);
    forget(hold);
    releases_.send(back, now);
}

void holds::give_back_unused(engines::release_request request, clock::time_point expires_by,
                             clock::time_point now) {
    const bool held = std::any_of(holds_.begin(), holds_.end(), [&](const auto& each) {
        return !each.second.lost && each.second.tenure.owner == request.owner;
    });
    if (held || releases_.has(request.owner)) {
        return;
    }
    releases_.send(releases_.add(std::move(request), {}, expires_by), now);
}

void holds::lose(hold_record& hold, const failure& reason, clock::time_point now) {
    if (hold.vacant()) {
        give_back(hold, now);
        return;
    }
    tell(hold, reason, now);
    end(hold, reason, now);
}

void holds::end(hold_record& hold, const failure& reason, clock::time_point now) {
    hold.lost = true;
    hold.loss = reason;
    hold.expires_by = gone_by(hold.its_terms(), now);
    detach(hold);
}

void holds::tell(hold_record& hold, const failure& reason, clock::time_point now) {
    if (std::exchange(hold.told, true)) {
        return;
    }
    hold.loss = reason;
    out_.add(tell_loss{hold.id(), reason});
    out_.tell(event_kind::lost, hold.name(), hold.tenure.owner, hold.token, now - hold.since, reason);
}

void holds::check_deadline(hold_record& hold, clock::time_point now) {
    if (!hold.lost && now >= hold.valid_until()) {
        lose(hold,
             {now >= hold.ends_at() ? errc::max_hold_exceeded : errc::lost,
              "its deadline had passed when it was released"},
             now);
    }
}

/// Its holder is told first.
void holds::lose_and_give_back(hold_record& hold, const failure& reason, clock::time_point now) {
    auto& back = begin_release(hold, {}, now);
    lose(hold, reason, now);
    releases_.send(back, now);
}

void holds::lose_all(const failure& reason, clock::time_point now) {
    std::vector<hold_record*> held;
    for (auto& [id, hold] : holds_) {
        if (!hold.lost) {
            held.push_back(&hold);
        }
    }
    std::sort(held.begin(), held.end(),
              [](const auto* one, const auto* other) { return one->id() < other->id(); });
    for (auto* const hold : held) {
        lose_and_give_back(*hold, reason, now);
    }
}

void holds::suspect_all(clock::time_point now) {
    for (auto& [id, hold] : holds_) {
        if (!hold.lost) {
            renewal_.suspect(hold.tenure, now);
        }
    }
}

void holds::run_renewals(clock::time_point now) {
    for (const auto& news : renewal_.on_time(now)) {
        apply(news, now);
    }
    while (true) {
        auto batch = renewal_.next_batch(now);
        if (batch.ids.empty()) {
            return;
        }
        const auto id = out_.next_id();
        requests_.emplace(id, renew_request{now, std::move(batch.ids)});
        const auto deadline = std::min(now + request_timeout_, batch.useful_until);
        out_.add(send_renew{id, std::move(batch.requests), deadline});
    }
}

/// A holder may hang: the next one does not wait for its release, nor for the ttl.
void holds::end_overlong(clock::time_point now) {
    while (const auto* const due = longest_.pop_due(now)) {
        lose_and_give_back(holds_.at(due->id),
                           {errc::max_hold_exceeded, "it was held for its max_hold"}, now);
    }
}

void holds::on_renew_replies(request_id id, const std::vector<engines::renew_reply>& replies,
                             clock::time_point now) {
    const auto request = requests_.extract(id);
    if (request.empty()) {
        return;
    }
    const auto& [sent_at, tenures] = request.mapped();
    for (std::size_t i = 0; i < tenures.size(); ++i) {
        auto* const hold = find(tenures[i]);
        if (hold == nullptr) {
            continue;  // released meanwhile
        }
        if (hold->lost) {
            if (i < replies.size() && replies[i].result == engines::renew_reply::outcome::gone) {
                auto reason = hold->loss;
                take_loss_reason(reason, replies[i]);
                tell(*hold, reason, now);  // unless it was told before
            }
            continue;
        }
        const engines::renew_reply missing{engines::renew_reply::outcome::failed,
                                           {errc::store_error, "an answer is missing"}};
        if (const auto news = renewal_.on_reply(hold->tenure, i < replies.size() ? replies[i] : missing,
                                                sent_at, now)) {
            apply(*news, now);
        }
    }
}

void holds::apply(const renewal::event& news, clock::time_point now) {
    using kind = renewal::event::kind;
    auto* const hold = find(news.id);
    if (hold == nullptr || hold->lost) {
        return;
    }
    if (news.type == kind::lost) {
        lose(*hold, news.error, now);
        return;
    }
    if (hold->vacant()) {
        return;  // nobody to tell
    }
    const auto& owner = hold->tenure.owner;
    if (news.type == kind::extended) {
        out_.tell(event_kind::renewed, hold->name(), owner, hold->token);
        out_.add(set_validity{hold->id(), hold->valid_until()});
    } else if (news.type == kind::failed) {
        out_.tell(event_kind::renewal_failed, hold->name(), owner, hold->token, {}, news.error);
    } else {
        out_.tell(event_kind::jeopardy, hold->name(), owner, hold->token);
    }
}

}  // namespace holdfast::core
