#include <core/acquisition.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::core {

namespace {

[[nodiscard]] clock::duration scaled(clock::duration value, double factor) {
    return clock::duration{static_cast<clock::rep>(static_cast<double>(value.count()) * factor)};
}

/// Whether asking again can help. Everything else is a refusal.
[[nodiscard]] bool is_passing(errc code) noexcept {
    return code == errc::store_unavailable || code == errc::outcome_unknown;
}

/// Whether a grant by another's release can be taken as it is. A lease that is never renewed had better
/// begin afresh, and replicas confirm only what their own client asks for: such waiters ask once more,
/// and are granted the same.
[[nodiscard]] bool grant_is_final(const terms& its_terms) noexcept {
    return its_terms.renewal == renewal_mode::automatic && its_terms.replicas == replica_policy{};
}

}  // namespace

acquisition::acquisition(engines::acquire_request claim, const terms& its_terms,
                         const contention_settings& settings)
    : claim_{std::move(claim)},
      settings_{settings},
      margin_{its_terms.margin},
      oldest_turn_{grant_is_final(its_terms) ? its_terms.ttl / 4 : std::chrono::milliseconds{}} {}

engines::acquire_request acquisition::ask(clock::time_point now, std::uint32_t token_count) {
    state_ = state::asking;
    sent_at_ = now;
    wake_at_ = clock::time_point::max();
    hinted_while_asking_ = false;
    // A request that may already have been granted must ask for the same thing.
    if (!may_be_granted_) {
        claim_.token_count = token_count;
    }
    auto request = claim_;
    request.queue = stands_in_line();
    stood_in_line_ = stood_in_line_ || request.queue;
    return request;
}

/// A plain lock is only given to a waiter that was refused it before, and listens since then.
bool acquisition::stands_in_line() const noexcept {
    if (claim_.kind == lock_kind::fair_mutex) {
        return claim_.queue;
    }
    return claim_.kind == lock_kind::mutex && claim_.mode == claim_mode::exclusive && claim_.queue &&
           settings_.store_hands_over && contended_;
}

acquisition::verdict acquisition::on_reply(const engines::acquire_reply& reply, clock::time_point now,
                                           double jitter) {
    using outcome = engines::acquire_reply::outcome;
    if (reply.result == outcome::failed) {
        return on_failure(reply.error, now, jitter);
    }
    trouble_ = {};
    failures_in_a_row_ = 0;
    if (reply.result == outcome::busy) {
        return on_busy(reply, now, jitter);
    }
    state_ = state::done;
    may_be_granted_ = false;
    // Validity starts when the request left, not when the reply came: the store may have started the
    // ttl at any moment in between.
    granted_ttl_ = trusted_ttl(claim_.ttl, reply.ttl);
    valid_until_ = sent_at_ + granted_ttl_ - margin_;
    return now < valid_until_ ? verdict::granted : verdict::expired_grant;
}

acquisition::verdict acquisition::on_busy(const engines::acquire_reply& reply, clock::time_point now,
                                          double jitter) {
    // The store has spoken: whatever became of earlier requests, we hold nothing.
    may_be_granted_ = false;
    const bool refused_first = !std::exchange(contended_, true);
    if (std::exchange(hinted_while_asking_, false)) {
        return verdict::ask;
    }
    if (refused_first && listens_ && stands_in_line() && !stood_in_line_) {
        return verdict::ask;  // the store does not know yet that it may be given to us
    }
    state_ = state::waiting;
    auto pause = settings_.recheck_cap;
    if (reply.retry_after.count() > 0) {
        // The ttl is known to the millisecond only: ask just after, not just before.
        pause = std::min<clock::duration>(pause, reply.retry_after + std::chrono::milliseconds{1});
    }
    // Up to a quarter more, so that many waiters do not ask in step.
    wake_at_ = now + std::max(settings_.shortest_pause, scaled(pause, 1.0 + jitter / 4));
    return verdict::nothing;
}

acquisition::verdict acquisition::on_failure(const failure& error, clock::time_point now,
                                             double jitter) {
    if (!is_passing(error.code)) {
        state_ = state::done;
        trouble_ = error;
        return verdict::failed;
    }
    if (!trouble_) {
        trouble_since_ = sent_at_;
    }
    trouble_ = error;
    may_be_granted_ = may_be_granted_ || error.code == errc::outcome_unknown;
    unanswered_ = unanswered_ || error.code == errc::outcome_unknown;
    state_ = state::backing_off;
    const clock::duration doubled =
        settings_.shortest_pause * (clock::rep{1} << std::min<std::uint32_t>(failures_in_a_row_++, 16));
    wake_at_ = now + scaled(std::min(doubled, settings_.longest_backoff), 0.5 + jitter / 2);
    return verdict::nothing;
}

acquisition::verdict acquisition::on_hint() {
    if (state_ == state::asking) {
        hinted_while_asking_ = true;
        return verdict::nothing;
    }
    return state_ == state::waiting ? verdict::ask : verdict::nothing;
}

acquisition::verdict acquisition::on_turn(const engines::turn_grant& grant, clock::time_point now) {
    // Told of an older request, or while one is under way: the answer to the later one decides. Asked
    // again, the store says the same, and begins the ttl anew.
    const bool told_in_time =
        state_ == state::waiting && grant.asked_at >= sent_at_ && now - grant.asked_at < oldest_turn_;
    if (!told_in_time) {
        return on_hint();
    }
    // The request was answered with "busy", so the grant came later, and so did the start of the ttl.
    sent_at_ = grant.asked_at;
    granted_ttl_ = trusted_ttl(claim_.ttl, grant.ttl);
    valid_until_ = sent_at_ + granted_ttl_ - margin_;
    state_ = state::done;
    return verdict::granted;
}

acquisition::verdict acquisition::on_wake() {
    wake_at_ = clock::time_point::max();
    const bool paused =
        state_ == state::waiting || state_ == state::backing_off || state_ == state::holding_back;
    return paused ? verdict::ask : verdict::nothing;
}

void acquisition::hold_back(clock::time_point until) {
    state_ = state::holding_back;
    contended_ = true;
    wake_at_ = until;
}

void acquisition::restart(const owner_id& owner) {
    claim_.owner = owner;
    state_ = state::idle;
    may_be_granted_ = false;
    unanswered_ = false;
    stood_in_line_ = false;
    hinted_while_asking_ = false;
}

}  // namespace holdfast::core
