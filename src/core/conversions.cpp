#include <core/conversions.hpp>

#include <algorithm>
#include <utility>

#include <core/loss_reason.hpp>

namespace holdfast::core {

namespace {

[[nodiscard]] failure reason_of(const hold_record* hold, const char* otherwise) {
    return hold != nullptr && hold->loss.code == errc::revoked ? hold->loss
                                                               : failure{errc::lost, otherwise};
}

}  // namespace

void conversions::start(hold_id id, claim_mode to, clock::time_point now) {
    auto* const hold = holds_.find(id);
    if (hold == nullptr || !hold->held() || now >= hold->valid_until()) {
        finish(id, reason_of(hold, "the lease is over"));
        return;
    }
    if (to == claim_mode::exclusive && hold->unanswered) {
        finish(id, {errc::outcome_unknown, "an earlier request was never answered; acquire it anew"});
        return;
    }
    std::uint32_t attempts = 1;
    auto answer_by = now + request_timeout_;
    if (to == claim_mode::shared) {
        // From now on the store may know no more than a share. It may already, if nobody knows what
        // became of an earlier attempt.
        attempts += std::exchange(hold->downgraded, true) ? 1 : 0;
        holds_.change_mode(*hold, to, now);
        answer_by += request_timeout_;  // asked for again when there is no answer
    }
    send(*hold, to, attempts, answer_by, now);
}

void conversions::send(const hold_record& hold, claim_mode to, std::uint32_t attempts,
                       clock::time_point answer_by, clock::time_point now) {
    const auto id = out_.next_id();
    requests_.emplace(id, conversion{hold.id(), to, attempts, answer_by, hold.give_back(),
                                     holds_.gone_by(hold.its_terms(), now)});
    // Replicas do not confirm a conversion: a store that gave back what too few of them have would give
    // back the whole lock.
    out_.add(send_acquire{id,
                          {.name = hold.name(),
                           .mode = to,
                           .owner = hold.tenure.owner,
                           .ttl = hold.its_terms().ttl,
                           .kind = hold.tenure.kind,
                           .converts = true},
                          std::min(now + request_timeout_, answer_by),
                          hold.id()});
}

bool conversions::on_reply(request_id id, const engines::acquire_reply& reply, clock::time_point now) {
    const auto node = requests_.extract(id);
    if (node.empty()) {
        return false;
    }
    const auto& request = node.mapped();
    auto* const hold = holds_.find(request.hold);
    if (hold == nullptr || !hold->held()) {
        after_the_end(request, reply, now);
    } else if (reply.result == engines::acquire_reply::outcome::granted ||
               !settle_refusal(*hold, request, reply, now)) {
        settle(*hold, request.to, reply, now);
    }
    return true;
}

/// The lease ended while the request was under way.
void conversions::after_the_end(const conversion& request, const engines::acquire_reply& reply,
                                clock::time_point now) {
    const bool may_be_converted = reply.result == engines::acquire_reply::outcome::granted ||
                                  reply.error.code == errc::outcome_unknown;
    bool was_given_back = true;
    if (auto* const lost = holds_.find(request.hold); lost != nullptr) {
        lost->expires_by = holds_.gone_by(lost->its_terms(), now);  // it may have been granted anew
        was_given_back = now >= lost->ends_at();
    }
    if (was_given_back && may_be_converted) {
        // The store may have performed the release first.
        holds_.give_back_unused(request.give_back, request.gone_by, now);
    }
    finish(request.hold, reason_of(holds_.find(request.hold), "the lease ended meanwhile"));
}

/// False: a downgrade that the store may have performed counts as done.
bool conversions::settle_refusal(hold_record& hold, const conversion& request,
                                 const engines::acquire_reply& reply, clock::time_point now) {
    const bool busy = reply.result == engines::acquire_reply::outcome::busy;
    auto reason = busy ? failure{errc::busy, "other readers are there"} : reply.error;
    if (busy && request.to == claim_mode::shared) {
        // Its owner is always given a share of an exclusive lock.
        reason = {errc::lost, "somebody else has it"};
    }
    if (reason.code == errc::lost) {
        ask_for_reason(hold, std::move(reason), request.answer_by, now);
        return true;
    }
    if (reason.code == errc::revoked) {
        holds_.lose(hold, reason, now);
        finish(request.hold, std::move(reason));
        return true;
    }
    const bool unknown = reply.error.code == errc::outcome_unknown;
    hold.unanswered = hold.unanswered || unknown;
    if (request.to == claim_mode::exclusive) {
        finish(request.hold, std::move(reason));
        return true;
    }
    constexpr std::uint32_t most_attempts = 3;
    if (unknown && request.attempts < most_attempts &&
        now < std::min(request.answer_by, hold.valid_until())) {
        send(hold, request.to, request.attempts + 1, request.answer_by, now);
        return true;
    }
    if (!unknown && request.attempts == 1) {
        // The store has done nothing.
        hold.downgraded = false;
        holds_.change_mode(hold, hold.mode, now);
        finish(request.hold, std::move(reason));
        return true;
    }
    // The store has a share in its name, or still the whole lock: all that a reader needs.
    return false;
}

/// The lease is over at once, whatever its store says now: a renewal only finds out why.
void conversions::ask_for_reason(hold_record& hold, failure reason, clock::time_point answer_by,
                                 clock::time_point now) {
    const auto valid_until = hold.valid_until();
    if (now >= valid_until) {
        holds_.lose(hold, reason, now);
        finish(hold.id(), std::move(reason));
        return;
    }
    // The holder is told before its lease would have ended, with or without the store's reason.
    const auto tell_by = now + (valid_until - now) / 2;
    const auto id = out_.next_id();
    losses_.emplace(id, unexplained_loss{hold.id(), std::move(reason)});
    out_.add(set_validity{hold.id(), now});
    out_.add(send_renew{id, {hold.question()}, std::min({now + request_timeout_, answer_by, tell_by})});
    holds_.end(hold, losses_.at(id).reason, now);
}

bool conversions::on_reason(request_id id, const std::vector<engines::renew_reply>& replies,
                            clock::time_point now) {
    const auto node = losses_.extract(id);
    if (node.empty()) {
        return false;
    }
    auto& [which, reason] = node.mapped();
    take_loss_reason(reason, replies);
    if (auto* const hold = holds_.find(which); hold != nullptr) {
        if (hold->loss.code == errc::revoked) {
            reason = hold->loss;  // a renewal that was under way has brought it
        }
        holds_.tell(*hold, reason, now);
    }
    finish(which, std::move(reason));
    return true;
}

void conversions::settle(hold_record& hold, claim_mode to, const engines::acquire_reply& reply,
                         clock::time_point now) {
    holds_.change_mode(hold, to, now);
    hold.mode = to;
    // After a hand-over the store knows only where the block of tokens starts.
    hold.token = std::max(hold.token, reply.first_token);
    hold.downgraded = false;
    if (reply.incomplete) {
        holds_.complete_soon(hold, now);
    }
    out_.add(finish_convert{hold.id(), {}, hold.token});
    if (auto* const site = std::exchange(hold.serves, nullptr); site != nullptr) {
        places_.free(*site);  // a reader does not hand over to writers
    }
}

}  // namespace holdfast::core
