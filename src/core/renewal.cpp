#include <core/renewal.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::core {

namespace {

constexpr auto never = clock::time_point::max();

/// Nobody renews a fixed lease.
[[nodiscard]] std::string reason_for_expiry(bool fixed) {
    return fixed ? "its deadline passed" : "its deadline passed without a successful renewal";
}

}  // namespace

void renewal::add(tenure& held, tenure_id id, clock::time_point sent_at, clock::duration granted,
                  bool incomplete) {
    held.timer::id = id;
    held.latest_sent_at_ = sent_at;
    held.granted_ = granted;
    held.completion_ = incomplete ? clock::duration{first_completion} : clock::duration{};
    extend(held, sent_at, granted);
    schedule(held);
}

void renewal::remove(tenure& held) {
    heap_.disarm(held);
    if (std::exchange(held.chosen_, false)) {
        std::erase(chosen_, &held);
    }
}

void renewal::pass_on(tenure& held, tenure_id id, shared_terms terms) {
    remove(held);
    held.timer::id = id;
    held.terms = std::move(terms);
    held.jeopardy_told_ = is_fixed(held);  // the next holder is told for itself
    schedule(held);
}

void renewal::change_mode(tenure& held, claim_mode mode, clock::time_point now) {
    if (held.mode != mode) {
        held.mode = mode;
        held.downgraded_at_ = mode == claim_mode::shared ? now : clock::time_point::min();
    }
}

void renewal::complete_soon(tenure& held, clock::time_point now) {
    held.completion_ = first_completion;
    if (!held.chosen_) {
        held.due_at_ = std::min(held.due_at_, now + period(held));
        schedule(held);
    }
}

void renewal::suspect(tenure& held, clock::time_point now) {
    held.in_doubt_ = true;
    if (!held.chosen_) {
        held.suspected_ = held.under_way_;
        held.due_at_ = now;
        schedule(held);
    }
}

void renewal::extend(tenure& one, clock::time_point sent_at, clock::duration granted) {
    if (is_fixed(one)) {
        one.due_at_ = one.completion_.count() > 0 ? sent_at + period(one) : never;
        one.jeopardy_told_ = true;
        return;
    }
    if (sent_at + granted > one.latest_sent_at_ + one.granted_) {
        one.latest_sent_at_ = sent_at;
        one.granted_ = granted;
    }
    // The store may give less and less: what it gave last says how soon to ask again.
    one.due_at_ = sent_at + std::min(period(one), granted / 3);
    one.jeopardy_told_ = false;
}

void renewal::schedule(tenure& one) {
    auto next = one.valid_until();
    if (!one.jeopardy_told_) {
        next = std::min(next, one.valid_until() - one.jeopardy());
    }
    if (!one.under_way_) {
        next = std::min(next, one.due_at_);
    }
    heap_.arm(one, next);
}

void renewal::choose(tenure& one) {
    one.chosen_ = true;
    chosen_.push_back(&one);
}

std::vector<renewal::event> renewal::on_time(clock::time_point now) {
    std::vector<event> events;
    while (timer* due = heap_.pop_due(now)) {
        auto& one = static_cast<tenure&>(*due);
        if (now >= one.valid_until()) {
            events.push_back({event::kind::lost,
                              one.id(),
                              one.valid_until(),
                              {errc::lost, reason_for_expiry(is_fixed(one))}});
            continue;
        }
        if (!one.jeopardy_told_ && now >= one.valid_until() - one.jeopardy()) {
            one.jeopardy_told_ = true;
            events.push_back({event::kind::jeopardy, one.id(), one.valid_until(), {}});
        }
        if (!one.under_way_ && now >= one.due_at_) {
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
        if (early.under_way_ || early.due_at_ > now + period(early) / 4) {
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
        one.chosen_ = false;
        one.under_way_ = true;
        schedule(one);
        result.ids.push_back(one.id());
        // A renewal never shortens a lease: the shortest ttl asks whether it is there.
        const auto ttl = is_fixed(one) ? one.terms->shortest_ttl : one.terms->ttl;
        result.requests.push_back({*one.name, one.mode, one.owner, ttl, one.kind});
        result.useful_until = std::max(result.useful_until, one.valid_until());
    }
    chosen_.erase(chosen_.begin(), chosen_.begin() + static_cast<std::ptrdiff_t>(count));
    return result;
}

std::optional<renewal::event> renewal::on_reply(tenure& held, engines::renew_reply reply,
                                                clock::time_point sent_at, clock::time_point now) {
    using outcome = engines::renew_reply::outcome;
    held.under_way_ = false;
    const bool suspected = std::exchange(held.suspected_, false);
    // A lease that is over does not come back, whatever the store says by now.
    if (reply.result == outcome::renewed && now >= held.valid_until()) {
        reply = {outcome::gone, {errc::lost, reason_for_expiry(is_fixed(held))}};
    }
    std::optional<event> result;
    switch (reply.result) {
        case outcome::renewed:
            held.completion_ = reply.incomplete
                                   ? std::min<clock::duration>(held.completion_ * 2, held.terms->ttl)
                                   : clock::duration{};
            extend(held, sent_at, trusted_ttl(held.terms->ttl, reply.ttl));
            if (suspected) {
                held.due_at_ = now;  // it was sent before the suspicion arose, and does not lift it
            }
            held.in_doubt_ = held.in_doubt_ && suspected;
            if (!is_fixed(held)) {
                result = {event::kind::extended, held.id(), held.valid_until(), {}};
            }
            break;
        case outcome::gone:
            if (sent_at < held.downgraded_at_) {
                // It asked for more than a share, and may have reached the store after the change.
                held.due_at_ = now;
                break;
            }
            if (!reply.error) {
                reply.error = {errc::lost, "the store no longer knows this lease"};
            }
            remove(held);
            return event{event::kind::lost, held.id(), held.valid_until(), std::move(reply.error)};
        case outcome::failed:
            // Trouble is not loss: try again soon, until the deadline decides.
            held.due_at_ =
                now + std::max<clock::duration>(held.terms->ttl / 20, std::chrono::milliseconds{5});
            if (!is_fixed(held)) {
                result = {event::kind::failed, held.id(), held.valid_until(), std::move(reply.error)};
            }
            break;
    }
    schedule(held);
    return result;
}

}  // namespace holdfast::core
