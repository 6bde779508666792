#include <core/lock_table.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::core {

namespace {

[[nodiscard]] failure shut_down_already() {
    return {errc::shut_down, "shutdown was called, or the client was destroyed"};
}

}  // namespace

lock_table::lock_table(const table_settings& settings, const owner_id& client)
    : out_{client, settings.seed, settings.observed},
      places_{out_},
      waiters_{out_},
      releases_{out_, places_, settings.contention.request_timeout},
      holds_{out_, places_, releases_, settings.contention.request_timeout},
      contests_{settings.contention, settings.handover, out_, places_, waiters_, releases_, holds_},
      conversions_{out_, places_, holds_, settings.contention.request_timeout},
      handover_{settings.handover, out_, places_, waiters_, holds_} {}

/// The end of a step.
void lock_table::look_at_touched(clock::time_point now) {
    while (auto* const site = places_.take_touched()) {
        handover_.offer_again(*site, now);
        contests_.contend_for_front(*site, now);
        places_.tidy(*site);
    }
}

waiter_id lock_table::acquire(const claim& request, clock::time_point now) {
    const auto id = out_.next_id();
    if (shut_down_) {
        out_.add(finish_acquire{id, shut_down_already(), {}, {}, {}});
        return id;
    }
    auto& call = waiters_.add(id, request, places_.of(request.name, request.kind), now);
    if (request.queues_here()) {
        join_queue(call, now);
    } else {
        contests_.add(call, now);
    }
    look_at_touched(now);
    return id;
}

void lock_table::join_queue(waiter& call, clock::time_point now) {
    if (handover_.overtake(call, now)) {
        return;
    }
    auto& site = call.site;
    if (site.idle()) {
        places_.line_of(site).queue.push(call.id);
        return;
    }
    if (!call.request.wait) {
        contests_.finish_waiter(
            call, {errc::busy, "another thread of this process has it or waits for it"}, now);
        return;
    }
    auto& queue = places_.line_of(site).queue;
    queue.push(call.id);
    out_.tell(event_kind::contended, call.request.name);
    if (queue.soon_on_arrival()) {
        out_.add(stand_by{call.id});
    }
}

void lock_table::cancel(waiter_id id, errc reason, clock::time_point now) {
    if (auto* const call = waiters_.find(id); call != nullptr) {
        contests_.finish_waiter(*call, {reason, "the caller stopped waiting"}, now);
        look_at_touched(now);
    }
}

void lock_table::release_hold(hold_id id, std::chrono::milliseconds linger, clock::time_point now) {
    auto* const hold = holds_.find(id);
    if (hold == nullptr || hold->vacant()) {
        out_.add(finish_release{id, release_outcome::already_lost, {}});
        return;
    }
    holds_.check_deadline(*hold, now);
    if (hold->lost || linger.count() > 0 || !handover_.hand_over(*hold, now)) {
        holds_.release(*hold, linger, now);
    }
    look_at_touched(now);
}

void lock_table::abandon(hold_id id, clock::time_point now) {
    auto* const hold = holds_.find(id);
    if (hold == nullptr || !hold->held() || now >= hold->valid_until()) {
        release_hold(id, {}, now);
        return;
    }
    holds_.lose_and_give_back(
        *hold, {errc::lost, "its holder was destroyed, or its thread ended, before it was released"},
        now);
    holds_.forget(*hold);
    out_.add(finish_release{id, release_outcome::already_lost, {}});
    look_at_touched(now);
}

void lock_table::take_turn(waiter_id id, clock::time_point now) {
    if (auto* const call = waiters_.find(id); call != nullptr) {
        handover_.take_turn(*call, now);
        look_at_touched(now);
    }
}

void lock_table::convert(hold_id id, claim_mode to, clock::time_point now) {
    conversions_.start(id, to, now);
}

void lock_table::on_acquire_reply(request_id id, const engines::acquire_reply& reply,
                                  clock::time_point now) {
    if (!conversions_.on_reply(id, reply, now)) {
        contests_.on_reply(id, reply, now);
    }
    look_at_touched(now);
}

void lock_table::on_renew_replies(request_id id, const std::vector<engines::renew_reply>& replies,
                                  clock::time_point now) {
    if (!conversions_.on_reason(id, replies, now) && !releases_.on_reason(id, replies, now)) {
        holds_.on_renew_replies(id, replies, now);
    }
    look_at_touched(now);
}

void lock_table::on_release_reply(request_id id, const engines::release_reply& reply,
                                  clock::time_point now) {
    releases_.on_reply(id, reply, now);
    look_at_touched(now);
}

void lock_table::on_hint(const std::string& name, clock::time_point now) {
    if (auto* const site = places_.find(name); site != nullptr) {
        contests_.on_hint(*site, now);
        look_at_touched(now);
    }
}

void lock_table::on_turn(const std::string& name, const owner_id& owner,
                         const std::optional<engines::turn_grant>& granted, clock::time_point now) {
    auto* const site = places_.find(name);
    if ((site == nullptr || !contests_.on_turn(*site, owner, granted, now)) && granted) {
        const auto kind = site == nullptr ? lock_kind::mutex : site->kind;
        // The store may say nothing of the ttl. Then the lease lasts for as long as one can.
        const auto ttl = granted->ttl.count() > 0 ? granted->ttl : engines::guarantees{}.maximum_ttl;
        holds_.give_back_unused({name, claim_mode::exclusive, owner, {}, kind}, now + ttl, now);
    }
    look_at_touched(now);
}

void lock_table::on_watch_active(const std::string& name, clock::time_point now) {
    on_hint(name, now);
}

void lock_table::on_holds_may_have_changed(clock::time_point now) {
    holds_.suspect_all(now);
    on_time(now);
}

void lock_table::on_time(clock::time_point now) {
    holds_.run_renewals(now);
    holds_.end_overlong(now);
    releases_.on_time(now);
    contests_.on_time(now);
    look_at_touched(now);
    while (auto* const call = waiters_.take_due(now)) {
        contests_.on_deadline(*call, now);
        look_at_touched(now);
    }
}

clock::time_point lock_table::wake_at() const noexcept {
    return std::min({waiters_.wake_at(), contests_.wake_at(), holds_.wake_at(), releases_.wake_at()});
}

void lock_table::shut_down(clock::time_point now) {
    if (std::exchange(shut_down_, true)) {
        return;
    }
    contests_.shut_down();
    holds_.shut_down();
    for (const auto id : waiters_.all()) {
        contests_.finish_waiter(waiters_.at(id), shut_down_already(), now);
        look_at_touched(now);
    }
    holds_.lose_all(shut_down_already(), now);
    look_at_touched(now);
}

void lock_table::finish_release_calls(clock::time_point now) {
    releases_.finish_calls(now);
    look_at_touched(now);
}

std::vector<unreleased_lock> lock_table::unreleased() const {
    auto result = releases_.unreleased();
    for (const auto& name : contests_.names()) {
        result.push_back({name, {}, {errc::outcome_unknown, "a request for it was under way"}});
    }
    return result;
}

lock_table::census lock_table::count() const noexcept {
    return {waiters_.size(),
            contests_.size(),
            holds_.tenures(),
            holds_.size(),
            releases_.size(),
            places_.size(),
            contests_.requests() + conversions_.requests() + holds_.requests() + releases_.requests()};
}

}  // namespace holdfast::core
