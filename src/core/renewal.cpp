#include <core/renewal.hpp>

#include <core/planted.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::core {

namespace {

constexpr auto never = clock::time_point::max();

}  // namespace

void renewal::add(tenure_id id, const tenure& what) {
    auto& one = items_.try_emplace(id, id, what).first->second;
    extend(one, what.sent_at);
    schedule(one);
}

void renewal::remove(tenure_id id) {
    const auto found = items_.find(id);
    if (found != items_.end()) {
        heap_.disarm(found->second.wake);
        items_.erase(found);
    }
}

void renewal::change_mode(tenure_id id, claim_mode mode, clock::time_point now) {
    auto& one = items_.at(id);
    if (one.what.mode != mode) {
        one.what.mode = mode;
        one.downgraded_at = mode == claim_mode::shared ? now : clock::time_point::min();
    }
}

void renewal::suspect_all(clock::time_point now) {
    for (auto& [id, one] : items_) {
        if (one.what.how.renewal == renewal_mode::automatic) {
            one.suspected_at = now;
            one.due_at = now;
            schedule(one);
        }
    }
}

void renewal::extend(item& one, clock::time_point sent_at) {
    one.latest_sent_at = std::max(one.latest_sent_at, sent_at);
    one.valid_until = one.latest_sent_at + one.what.how.ttl - one.what.how.margin;
    if (one.what.how.renewal == renewal_mode::none) {
        one.due_at = never;
        one.jeopardy_told = true;
        return;
    }
    // An answer to a request sent before the suspicion arose does not lift it.
    const bool suspected = one.suspected_at > one.latest_sent_at;
    one.due_at = suspected ? one.suspected_at : one.latest_sent_at + period(one);
    one.jeopardy_told = false;
}

void renewal::schedule(item& one) {
    auto next = planted(bug::deadline_ignored) ? never : one.valid_until;
    if (!one.jeopardy_told) {
        next = std::min(next, one.valid_until - one.what.how.jeopardy);
    }
    if (!one.under_way) {
        next = std::min(next, one.due_at);
    }
    heap_.arm(one.wake, next);
}

std::vector<renewal::event> renewal::on_time(clock::time_point now) {
    std::vector<event> events;
    while (timer* due = heap_.pop_due(now)) {
        auto& one = items_.at(due->id);
        if (now >= one.valid_until && !planted(bug::deadline_ignored)) {
            events.push_back({event::kind::lost,
                              due->id,
                              one.valid_until,
                              {errc::lost, "its deadline passed without a successful renewal"}});
            items_.erase(due->id);
            continue;
        }
        if (!one.jeopardy_told && now >= one.valid_until - one.what.how.jeopardy) {
            one.jeopardy_told = true;
            events.push_back({event::kind::jeopardy, due->id, one.valid_until, {}});
        }
        if (!one.under_way && now >= one.due_at) {
            due_.push_back(due->id);
            continue;  // armed again once its request is sent
        }
        schedule(one);
    }
    return events;
}

renewal::batch renewal::next_batch(clock::time_point now) {
    // What would be due soon goes along: a thousand leases taken over a second cost four requests.
    while (!due_.empty() && due_.size() < largest_batch && !heap_.empty()) {
        timer* early = heap_.pop_due(never);
        auto& one = items_.at(early->id);
        if (one.under_way || one.due_at > now + period(one) / 4) {
            schedule(one);
            break;
        }
        due_.push_back(early->id);
    }
    batch result;
    result.useful_until = now;
    const auto count = std::min(due_.size(), largest_batch);
    for (std::size_t i = 0; i < count; ++i) {
        const auto found = items_.find(due_[i]);
        if (found == items_.end()) {
            continue;
        }
        auto& one = found->second;
        one.under_way = true;
        schedule(one);
        result.ids.push_back(found->first);
        result.requests.push_back(
            {one.what.name, one.what.mode, one.what.owner, one.what.how.ttl, one.what.kind});
        result.useful_until = std::max(result.useful_until, one.valid_until);
    }
    due_.erase(due_.begin(), due_.begin() + static_cast<std::ptrdiff_t>(count));
    return result;
}

std::vector<renewal::event> renewal::on_replies(const std::vector<tenure_id>& ids,
                                                const std::vector<engines::renew_reply>& replies,
                                                clock::time_point sent_at, clock::time_point now) {
    using outcome = engines::renew_reply::outcome;
    std::vector<event> events;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto found = items_.find(ids[i]);
        if (found == items_.end()) {
            continue;  // released or lost meanwhile
        }
        auto& one = found->second;
        auto reply =
            i < replies.size()
                ? replies[i]
                : engines::renew_reply{outcome::failed, {errc::store_error, "an answer is missing"}};
        if (reply.result == outcome::gone && planted(bug::gone_means_renewed)) {
            reply.result = outcome::renewed;
        }
        one.under_way = false;
        // A lease that is over does not come back, whatever the store says by now.
        if (reply.result == outcome::renewed && now >= one.valid_until &&
            !planted(bug::deadline_ignored)) {
            reply = {outcome::gone, {errc::lost, "its deadline passed without a successful renewal"}};
        }
        switch (reply.result) {
            case outcome::renewed:
                extend(one, planted(bug::deadline_from_receipt) ? now : sent_at);
                events.push_back({event::kind::extended, ids[i], one.valid_until, {}});
                break;
            case outcome::gone:
                if (sent_at < one.downgraded_at) {
                    // It asked for more than a share, and may have reached the store after the change.
                    one.due_at = now;
                    break;
                }
                if (!reply.error) {
                    reply.error = {errc::lost, "the store no longer knows this lease"};
                }
                events.push_back({event::kind::lost, ids[i], one.valid_until, std::move(reply.error)});
                heap_.disarm(one.wake);
                items_.erase(found);
                continue;
            case outcome::failed:
                // Trouble is not loss: try again soon, until the deadline decides.
                one.due_at = now + std::max<clock::duration>(one.what.how.ttl / 20,
                                                             std::chrono::milliseconds{5});
                events.push_back(
                    {event::kind::failed, ids[i], one.valid_until, std::move(reply.error)});
                break;
        }
        schedule(one);
    }
    return events;
}

clock::time_point renewal::valid_until(tenure_id id) const {
    return items_.at(id).valid_until;
}

}  // namespace holdfast::core
