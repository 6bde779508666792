#include <core/renewal.hpp>

#include <core/planted.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::core {

namespace {

constexpr auto never = clock::time_point::max();

}  // namespace

void renewal::add(tenure& what, tenure_id id, clock::time_point sent_at) {
    what.timer::id = id;
    extend(what, sent_at);
    schedule(what);
}

void renewal::remove(tenure& what) {
    heap_.disarm(what);
    if (std::exchange(what.chosen, false)) {
        std::erase(chosen_, &what);
    }
}

void renewal::pass_on(tenure& what, tenure_id id, shared_terms how) {
    remove(what);
    what.timer::id = id;
    what.how = std::move(how);
    schedule(what);
}

void renewal::change_mode(tenure& what, claim_mode mode, clock::time_point now) {
    if (what.mode != mode) {
        what.mode = mode;
        what.downgraded_at = mode == claim_mode::shared ? now : clock::time_point::min();
    }
}

void renewal::suspect(tenure& what, clock::time_point now) {
    if (what.how->renewal == renewal_mode::automatic && !what.chosen) {
        what.suspected = what.under_way;
        what.due_at = now;
        schedule(what);
    }
}

void renewal::extend(tenure& one, clock::time_point sent_at) {
    one.latest_sent_at = std::max(one.latest_sent_at, sent_at);
    if (one.how->renewal == renewal_mode::none) {
        one.due_at = never;
        one.jeopardy_told = true;
        return;
    }
    one.due_at = one.latest_sent_at + period(one);
    one.jeopardy_told = false;
}

void renewal::schedule(tenure& one) {
    auto next = planted(bug::deadline_ignored) ? never : one.valid_until();
    if (!one.jeopardy_told) {
        next = std::min(next, one.valid_until() - one.how->jeopardy);
    }
    if (!one.under_way) {
        next = std::min(next, one.due_at);
    }
    heap_.arm(one, next);
}

void renewal::choose(tenure& one) {
    one.chosen = true;
    chosen_.push_back(&one);
}

std::vector<renewal::event> renewal::on_time(clock::time_point now) {
    std::vector<event> events;
    while (timer* due = heap_.pop_due(now)) {
        auto& one = static_cast<tenure&>(*due);
        if (now >= one.valid_until() && !planted(bug::deadline_ignored)) {
            events.push_back({event::kind::lost,
                              one.id(),
                              one.valid_until(),
                              {errc::lost, "its deadline passed without a successful renewal"}});
            continue;
        }
        if (!one.jeopardy_told && now >= one.valid_until() - one.how->jeopardy) {
            one.jeopardy_told = true;
            events.push_back({event::kind::jeopardy, one.id(), one.valid_until(), {}});
        }
        if (!one.under_way && now >= one.due_at) {
            choose(one);  // armed again once its request is sent
            continue;
        }
        schedule(one);
    }
    return events;
}

renewal::batch renewal::next_batch(clock::time_point now) {
    // What would be due soon goes along: a thousand leases taken over a second cost four requests.
    while (!chosen_.empty() && chosen_.size() < largest_batch && !heap_.empty()) {
        auto& early = static_cast<tenure&>(*heap_.pop_due(never));
        if (early.under_way || early.due_at > now + period(early) / 4) {
            schedule(early);
            break;
        }
        choose(early);
    }
    batch result;
    result.useful_until = now;
    const auto count = std::min(chosen_.size(), largest_batch);
    result.ids.reserve(count);
    result.requests.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        auto& one = *chosen_[i];
        one.chosen = false;
        one.under_way = true;
        schedule(one);
        result.ids.push_back(one.id());
        result.requests.push_back({*one.name, one.mode, one.owner, one.how->ttl, one.kind});
        result.useful_until = std::max(result.useful_until, one.valid_until());
    }
    chosen_.erase(chosen_.begin(), chosen_.begin() + static_cast<std::ptrdiff_t>(count));
    return result;
}

std::optional<renewal::event> renewal::on_reply(tenure& what, engines::renew_reply reply,
                                                clock::time_point sent_at, clock::time_point now) {
    using outcome = engines::renew_reply::outcome;
    if (reply.result == outcome::gone && planted(bug::gone_means_renewed)) {
        reply.result = outcome::renewed;
    }
    what.under_way = false;
    const bool suspected = std::exchange(what.suspected, false);
    // A lease that is over does not come back, whatever the store says by now.
    if (reply.result == outcome::renewed && now >= what.valid_until() &&
        !planted(bug::deadline_ignored)) {
        reply = {outcome::gone, {errc::lost, "its deadline passed without a successful renewal"}};
    }
    std::optional<event> result;
    switch (reply.result) {
        case outcome::renewed:
            extend(what, planted(bug::deadline_from_receipt) ? now : sent_at);
            if (suspected) {
                what.due_at = now;  // it was sent before the suspicion arose, and does not lift it
            }
            result = {event::kind::extended, what.id(), what.valid_until(), {}};
            break;
        case outcome::gone:
            if (sent_at < what.downgraded_at) {
                // It asked for more than a share, and may have reached the store after the change.
                what.due_at = now;
                break;
            }
            if (!reply.error) {
                reply.error = {errc::lost, "the store no longer knows this lease"};
            }
            remove(what);
            return event{event::kind::lost, what.id(), what.valid_until(), std::move(reply.error)};
        case outcome::failed:
            // Trouble is not loss: try again soon, until the deadline decides.
            what.due_at =
                now + std::max<clock::duration>(what.how->ttl / 20, std::chrono::milliseconds{5});
            result = {event::kind::failed, what.id(), what.valid_until(), std::move(reply.error)};
            break;
    }
    schedule(what);
    return result;
}

}  // namespace holdfast::core
