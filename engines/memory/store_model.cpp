#include <algorithm>
#include <common/validate.hpp>
#include <iterator>
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

}  // namespace

store_model::store_model(std::uint64_t token_floor) : last_token_{token_floor} {}

acquire_reply store_model::acquire(const acquire_request& request, clock::time_point now,
                                   wall_time wall) {
    if (auto bad = check_request(request, no_limits())) {
        return {.error = std::move(bad)};
    }
    forget_expired_now_and_then(now);
    const auto place = live(request.name, now);
    return finish(place, records::acquire(place->second.holds, request, {now, wall}, last_token_));
}

acquire_all_reply store_model::acquire_all(const std::vector<acquire_request>& all,
                                           clock::time_point now, wall_time wall) {
    acquire_all_reply reply;
    for (std::size_t index = 0; index < all.size(); ++index) {
        const auto place = live(all[index].name, now);
        auto refused = records::refusal_of(all[index], place->second.holds, now);
        forget_if_empty(place);
        if (refused) {
            reply.result = refused->result;
            reply.busy = index;
            reply.retry_after = refused->retry_after;
            reply.error = std::move(refused->error);
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
    const auto place = live(request.name, now);
    return finish(place, records::renew(place->second, request, now));
}

release_reply store_model::release(const release_request& request, clock::time_point now) {
    const auto place = live(request.name, now);
    return finish(place, records::release(place->second, request, now));
}

revoke_reply store_model::revoke(const revoke_request& request, clock::time_point now, wall_time wall) {
    const auto place = live(request.name, now);
    auto result = records::revoke(place->second, request, {now, wall});
    if (result.changed) {
        remember_revocation(request.name);
    }
    return finish(place, std::move(result));
}

lock_info store_model::inspect(std::string_view name, clock::time_point now) {
    const auto place = live(std::string{name}, now);
    auto info = records::inspect(place->second, name, now);
    forget_if_empty(place);
    return info;
}

list_reply store_model::list(const list_request& request, clock::time_point now) {
    list_reply reply;
    if (auto bad = check_request(request, no_limits())) {
        reply.error = std::move(bad);
        return reply;
    }
    std::vector<std::string> found;
    auto place = request.from >= request.prefix ? records_.upper_bound(request.from)
                                                : records_.lower_bound(request.prefix);
    for (; place != records_.end() && place->first.starts_with(request.prefix); ++place) {
        const auto& holds = place->second.holds;
        const bool held = std::any_of(holds.begin(), holds.end(),
                                      [&](const records::hold& one) { return one.expires > now; });
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
    if (auto bad = check_request(request, no_limits())) {
        return {.error = std::move(bad)};
    }
    const auto place = live(request.name, now);
    const std::size_t counted = place->second.counted.size();
    auto result = records::latch(place->second, request, now);
    if (place->second.counted.size() > counted) {
        remember_latch_request(request.name);
    }
    return finish(place, std::move(result));
}

std::size_t store_model::hold_count(clock::time_point now) const {
    std::size_t count = 0;
    for (const auto& [name, state] : records_) {
        count += static_cast<std::size_t>(
            std::count_if(state.holds.begin(), state.holds.end(),
                          [&](const records::hold& one) { return one.expires > now; }));
    }
    return count;
}

bool store_model::has_holds_of(const owner_id& client, clock::time_point now) const {
    return std::any_of(records_.begin(), records_.end(), [&](const auto& entry) {
        const auto& holds = entry.second.holds;
        return std::any_of(holds.begin(), holds.end(), [&](const records::hold& one) {
            return one.owner.same_client(client) && one.expires > now;
        });
    });
}

void store_model::reset(std::uint64_t token_floor) {
    *this = store_model{token_floor};
}

store_model::record_map::iterator store_model::live(const std::string& name, clock::time_point now) {
    const auto place = records_.try_emplace(name).first;
    records::drop_ended(place->second, now);
    return place;
}

template <class Reply>
Reply store_model::finish(record_map::iterator place, records::outcome<Reply>&& result) {
    if (result.freed) {
        hints_.push_back(place->first);
    }
    forget_if_empty(place);
    return std::move(result.reply);
}

void store_model::forget_if_empty(record_map::iterator place) {
    if (place->second.empty()) {
        records_.erase(place);
    }
}

void store_model::forget_expired_now_and_then(clock::time_point now) {
    if (--requests_until_sweep_ > 0) {
        return;
    }
    requests_until_sweep_ = requests_between_sweeps;
    for (auto place = records_.begin(); place != records_.end();) {
        records::drop_ended(place->second, now);
        place = place->second.empty() ? records_.erase(place) : std::next(place);
    }
}

void store_model::remember_revocation(const std::string& name) {
    std::erase(revoked_, name);
    revoked_.push_back(name);
    if (revoked_.size() <= remembered_revocations) {
        return;
    }
    const auto oldest = records_.find(revoked_.front());
    oldest->second.revocation.reset();
    forget_if_empty(oldest);
    revoked_.pop_front();
}

void store_model::remember_latch_request(const std::string& name) {
    counted_.push_back(name);
    if (counted_.size() <= remembered_latch_requests) {
        return;
    }
    const auto oldest = records_.find(counted_.front());
    auto& requests = oldest->second.counted;
    requests.erase(requests.begin());
    forget_if_empty(oldest);
    counted_.pop_front();
}

}  // namespace holdfast::engines::memory
