#include <algorithm>
#include <common/validate.hpp>
#include <memory/store_model.hpp>

namespace holdfast::engines::memory {

namespace {

/// What the model itself insists on; engines promise more.
const guarantees& no_limits() {
    static const guarantees promises{.reach_text = {},
                                     .minimum_ttl = std::chrono::milliseconds{1},
                                     .maximum_ttl = guarantees{}.maximum_ttl};
    return promises;
}

auto find_own(std::vector<hold_record>& holds, const owner_id& owner) {
    return std::find_if(holds.begin(), holds.end(), [&](const hold_record& hold) {
        return hold.owner == owner && !hold.lingering;
    });
}

acquire_reply granted(const hold_record& hold) {
    return {acquire_reply::outcome::granted, hold.first_token, hold.token_count, {}, {}};
}

}  // namespace

store_model::store_model(std::uint64_t token_floor) : last_token_{token_floor} {}

acquire_reply store_model::acquire(const acquire_request& request, clock::time_point now,
                                   wall_time wall) {
    using action = acquire_decision::action;
    acquire_reply reply;
    if (auto bad = check_request(request, no_limits())) {
        reply.error = std::move(bad);
        return reply;
    }
    forget_expired_now_and_then(now);
    std::vector<hold_record>& holds = live_holds(request.name, now);
    acquire_decision decision = decide_acquire(request, holds, now);
    switch (decision.what) {
        case action::refuse:
            reply.error = std::move(decision.error);
            return reply;
        case action::busy:
            reply.result = acquire_reply::outcome::busy;
            reply.retry_after = decision.retry_after;
            return reply;
        case action::grant:
            holds.push_back({.owner = request.owner,
                             .mode = request.mode,
                             .permits = request.mode == claim_mode::permit ? request.permits : 1,
                             .limit = request.mode == claim_mode::permit ? request.limit : 0,
                             .first_token = take_tokens(request.token_count, request.token_floor),
                             .token_count = request.token_count,
                             .since = wall,
                             .expires = now + request.ttl});
            return granted(holds.back());
        case action::upgrade:
            holds[decision.mine].first_token = take_tokens(request.token_count, request.token_floor);
            holds[decision.mine].token_count = request.token_count;
            break;
        case action::downgrade:
            hints_.push_back(request.name);
            break;
        case action::extend:
            break;
    }
    hold_record& mine = holds[decision.mine];
    mine.mode = request.mode;
    mine.expires = std::max(mine.expires, now + request.ttl);
    if (mine.first_token < request.token_floor) {
        mine.first_token = request.token_floor;
        last_token_ = std::max(last_token_, mine.first_token.value + mine.token_count - 1);
    }
    return granted(mine);
}

acquire_all_reply store_model::acquire_all(const std::vector<acquire_request>& all,
                                           clock::time_point now, wall_time wall) {
    using action = acquire_decision::action;
    acquire_all_reply reply;
    for (std::size_t index = 0; index < all.size(); ++index) {
        auto decision = decide_acquire(all[index], live_holds(all[index].name, now), now);
        forget_if_free(all[index].name);
        if (decision.what == action::refuse) {
            reply.error = std::move(decision.error);
            return reply;
        }
        if (decision.what == action::busy) {
            reply.result = acquire_reply::outcome::busy;
            reply.busy = index;
            reply.retry_after = decision.retry_after;
            return reply;
        }
    }
    reply.result = acquire_reply::outcome::granted;
    for (const auto& one : all) {
        const auto grant = acquire(one, now, wall);
        reply.grants.push_back({grant.first_token, grant.token_count});
    }
    return reply;
}

renew_reply store_model::renew(const renew_request& request, clock::time_point now) {
    std::vector<hold_record>& holds = live_holds(request.name, now);
    const auto mine = find_own(holds, request.owner);
    if (mine != holds.end() && covers(mine->mode, request.mode)) {
        mine->expires = std::max(mine->expires, now + request.ttl);
        return {renew_reply::outcome::renewed, {}};
    }
    forget_if_free(request.name);
    return {renew_reply::outcome::gone, loss_of(request.owner, last_revocation(request.name))};
}

release_reply store_model::release(const release_request& request, clock::time_point now) {
    std::vector<hold_record>& holds = live_holds(request.name, now);
    const auto mine = find_own(holds, request.owner);
    if (mine == holds.end()) {
        const bool lingers = std::any_of(holds.begin(), holds.end(), [&](const hold_record& hold) {
            return hold.owner == request.owner;
        });
        if (lingers && request.linger.count() > 0) {
            return {release_reply::outcome::released, 0, {}};  // sent again
        }
        forget_if_free(request.name);
        return {release_reply::outcome::gone, 0, loss_of(request.owner, last_revocation(request.name))};
    }
    if (request.linger.count() > 0) {
        mine->lingering = true;
        mine->expires = now + request.linger;
    } else {
        holds.erase(mine);
        forget_if_free(request.name);
        hints_.push_back(request.name);
    }
    return {release_reply::outcome::released, 0, {}};
}

revoke_reply store_model::revoke(const revoke_request& request, clock::time_point now, wall_time wall) {
    std::vector<hold_record>& holds = live_holds(request.name, now);
    const auto found = std::find_if(holds.begin(), holds.end(), [&](const hold_record& hold) {
        return hold.owner == request.owner && hold.first_token == request.token;
    });
    const bool there = found != holds.end();
    if (there) {
        holds.erase(found);
        hints_.push_back(request.name);
        remember_revocation(request, wall);
    }
    forget_if_free(request.name);
    return {there ? revoke_reply::outcome::revoked : revoke_reply::outcome::gone, {}};
}

lock_info store_model::inspect(std::string_view name, clock::time_point now) {
    lock_info info;
    info.name = name;
    for (const hold_record& hold : live_holds(info.name, now)) {
        info.holders.push_back(describe(hold, now));
        info.limit = hold.limit;
    }
    forget_if_free(info.name);
    if (const revocation_info* last = last_revocation(name)) {
        info.last_revocation = *last;
    }
    return info;
}

list_reply store_model::list(const list_request& request, clock::time_point now) {
    list_reply reply;
    if (auto bad = check_request(request, no_limits())) {
        reply.error = std::move(bad);
        return reply;
    }
    std::vector<std::string> found;
    auto place = request.from >= request.prefix ? names_.upper_bound(request.from)
                                                : names_.lower_bound(request.prefix);
    for (; place != names_.end() && place->first.starts_with(request.prefix); ++place) {
        const bool held = std::any_of(place->second.begin(), place->second.end(),
                                      [&](const hold_record& hold) { return hold.expires > now; });
        if (held && found.size() == request.limit) {
            reply.next = found.back();
            break;
        }
        if (held) {
            found.push_back(place->first);
        }
    }
    for (const std::string& name : found) {
        reply.locks.push_back(inspect(name, now));
    }
    return reply;
}

latch_reply store_model::latch(const latch_request& request, clock::time_point now) {
    using operation = latch_request::operation;
    latch_reply reply;
    if (auto bad = check_request(request, no_limits())) {
        reply.error = std::move(bad);
        return reply;
    }
    reply.count = latch_count(request.name, now);
    reply.known = latches_.contains(request.name);
    if (request.what == operation::read) {
        return reply;
    }
    if (was_applied(request)) {
        reply.applied = true;
        return reply;
    }
    if ((request.what == operation::set) != (reply.count == 0)) {
        return reply;
    }
    reply.applied = reply.known = true;
    remember_latch_request(request);
    if (request.what == operation::set) {
        latches_[request.name] = {request.count, now + request.lifetime};
        reply.count = request.count;
        return reply;
    }
    reply.count -= std::min(reply.count, request.count);
    if (reply.count == 0) {
        latches_[request.name] = {0, now + opened_latch_known};
        hints_.push_back(request.name);
    } else {
        latches_[request.name].count = reply.count;
    }
    return reply;
}

std::size_t store_model::hold_count(clock::time_point now) const {
    std::size_t count = 0;
    for (const auto& [name, holds] : names_) {
        count += static_cast<std::size_t>(std::count_if(
            holds.begin(), holds.end(), [&](const hold_record& hold) { return hold.expires > now; }));
    }
    return count;
}

bool store_model::has_holds_of(const owner_id& client, clock::time_point now) const {
    return std::any_of(names_.begin(), names_.end(), [&](const auto& entry) {
        return std::any_of(entry.second.begin(), entry.second.end(), [&](const hold_record& hold) {
            return hold.owner.same_client(client) && hold.expires > now;
        });
    });
}

void store_model::reset(std::uint64_t token_floor) {
    *this = store_model{token_floor};
}

std::vector<hold_record>& store_model::live_holds(const std::string& name, clock::time_point now) {
    std::vector<hold_record>& holds = names_[name];
    std::erase_if(holds, [&](const hold_record& hold) { return hold.expires <= now; });
    return holds;
}

void store_model::forget_if_free(const std::string& name) {
    const auto place = names_.find(name);
    if (place != names_.end() && place->second.empty()) {
        names_.erase(place);
    }
}

void store_model::forget_expired_now_and_then(clock::time_point now) {
    if (--requests_until_sweep_ > 0) {
        return;
    }
    requests_until_sweep_ = requests_between_sweeps;
    const auto expired = [&](const auto& record) { return record.expires <= now; };
    std::erase_if(names_, [&](const auto& entry) {
        return std::all_of(entry.second.begin(), entry.second.end(), expired);
    });
    std::erase_if(latches_, [&](const auto& entry) { return expired(entry.second); });
}

fencing_token store_model::take_tokens(std::uint32_t count, fencing_token floor) {
    const fencing_token first = std::max(fencing_token{last_token_ + 1}, floor);
    last_token_ = first.value + count - 1;
    return first;
}

void store_model::remember_revocation(const revoke_request& request, wall_time wall) {
    if (revocations_.contains(request.name)) {
        std::erase(revocation_order_, request.name);
    } else if (revocations_.size() == remembered_revocations) {
        revocations_.erase(revocation_order_.front());
        revocation_order_.pop_front();
    }
    revocation_order_.push_back(request.name);
    revocations_[request.name] = {request.owner, request.token,
                                  std::string{shortened(request.actor, longest_remark)},
                                  std::string{shortened(request.reason, longest_remark)}, wall};
}

const revocation_info* store_model::last_revocation(std::string_view name) const {
    const auto place = revocations_.find(name);
    return place == revocations_.end() ? nullptr : &place->second;
}

std::uint32_t store_model::latch_count(const std::string& name, clock::time_point now) {
    const auto place = latches_.find(name);
    if (place == latches_.end()) {
        return 0;
    }
    if (place->second.expires <= now) {
        latches_.erase(place);
        return 0;
    }
    return place->second.count;
}

bool store_model::was_applied(const latch_request& request) const {
    return request.request != owner_id{} && latch_marks_.contains({request.request, request.name});
}

/// Marks outlive their latch: a request that is sent again after the latch opened, and was set anew,
/// must not count in its next life.
void store_model::remember_latch_request(const latch_request& request) {
    if (request.request == owner_id{}) {
        return;
    }
    if (latch_mark_order_.size() == remembered_latch_requests) {
        latch_marks_.erase(latch_mark_order_.front());
        latch_mark_order_.pop_front();
    }
    latch_mark_order_.emplace_back(request.request, request.name);
    latch_marks_.insert(latch_mark_order_.back());
}

}  // namespace holdfast::engines::memory
