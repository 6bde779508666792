#include <nodes/recipe.hpp>

#include <algorithm>

namespace holdfast::engines::nodes {

/// Every input: ends what is over, takes the step, and goes on with all that waited for it.
template <class Step>
actions recipe::after(clock::time_point now, const Step& step) {
    claims_.expire(now);
    step();
    for (auto ready = claims_.take_answered(); !ready.empty(); ready = claims_.take_answered()) {
        std::for_each(ready.rbegin(), ready.rend(),
                      [&](const std::string& name) { perform_backlog(name, now); });
    }
    std::erase_if(renewals_, [&](renewal& call) { return settle(call, now); });
    if (claims_.take_loss()) {
        outbox_.emit(tell_holds_changed{});
    }
    return outbox_.take();
}

actions recipe::acquire(call_id id, acquire_request request, clock::time_point deadline,
                        clock::time_point now) {
    return after(now, [&] { take({id, deadline, now, std::move(request)}, now); });
}

actions recipe::release(call_id id, release_request request, clock::time_point deadline,
                        clock::time_point now) {
    return after(now, [&] { take({id, deadline, now, std::move(request)}, now); });
}

actions recipe::renew(call_id id, std::vector<renew_request> batch, clock::time_point deadline,
                      clock::time_point now) {
    return after(now, [&] {
        const auto size = batch.size();
        renewals_.push_back({id, deadline, now, std::move(batch), {}});
        renewals_.back().replies.resize(size);
    });
}

actions recipe::on_created(request_id id, const create_reply& reply, clock::time_point now) {
    return after(now, [&] { claims_.on_created(id, reply, now); });
}

actions recipe::on_read(request_id id, const queue_reply& reply, clock::time_point now) {
    return after(now, [&] { claims_.on_read(id, reply, now); });
}

actions recipe::on_removed(request_id id, const remove_reply& reply, clock::time_point now) {
    return after(now, [&] { claims_.on_removed(id, reply, now); });
}

actions recipe::on_closed(request_id id, const remove_reply& reply, clock::time_point now) {
    return after(now, [&] { sessions_.on_closed(id, reply, now); });
}

actions recipe::on_node_removed(const std::string& name, const std::string& id, clock::time_point now) {
    return after(now, [&] { claims_.on_node_removed(name, id, now); });
}

actions recipe::on_changed(watch_id id, clock::time_point now) {
    return after(now, [&] {
        if (!news_.on_changed(id)) {
            claims_.on_changed(id, now);
        }
    });
}

actions recipe::on_watch_failed(watch_id id, clock::time_point now) {
    return after(now, [&] {
        news_.on_watch_failed(id);
        claims_.on_watch_failed(id, now);
    });
}

actions recipe::on_session_ended(session_id session, clock::time_point now) {
    return after(now, [&] { claims_.end_session(sessions_.find_open(session), true, now); });
}

actions recipe::on_session(request_id id, const session_reply& reply, clock::time_point now) {
    using change = session_pool::session_change;
    return after(now, [&] {
        const auto [key, news] = sessions_.on_reply(id, reply, now);
        switch (news) {
            case change::none:
                break;
            case change::confirmed:
                claims_.on_session(key, {}, now);
                break;
            case change::troubled:
                fail_renewals(key, reply.error);
                claims_.on_session(key, reply.error, now);
                break;
            case change::refused:
                claims_.on_session(key, {errc::store_unavailable, reply.error.detail}, now);
                claims_.end_session(key, true, now);
                break;
            case change::too_late:
                claims_.end_session(key, false, now);
                break;
        }
    });
}

// Calls.

/// A call for the same claim has no answer yet.
bool recipe::has_caller(const waiting_call& call) {
    const auto* const claim = claims_.find(call.name(), call.owner());
    return claim != nullptr && claim->caller;
}

/// What the client asked for first is performed first.
void recipe::take(waiting_call call, clock::time_point now) {
    if (shut_down_) {
        outbox_.refuse(call, {errc::shut_down, "the client was shut down"});
    } else if (backlogs_.contains(call.name()) || has_caller(call)) {
        backlogs_[call.name()].push_back(std::move(call));
    } else {
        start(std::move(call), now);
    }
}

void recipe::start(waiting_call call, clock::time_point now) {
    if (call.acquires()) {
        claims_.start_acquire(std::move(call), now);
    } else {
        claims_.start_release(std::move(call), now);
    }
}

void recipe::perform_backlog(const std::string& name, clock::time_point now) {
    const auto found = backlogs_.find(name);
    if (found == backlogs_.end()) {
        return;
    }
    auto& backlog = found->second;
    while (!backlog.empty() && !has_caller(backlog.front())) {
        auto call = std::move(backlog.front());
        backlog.pop_front();
        start(std::move(call), now);
    }
    if (backlog.empty()) {
        backlogs_.erase(found);
    }
}

void recipe::refuse_late_calls(clock::time_point now) {
    std::vector<std::string> names;
    for (auto& [name, backlog] : backlogs_) {
        std::erase_if(backlog, [&](const waiting_call& call) {
            const bool late = now >= call.deadline;
            if (late) {
                outbox_.refuse(call, {errc::store_unavailable, "the store did not answer in time"});
            }
            return late;
        });
        names.push_back(name);
    }
    for (const auto& name : names) {
        perform_backlog(name, now);
    }
}

// Renewals.

/// True: it is answered.
bool recipe::settle(renewal& call, clock::time_point now) {
    bool complete = true;
    for (std::size_t index = 0; index < call.batch.size(); ++index) {
        auto& reply = call.replies[index];
        if (!reply) {
            reply = settle(call.batch[index], call, now);
        }
        complete = complete && reply;
    }
    if (!complete) {
        return false;
    }
    std::vector<renew_reply> replies;
    for (auto& reply : call.replies) {
        replies.push_back(std::move(*reply));
    }
    outbox_.emit(answer_renew{call.id, std::move(replies)});
    return true;
}

/// A keep-alive that left a moment ago serves as well as a new one. Empty: not known yet.
std::optional<renew_reply> recipe::settle(const renew_request& request, const renewal& call,
                                          clock::time_point now) {
    using state = claim::state;
    auto* const claim = claims_.find(request.name, request.owner);
    const bool asks = claim != nullptr && claim->caller && claim->caller->acquires();
    if (asks && !claim->was_held && now < call.deadline) {
        return std::nullopt;
    }
    const bool held = claim != nullptr && claim->was_held && claim->current != state::leaving &&
                      (request.mode == claim->mode || asks || request.mode == claim_mode::shared);
    if (!held) {
        return renew_reply{.result = renew_reply::outcome::gone,
                           .error = {errc::lost, "the store does not know the lease"}};
    }
    const auto& session = sessions_.at(claim->session);
    if (session.confirmed_at + session.granted / 10 >= call.asked_at) {
        claim->expires = std::max(claim->expires, call.asked_at + request.ttl);
        const auto ttl = session.granted_ttl(request.ttl, call.asked_at);
        return ttl ? renew_reply{.result = renew_reply::outcome::renewed, .ttl = *ttl}
                   : renew_reply{.error = {errc::outcome_unknown, "the session is about to end"}};
    }
    if (now >= call.deadline) {
        return renew_reply{.error = {errc::outcome_unknown, "the store did not answer in time"}};
    }
    sessions_.ask(claim->session, now);
    return std::nullopt;
}

void recipe::fail_renewals(session_key session, const failure& reason) {
    for (auto& call : renewals_) {
        for (std::size_t index = 0; index < call.batch.size(); ++index) {
            const auto* const claim = claims_.find(call.batch[index].name, call.batch[index].owner);
            if (!call.replies[index] && claim != nullptr && claim->session == session &&
                claim->was_held) {
                call.replies[index] = renew_reply{.error = reason};
            }
        }
    }
}

// Time.

actions recipe::on_time(clock::time_point now) {
    return after(now, [&] {
        sessions_.on_time(now);
        claims_.on_time(now);
        refuse_late_calls(now);
    });
}

clock::time_point recipe::next_wake() const {
    auto next = std::min(sessions_.next_wake(), claims_.next_wake());
    for (const auto& call : renewals_) {
        next = std::min(next, call.deadline);
    }
    for (const auto& [name, backlog] : backlogs_) {
        for (const auto& call : backlog) {
            next = std::min(next, call.deadline);
        }
    }
    return next;
}

actions recipe::shut_down(clock::time_point now) {
    shut_down_ = true;
    const failure reason{errc::shut_down, "the client was shut down"};
    claims_.end(reason);
    for (const auto& [name, backlog] : std::exchange(backlogs_, {})) {
        for (const auto& call : backlog) {
            outbox_.refuse(call, reason);
        }
    }
    for (const auto& call : std::exchange(renewals_, {})) {
        outbox_.emit(
            answer_renew{call.id, std::vector<renew_reply>(call.batch.size(), {.error = reason})});
    }
    news_.end();
    sessions_.close_all(now);
    return outbox_.take();
}

actions recipe::watchers(const std::string& name, std::uint32_t count) {
    if (!shut_down_) {
        news_.watchers(name, count);
    }
    return outbox_.take();
}

}  // namespace holdfast::engines::nodes
