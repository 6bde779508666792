#include <algorithm>
#include <common/validate.hpp>
#include <records/rules.hpp>
#include <utility>

namespace holdfast::engines::records {

namespace {

struct decision {
    enum class action : std::uint8_t { grant, extend, downgrade, upgrade, busy, refuse } next{};
    /// extend, downgrade, upgrade: the owner's hold.
    std::size_t own{};
    /// busy: until the first of those in the way would expire.
    std::chrono::milliseconds retry_after{};
    /// refuse: why.
    failure error{};
};

using action = decision::action;

failure check_kind(const acquire_request& request, std::span<const hold> holds) {
    if (holds.empty()) {
        return {};
    }
    const std::uint32_t asked = request.mode == claim_mode::permit ? request.limit : 0;
    const std::uint32_t present = holds.front().limit;
    if (asked == present) {
        return {};
    }
    std::string text = in_quotes(request.name);
    if (asked != 0 && present != 0) {
        text += " is a semaphore of " + std::to_string(present) + " permits at the moment, not of " +
                std::to_string(asked) + "; all who use it must agree on the limit";
    } else if (present != 0) {
        text += " is in use as a semaphore; give the lock another name";
    } else {
        text += " is in use as a lock; give the semaphore another name";
    }
    return {errc::wrong_kind, std::move(text)};
}

/// A lingering hold is nobody's any more.
template <class Holds>
auto find_own(Holds& holds, const owner_id& owner) {
    return std::find_if(holds.begin(), holds.end(),
                        [&](const hold& one) { return one.owner == owner && !one.lingering; });
}

template <class InTheWay>
std::optional<std::chrono::milliseconds> shortest_wait(std::span<const hold> holds,
                                                       clock::time_point now, InTheWay in_the_way) {
    std::optional<std::chrono::milliseconds> wait;
    for (const hold& one : holds) {
        if (in_the_way(one)) {
            const auto remaining = remaining_time(one.expires, now);
            wait = wait ? std::min(*wait, remaining) : remaining;
        }
    }
    return wait;
}

decision decide_permit(const acquire_request& request, std::span<const hold> holds,
                       clock::time_point now) {
    if (const auto own = find_own(holds, request.owner); own != holds.end()) {
        if (own->permits == request.permits) {
            return {action::extend, static_cast<std::size_t>(own - holds.begin()), {}, {}};
        }
        return {
            action::refuse,
            {},
            {},
            {errc::invalid_argument, "semaphore " + in_quotes(request.name) + ": this owner has " +
                                         std::to_string(own->permits) + " permits, it cannot ask for " +
                                         std::to_string(request.permits)}};
    }
    std::uint64_t taken = 0;
    bool same_owner_lingers = false;
    for (const hold& one : holds) {
        taken += one.permits;
        same_owner_lingers = same_owner_lingers || one.owner == request.owner;
    }
    if (taken + request.permits <= request.limit && !same_owner_lingers) {
        return {action::grant, {}, {}, {}};
    }
    const auto wait = shortest_wait(holds, now, [](const hold&) { return true; });
    return {action::busy, {}, wait.value_or(std::chrono::milliseconds{}), {}};
}

decision decide_lock(const acquire_request& request, std::span<const hold> holds,
                     clock::time_point now) {
    const auto found = find_own(holds, request.owner);
    const bool held = found != holds.end();
    const auto own = static_cast<std::size_t>(found - holds.begin());
    if (request.converts && !held) {
        return {action::refuse, {}, {}, loss_of(request.owner, nullptr)};
    }
    if (held && found->mode == request.mode) {
        return {action::extend, own, {}, {}};
    }
    if (held && request.mode == claim_mode::shared) {
        return {action::downgrade, own, {}, {}};
    }
    const auto wait = shortest_wait(holds, now, [&](const hold& one) {
        const bool same_owner = one.owner == request.owner;
        if (request.mode == claim_mode::shared) {
            return one.mode == claim_mode::exclusive || same_owner;
        }
        return !same_owner || one.lingering;
    });
    if (wait) {
        return {action::busy, {}, *wait, {}};
    }
    return held ? decision{action::upgrade, own, {}, {}} : decision{action::grant, {}, {}, {}};
}

decision decide(const acquire_request& request, std::span<const hold> holds, clock::time_point now) {
    if (auto refusal = check_kind(request, holds)) {
        return {action::refuse, {}, {}, std::move(refusal)};
    }
    return request.mode == claim_mode::permit ? decide_permit(request, holds, now)
                                              : decide_lock(request, holds, now);
}

std::optional<acquire_reply> refusal_in(decision& made) {
    if (made.next == action::refuse) {
        return acquire_reply{.error = std::move(made.error)};
    }
    if (made.next == action::busy) {
        return acquire_reply{.result = acquire_reply::outcome::busy, .retry_after = made.retry_after};
    }
    return std::nullopt;
}

fencing_token take_tokens(const acquire_request& request, std::uint64_t& last_token) {
    const fencing_token first = std::max(fencing_token{last_token + 1}, request.token_floor);
    last_token = first.value + request.token_count - 1;
    return first;
}

hold new_hold(const acquire_request& request, const moment& at, std::uint64_t& last_token) {
    const bool permit = request.mode == claim_mode::permit;
    return {.owner = request.owner,
            .mode = request.mode,
            .permits = permit ? request.permits : 1,
            .limit = permit ? request.limit : 0,
            .first_token = take_tokens(request, last_token),
            .token_count = request.token_count,
            .since = at.wall,
            .expires = at.now + request.ttl};
}

/// Whether a hold in mode `held` is all that an owner who thinks it has `wanted` relies on.
bool covers(claim_mode held, claim_mode wanted) noexcept {
    return held == wanted || (held == claim_mode::exclusive && wanted == claim_mode::shared);
}

failure loss_of(const owner_id& owner, const record& state) {
    return records::loss_of(owner, state.revocation ? &*state.revocation : nullptr);
}

}  // namespace

void drop_ended(std::vector<hold>& holds, clock::time_point now) {
    std::erase_if(holds, [&](const hold& one) { return one.expires <= now; });
}

void drop_ended(record& state, clock::time_point now) {
    drop_ended(state.holds, now);
    if (state.latch && state.latch->expires <= now) {
        state.latch.reset();
    }
}

acquire_outcome acquire(std::vector<hold>& holds, const acquire_request& request, const moment& at,
                        std::uint64_t& last_token) {
    decision made = decide(request, holds, at.now);
    acquire_outcome result;
    if (auto refused = refusal_in(made)) {
        result.reply = *std::move(refused);
        return result;
    }
    result.changed = true;
    result.own = made.own;
    result.added = made.next == action::grant;
    result.freed = made.next == action::downgrade;
    if (result.added) {
        result.own = holds.size();
        holds.push_back(new_hold(request, at, last_token));
    } else {
        hold& own = holds[made.own];
        if (made.next == action::upgrade) {
            own.first_token = take_tokens(request, last_token);
            own.token_count = request.token_count;
        }
        if (own.first_token < request.token_floor) {
            own.first_token = request.token_floor;
            last_token = std::max(last_token, own.first_token.value + own.token_count - 1);
        }
        own.mode = request.mode;
        own.expires = std::max(own.expires, at.now + request.ttl);
    }
    const hold& own = holds[result.own];
    result.reply.result = acquire_reply::outcome::granted;
    result.reply.first_token = own.first_token;
    result.reply.token_count = own.token_count;
    return result;
}

std::optional<acquire_reply> refusal_of(const acquire_request& request, std::span<const hold> holds,
                                        clock::time_point now) {
    decision made = decide(request, holds, now);
    return refusal_in(made);
}

outcome<renew_reply> renew(record& state, const renew_request& request, clock::time_point now) {
    const auto own = find_own(state.holds, request.owner);
    if (own == state.holds.end() || !covers(own->mode, request.mode)) {
        return {{renew_reply::outcome::gone, loss_of(request.owner, state)}};
    }
    own->expires = std::max(own->expires, now + request.ttl);
    return {{renew_reply::outcome::renewed, {}}, true};
}

outcome<release_reply> release(record& state, const release_request& request, clock::time_point now) {
    using result = release_reply::outcome;
    auto& holds = state.holds;
    const auto own = find_own(holds, request.owner);
    const bool lingers = request.linger.count() > 0;
    if (own == holds.end()) {
        const bool sent_again =
            lingers && std::any_of(holds.begin(), holds.end(),
                                   [&](const hold& one) { return one.owner == request.owner; });
        return {sent_again ? release_reply{result::released, 0, {}}
                           : release_reply{result::gone, 0, loss_of(request.owner, state)}};
    }
    if (lingers) {
        own->lingering = true;
        own->expires = now + request.linger;
    } else {
        holds.erase(own);
    }
    return {{result::released, 0, {}}, true, !lingers};
}

outcome<revoke_reply> revoke(record& state, const revoke_request& request, const moment& at) {
    const auto found = std::find_if(state.holds.begin(), state.holds.end(), [&](const hold& one) {
        return one.owner == request.owner && one.first_token == request.token;
    });
    if (found == state.holds.end()) {
        return {{revoke_reply::outcome::gone, {}}};
    }
    state.holds.erase(found);
    state.revocation = {request.owner, request.token,
                        std::string{shortened(request.actor, longest_remark)},
                        std::string{shortened(request.reason, longest_remark)}, at.wall};
    return {{revoke_reply::outcome::revoked, {}}, true, true};
}

outcome<latch_reply> latch(record& state, const latch_request& request, clock::time_point now) {
    using operation = latch_request::operation;
    outcome<latch_reply> result;
    latch_reply& reply = result.reply;
    reply.known = state.latch.has_value();
    reply.count = state.latch ? state.latch->count : 0;
    reply.life = state.latch ? state.latch->life : latch_life{};
    if (request.what == operation::read) {
        return result;
    }
    const bool can_repeat = request.request != owner_id{};
    if (can_repeat &&
        std::find(state.counted.begin(), state.counted.end(), request.request) != state.counted.end()) {
        reply.applied = true;
        return result;
    }
    if ((request.what == operation::set) != (reply.count == 0)) {
        return result;
    }
    reply.applied = reply.known = result.changed = true;
    if (can_repeat) {
        state.counted.push_back(request.request);
    }
    if (request.what == operation::set) {
        reply.count = request.count;
        reply.life = state.latch ? reply.life : latch_life::begin(request.request);
        state.latch = {reply.count, now + request.lifetime, reply.life};
        return result;
    }
    reply.count -= std::min(reply.count, request.count);
    if (reply.count == 0) {
        ++reply.life.openings;
        state.latch = {0, now + opened_latch_known, reply.life};
        result.freed = true;
    } else {
        state.latch->count = reply.count;
    }
    return result;
}

lock_info inspect(const record& state, std::string_view name, clock::time_point now) {
    lock_info info;
    info.name = name;
    info.last_revocation = state.revocation;
    for (const hold& one : state.holds) {
        info.holders.push_back(describe(one, now));
        info.limit = one.limit;
    }
    return info;
}

std::chrono::milliseconds remaining_time(clock::time_point expires, clock::time_point now) noexcept {
    return expires <= now ? std::chrono::milliseconds{}
                          : std::chrono::ceil<std::chrono::milliseconds>(expires - now);
}

failure loss_of(const owner_id& owner, const revocation_info* last) {
    if (last == nullptr || last->owner != owner) {
        return {errc::lost, "the store no longer knows this hold"};
    }
    std::string text = "revoked";
    if (!last->actor.empty()) {
        text += " by " + last->actor;
    }
    if (!last->reason.empty()) {
        text += ": " + last->reason;
    }
    return {errc::revoked, std::move(text)};
}

holder_info describe(const hold& one, clock::time_point now) {
    holder_info info;
    info.owner = one.owner;
    info.mode = one.mode;
    info.permits = one.permits;
    info.token = one.first_token;
    info.token_count = one.token_count;
    info.since = one.since;
    info.remaining = remaining_time(one.expires, now);
    info.lingering = one.lingering;
    return info;
}

}  // namespace holdfast::engines::records
