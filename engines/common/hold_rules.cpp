#include <algorithm>
#include <common/hold_rules.hpp>
#include <common/validate.hpp>
#include <optional>
#include <string>

namespace holdfast::engines {

namespace {

using action = acquire_decision::action;

failure check_kind(const acquire_request& request, std::span<const hold_record> live) {
    if (live.empty()) {
        return {};
    }
    const std::uint32_t asked = request.mode == claim_mode::permit ? request.limit : 0;
    const std::uint32_t present = live.front().limit;
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

/// Where the owner's hold is. A lingering one is nobody's any more.
std::optional<std::size_t> find_own(const owner_id& owner, std::span<const hold_record> live) {
    const auto own = std::find_if(live.begin(), live.end(), [&](const hold_record& hold) {
        return hold.owner == owner && !hold.lingering;
    });
    if (own == live.end()) {
        return std::nullopt;
    }
    return static_cast<std::size_t>(own - live.begin());
}

template <class InTheWay>
std::optional<std::chrono::milliseconds> shortest_wait(std::span<const hold_record> live,
                                                       clock::time_point now, InTheWay in_the_way) {
    std::optional<std::chrono::milliseconds> wait;
    for (const hold_record& hold : live) {
        if (in_the_way(hold)) {
            const auto remaining = remaining_time(hold.expires, now);
            wait = wait ? std::min(*wait, remaining) : remaining;
        }
    }
    return wait;
}

acquire_decision decide_permit(const acquire_request& request, std::span<const hold_record> live,
                               clock::time_point now) {
    if (const auto mine = find_own(request.owner, live)) {
        const std::uint32_t held = live[*mine].permits;
        if (held == request.permits) {
            return {action::extend, *mine, {}, {}};
        }
        return {action::refuse,
                {},
                {},
                {errc::invalid_argument, "semaphore " + in_quotes(request.name) + ": this owner has " +
                                             std::to_string(held) + " permits, it cannot ask for " +
                                             std::to_string(request.permits)}};
    }
    std::uint64_t taken = 0;
    bool same_owner_lingers = false;
    for (const hold_record& hold : live) {
        taken += hold.permits;
        same_owner_lingers = same_owner_lingers || hold.owner == request.owner;
    }
    if (taken + request.permits <= request.limit && !same_owner_lingers) {
        return {action::grant, {}, {}, {}};
    }
    const auto wait = shortest_wait(live, now, [](const hold_record&) { return true; });
    return {action::busy, {}, wait.value_or(std::chrono::milliseconds{}), {}};
}

acquire_decision decide_lock(const acquire_request& request, std::span<const hold_record> live,
                             clock::time_point now) {
    const auto mine = find_own(request.owner, live);
    if (request.converts && !mine) {
        return {action::refuse, {}, {}, loss_of(request.owner, nullptr)};
    }
    if (mine && live[*mine].mode == request.mode) {
        return {action::extend, *mine, {}, {}};
    }
    if (mine && request.mode == claim_mode::shared) {
        return {action::downgrade, *mine, {}, {}};
    }
    const auto wait = shortest_wait(live, now, [&](const hold_record& hold) {
        const bool own = hold.owner == request.owner;
        if (request.mode == claim_mode::shared) {
            return hold.mode == claim_mode::exclusive || own;
        }
        return !own || hold.lingering;
    });
    if (wait) {
        return {action::busy, {}, *wait, {}};
    }
    return mine ? acquire_decision{action::upgrade, *mine, {}, {}}
                : acquire_decision{action::grant, {}, {}, {}};
}

}  // namespace

acquire_decision decide_acquire(const acquire_request& request, std::span<const hold_record> live,
                                clock::time_point now) {
    if (auto refusal = check_kind(request, live)) {
        return {action::refuse, {}, {}, std::move(refusal)};
    }
    return request.mode == claim_mode::permit ? decide_permit(request, live, now)
                                              : decide_lock(request, live, now);
}

bool covers(claim_mode held, claim_mode wanted) noexcept {
    return held == wanted || (held == claim_mode::exclusive && wanted == claim_mode::shared);
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

holder_info describe(const hold_record& hold, clock::time_point now) {
    holder_info info;
    info.owner = hold.owner;
    info.mode = hold.mode;
    info.permits = hold.permits;
    info.token = hold.first_token;
    info.token_count = hold.token_count;
    info.since = hold.since;
    info.remaining = remaining_time(hold.expires, now);
    info.lingering = hold.lingering;
    return info;
}

}  // namespace holdfast::engines
