#include <sim_store.hpp>

#include <planted.hpp>

#include <algorithm>

namespace holdfast::testing::sim {

namespace {

using core::bug;
using core::planted;

[[nodiscard]] const holder_info* find(const std::vector<holder_info>& holders, const owner_id& owner) {
    const auto found = std::find_if(holders.begin(), holders.end(), [&](const holder_info& one) {
        return one.owner == owner && !one.lingering;
    });
    return found == holders.end() ? nullptr : &*found;
}

[[nodiscard]] bool same(const holder_info& a, const holder_info& b) noexcept {
    return a.owner == b.owner && a.mode == b.mode && a.permits == b.permits && a.token == b.token &&
           a.token_count == b.token_count && a.remaining == b.remaining && a.lingering == b.lingering;
}

}  // namespace

/// Some stores count a ttl in coarse steps, or negotiate it.
std::chrono::milliseconds sim_store::granted_ttl(std::chrono::milliseconds asked_for) const {
    return std::max(asked_for * run_.numbers.granted_quarters / 4, std::chrono::milliseconds{1});
}

/// For a fair lock, what the line says comes before the model.
engines::acquire_reply sim_store::decide(const engines::acquire_request& request,
                                         clock::time_point sent_at, bool too_late) {
    using outcome = engines::acquire_reply::outcome;
    if (request.kind != lock_kind::fair_mutex) {
        auto answer = model_.acquire(request, now());
        auto& wishes = wishes_[lock_index(request.name)];
        if (answer.result == outcome::granted) {
            wishes.leave(request.owner);
        } else if (answer.result == outcome::busy && request.queue) {
            wishes.enter({request, sent_at, now() + run_.numbers.contention.line_patience, too_late});
        }
        return answer;
    }
    const auto* head = line_.head(now());
    engines::acquire_reply reply;
    if (look(request.name).empty() && head != nullptr && head->asked.owner != request.owner) {
        reply.result = outcome::busy;
        reply.retry_after = std::chrono::ceil<std::chrono::milliseconds>(head->alive_until - now());
    } else {
        reply = model_.acquire(request, now());
    }
    if (reply.result == outcome::granted) {
        line_.leave(request.owner);
    } else if (request.queue) {
        line_.enter({request, sent_at, now() + run_.numbers.contention.line_patience, too_late});
    }
    return reply;
}

/// A lock that has become free goes to the first in line; some want to be told only.
void sim_store::serve_line() {
    const auto* head = line_.head(now());
    if (head == nullptr || !look(head->asked.name).empty()) {
        return;
    }
    const auto first = *head;
    turn& told = turns_.emplace_back(turn{first.asked.name, first.asked.owner, {}});
    if (run_.random.one_in(4)) {
        return;
    }
    line_.leave(first.asked.owner);
    told.granted = grant_unasked(first);
}

/// A plain lock that has become free may go to one who wants it; the others are not told, then.
void sim_store::give(const std::string& name) {
    auto& wishes = wishes_[lock_index(name)];
    const auto* head = wishes.head(now());
    if (head == nullptr || run_.random.one_in(4)) {
        return;
    }
    const auto first = *head;
    wishes.leave(first.asked.owner);
    turns_.push_back({name, first.asked.owner, grant_unasked(first)});
    given_away_ = name;
}

engines::turn_grant sim_store::grant_unasked(const sim_line::place& to) {
    const auto reply = model_.acquire(to.asked, now());
    audit_grant(to.asked, reply, {});
    ++freedom_[lock_index(to.asked.name)];
    ++closings_[lock_index(to.asked.name)];
    if (to.too_late) {
        beyond_knowledge_.push_back(to.asked.owner);
    }
    run_.log.note("store: gives ", to.asked.name, " to #", to.asked.owner.low, ":",
                  to.asked.owner.sequence, ", token ", reply.first_token.value);
    return {reply.first_token, reply.token_count, to.asked_at, to.asked.ttl};
}

std::vector<std::string> sim_store::take_hints() {
    auto hints = model_.take_hints();
    std::erase(hints, std::exchange(given_away_, {}));
    return hints;
}

engines::acquire_reply sim_store::acquire(const engines::acquire_request& request,
                                          clock::time_point sent_at, bool too_late) {
    using outcome = engines::acquire_reply::outcome;
    const auto before = look(request.name);
    auto cut = request;
    cut.ttl = granted_ttl(request.ttl);
    auto reply = decide(cut, sent_at, too_late);
    reply.ttl = cut.ttl;
    if (reply.result == outcome::granted) {
        if (planted(bug::store_token_repeats) && reply.first_token.value > 1 && ++grants_ % 3 == 0) {
            reply.first_token.value -= 1;
        }
        audit_grant(request, reply, before);
        ++freedom_[lock_index(request.name)];
        closings_[lock_index(request.name)] += request.mode == claim_mode::shared ? 0U : 1U;
        if (too_late) {
            beyond_knowledge_.push_back(request.owner);
        }
    }
    const auto after = look(request.name);
    audit_others("an acquisition", request.owner, before, after);
    audit_limits(request.name, after);
    run_.log.note(
        "store: acquire ", request.name, " by #", request.owner.low, ":", request.owner.sequence,
        reply.result == outcome::granted ? " granted, token "
        : reply.result == outcome::busy  ? " busy, retry after ms "
                                         : " refused ",
        reply.result == outcome::granted ? static_cast<std::int64_t>(reply.first_token.value)
                                         : static_cast<std::int64_t>(reply.retry_after.count()),
        too_late ? " (too late for its client)" : "");
    return reply;
}

void sim_store::audit_grant(const engines::acquire_request& request,
                            const engines::acquire_reply& reply, const holders& before) {
    const auto* had = find(before, request.owner);
    const bool fresh =
        had == nullptr || (had->mode == claim_mode::shared && request.mode == claim_mode::exclusive);
    if (fresh && reply.first_token.value <= largest_token_) {
        run_.log.violated("token order", "the store grants \"", request.name, "\" with token ",
                          reply.first_token.value, " after it granted ", largest_token_);
    }
    if (!fresh && !planted(bug::store_token_repeats) && reply.first_token != had->token) {
        run_.log.violated("same owner, same token", "asked again, the store changed the token of \"",
                          request.name, "\" from ", had->token.value, " to ", reply.first_token.value);
    }
    largest_token_ = std::max(largest_token_, reply.first_token.value + reply.token_count - 1);
}

void sim_store::audit_others(std::string_view what, const owner_id& owner, const holders& before,
                             const holders& after) {
    for (const auto& one : before) {
        const auto kept = std::any_of(after.begin(), after.end(),
                                      [&](const auto& other) { return same(one, other); });
        if (one.owner != owner && !kept) {
            run_.log.violated("hands off", what, " by #", owner.low, ":", owner.sequence,
                              " changed the hold of #", one.owner.low, ":", one.owner.sequence);
        }
    }
}

void sim_store::audit_limits(const std::string& name, const holders& after) {
    std::uint32_t taken = 0;
    bool exclusive = false;
    for (const auto& one : after) {
        taken += one.permits;
        exclusive = exclusive || one.mode == claim_mode::exclusive;
    }
    if (lock_index(name) == semaphore) {
        if (taken > run_.numbers.permit_limit) {
            run_.log.violated("limits", taken, " permits of \"", name, "\" are taken");
        }
    } else if (exclusive && after.size() > 1) {
        run_.log.violated("limits", after.size(), " owners have \"", name,
                          "\", one of them exclusively");
    }
}

engines::renew_reply sim_store::renew(const engines::renew_request& request, bool too_late) {
    using outcome = engines::renew_reply::outcome;
    const auto before = look(request.name);
    auto cut = request;
    cut.ttl = granted_ttl(request.ttl);
    auto reply = model_.renew(cut, now());
    reply.ttl = cut.ttl;
    if (reply.result == outcome::gone && planted(bug::store_renewal_recreates)) {
        const auto again = model_.acquire(
            {request.name, request.mode, 1, run_.numbers.permit_limit, request.owner, cut.ttl, 1},
            now());
        if (again.result == engines::acquire_reply::outcome::granted) {
            reply = {outcome::renewed, {}};
        }
    }
    if (too_late) {
        beyond_knowledge_.push_back(request.owner);
    }
    const auto after = look(request.name);
    audit_others("a renewal", request.owner, before, after);
    if (find(before, request.owner) == nullptr &&
        (reply.result == outcome::renewed || find(after, request.owner) != nullptr)) {
        run_.log.violated("renewal never re-creates", "\"", request.name, "\" of #", request.owner.low,
                          ":", request.owner.sequence, " was gone, and a renewal brought it back");
    }
    run_.log.note("store: renew ", request.name, " of #", request.owner.low, ":",
                  request.owner.sequence, reply.result == outcome::renewed ? " renewed" : " gone");
    return reply;
}

engines::release_reply sim_store::release(const engines::release_request& request) {
    using outcome = engines::release_reply::outcome;
    const auto before = look(request.name);
    auto reply = model_.release(request, now());
    if (reply.result == outcome::gone && planted(bug::store_release_ignores_owner)) {
        reply = release_anybody(request);
    }
    const auto after = look(request.name);
    audit_others("a release", request.owner, before, after);
    if (!before.empty() && after.empty()) {
        ++freedom_[lock_index(request.name)];
    }
    if (request.kind == lock_kind::fair_mutex) {
        line_.leave(request.owner);
        serve_line();
    } else {
        wishes_[lock_index(request.name)].leave(request.owner);
        if (!before.empty() && after.empty()) {
            give(request.name);
        }
    }
    run_.log.note("store: release ", request.name, " of #", request.owner.low, ":",
                  request.owner.sequence, reply.result == outcome::released ? " released" : " gone");
    return reply;
}

engines::release_reply sim_store::release_anybody(const engines::release_request& request) {
    const auto present = look(request.name);
    const auto victim = std::find_if(present.begin(), present.end(),
                                     [](const holder_info& one) { return !one.lingering; });
    if (victim == present.end()) {
        return {engines::release_reply::outcome::gone, 0, {}};
    }
    auto other = request;
    other.owner = victim->owner;
    return model_.release(other, now());
}

bool sim_store::revoke(std::size_t lock, std::uint32_t which) {
    const auto present = look(lock_name(lock));
    if (present.empty()) {
        return false;
    }
    const auto& victim = present[which % present.size()];
    run_.store_kept_its_word = false;
    run_.log.note("operator revokes ", lock_name(lock), " of #", victim.owner.low, ":",
                  victim.owner.sequence);
    static_cast<void>(
        model_.revoke({lock_name(lock), victim.owner, victim.token, "operator", "simulated"}, now()));
    if (lock == perhaps_fair) {
        serve_line();
    }
    return true;
}

void sim_store::step_clock(clock::duration by) {
    // Within limits, so that what is left behind expires in time even after many steps.
    const clock::duration most = 2 * run_.numbers.ttl;
    offset_ = std::clamp(offset_ + by, -most, most);
    run_.store_kept_its_word = false;
    went_back_ = went_back_ || by < clock::duration::zero();
    run_.log.note("store: its clock steps by ms ",
                  std::chrono::duration_cast<std::chrono::milliseconds>(by).count());
}

void sim_store::lose_data() {
    run_.store_kept_its_word = false;
    model_.reset(largest_token_ + 1000);
    line_.clear();
    for (auto& wishes : wishes_) {
        wishes.clear();
    }
    for (std::size_t lock = 0; lock < lock_count; ++lock) {
        ++freedom_[lock];
        ++closings_[lock];
    }
    run_.log.note("store: all data is lost");
}

bool sim_store::is_free(std::size_t lock) {
    return look(lock_name(lock)).empty();
}

bool sim_store::lets_readers_in(std::size_t lock) {
    const auto present = look(lock_name(lock));
    return std::all_of(present.begin(), present.end(), [](const holder_info& one) {
        return one.mode == claim_mode::shared && !one.lingering;
    });
}

std::optional<clock::time_point> sim_store::expiry(const owner_id& owner, std::size_t lock) {
    const auto present = look(lock_name(lock));
    const auto* mine = find(present, owner);
    if (mine == nullptr) {
        return std::nullopt;
    }
    return run_.now() + mine->remaining;
}

bool sim_store::has(const owner_id& owner, std::size_t lock) {
    return find(look(lock_name(lock)), owner) != nullptr && !was_too_late(owner);
}

bool sim_store::was_too_late(const owner_id& owner) const noexcept {
    return std::find(beyond_knowledge_.begin(), beyond_knowledge_.end(), owner) !=
           beyond_knowledge_.end();
}

void sim_store::check_left_behind(const owner_id& client) {
    // A client stops cleaning up when the ttl is over by its own clock.
    if (went_back_ || !model_.has_holds_of(client, now())) {
        return;
    }
    for (std::size_t lock = 0; lock < lock_count; ++lock) {
        for (const auto& one : look(lock_name(lock))) {
            if (one.owner.same_client(client) && !one.lingering && !was_too_late(one.owner)) {
                run_.log.violated("nothing is left behind", "client #", client.low,
                                  " has nothing to do any more, but the store keeps \"",
                                  lock_name(lock), "\" for its owner ", one.owner.sequence, ", for ms ",
                                  one.remaining.count());
            }
        }
    }
}

}  // namespace holdfast::testing::sim
