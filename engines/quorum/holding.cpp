#include <quorum/engine.hpp>

#include <common/validate.hpp>

#include <algorithm>
#include <utility>

/// What a quorum does with locks that are held: renewals, repairs, releases.
namespace holdfast::engines::quorums {

struct renewal_item {
    hold_key key;
    claim_mode mode{};
    lock_kind kind{};
    std::uint64_t generation{};
    core::quorum_tally votes;
    /// Members that know nothing of it, and are to be told.
    std::vector<std::size_t> missing{};
    /// Members where somebody took it away, which they remember.
    std::vector<bool> revoked;
    failure why_gone{};
    std::vector<failure> failures{};
};

/// One batch of renewals on its way through the members.
struct renewal {
    std::vector<renewal_item> items;
    completion<std::vector<renew_reply>> done;
};

/// One release on its way through the members.
struct giving_back {
    hold_key key;
    core::quorum_tally votes;
    std::vector<failure> failures;
    completion<release_reply> done;
    std::uint64_t generation{};
    /// As members know it.
    owner_id owner{};
    std::uint32_t attempt{};
    claim_mode mode{};
    lock_kind kind{};
    /// Zero: what members do not confirm is left to them.
    std::chrono::milliseconds ttl{};
    /// Members that have not confirmed it.
    std::vector<std::size_t> missed{};
    std::uint32_t others_waiting{};
    failure why_gone{};
    bool any_released{};
    /// Not everybody has been asked yet. Its caller must not learn of the end before, or what it asks
    /// for next, as the same owner, would be released by what comes late.
    bool asking{true};
};

namespace {

using verdict = core::quorum_tally::verdict;
using vote = core::quorum_tally::vote;

/// The reason that says most: somebody's revocation, then anything at all.
void keep_reason(failure& kept, const failure& heard) {
    if (!kept || heard.code == errc::revoked) {
        kept = heard;
    }
}

[[nodiscard]] renew_reply outcome_of(const renewal_item& what, const std::vector<std::string>& names) {
    switch (what.votes.result()) {
        case verdict::done:
            return {renew_reply::outcome::renewed, {}};
        case verdict::gone:
            return {renew_reply::outcome::gone, what.why_gone};
        case verdict::open:
        case verdict::failed:
            break;
    }
    return {renew_reply::outcome::failed, core::combined_failure(names, what.failures)};
}

[[nodiscard]] vote vote_of(const renew_reply& reply) noexcept {
    switch (reply.result) {
        case renew_reply::outcome::renewed:
            return vote::done;
        case renew_reply::outcome::gone:
            return vote::gone;
        case renew_reply::outcome::failed:
            break;
    }
    return vote::failed;
}

}  // namespace

/// A holder that was lost may never come back to let go. Under the mutex.
void quorum_engine::remember_until_over(hold& of) const {
    if (of.is == hold::state::held) {
        of.forget_at = now() + of.ttl + memory_of_attempts;
    }
}

/// Under the mutex.
owner_id quorum_engine::owner_at_members(const hold_key& key) const {
    const auto found = holds_.find(key);
    return member_owner(key.second, found == holds_.end() ? 0 : found->second.attempt);
}

void quorum_engine::renew(std::vector<renew_request> batch, call how,
                          completion<std::vector<renew_reply>> done) {
    auto what = std::make_shared<renewal>();
    what->done = std::move(done);
    failure late = lateness(how);
    {
        const std::lock_guard lock{guard_};
        for (auto& request : batch) {
            const hold_key key{request.name, request.owner};
            const auto found = holds_.find(key);
            what->items.push_back({key,
                                   request.mode,
                                   request.kind,
                                   found == holds_.end() ? 0 : found->second.generation,
                                   core::quorum_tally{members_.size()},
                                   {},
                                   std::vector<bool>(members_.size()),
                                   {},
                                   std::vector<failure>(members_.size())});
            request.owner = owner_at_members(key);
        }
    }
    if (late || batch.empty()) {
        what->done(
            std::vector<renew_reply>(batch.size(), {renew_reply::outcome::failed, std::move(late)}));
        return;
    }
    const auto order = asking_order();
    for (const auto member : order) {
        const auto share = share_of(how, how.deadline, member == order.back());
        const bool called = use(member, [&](engine& store) {
            store.renew(batch, share, [this, what, member](std::vector<renew_reply> replies) {
                renewals_answered(what, member, std::move(replies));
            });
        });
        if (!called) {
            renewals_answered(
                what, member,
                std::vector<renew_reply>(
                    batch.size(),
                    {renew_reply::outcome::failed,
                     {errc::shut_down, "shutdown was called, or the client was destroyed"}}));
        }
    }
}

void quorum_engine::renewals_answered(const std::shared_ptr<renewal>& what, std::size_t member,
                                      std::vector<renew_reply> replies) {
    struct missing_part {
        std::size_t member;
        const renewal_item* of;
    };
    std::vector<missing_part> repairs;
    std::vector<leftover> leftovers;
    completion<std::vector<renew_reply>> done;
    std::vector<renew_reply> answer;
    {
        const std::lock_guard lock{guard_};
        replies.resize(what->items.size());
        bool decided = true;
        for (std::size_t index = 0; index < replies.size(); ++index) {
            auto& item = what->items[index];
            note_answer(member, replies[index].error);
            item.votes.add(vote_of(replies[index]));
            const auto found = holds_.find(item.key);
            if (found != holds_.end() && found->second.generation == item.generation &&
                replies[index].result != renew_reply::outcome::failed) {
                found->second.known_to[member] = replies[index].result == renew_reply::outcome::renewed;
            }
            if (replies[index].result == renew_reply::outcome::gone) {
                item.revoked[member] = replies[index].error.code == errc::revoked;
                keep_reason(item.why_gone, replies[index].error);
                // What was taken away by force is not given back.
                if (replies[index].error.code != errc::revoked) {
                    item.missing.push_back(member);
                }
            } else {
                item.failures[member] = replies[index].error;
            }
            decided = decided && item.votes.result() != verdict::open;
            if (item.votes.result() == verdict::done) {
                if (found != holds_.end()) {
                    remember_until_over(found->second);
                }
                for (const auto each : std::exchange(item.missing, {})) {
                    repairs.push_back({each, &item});
                }
            }
            if (item.votes.result() == verdict::gone && found != holds_.end() &&
                give_up(found->second, item)) {
                for (std::size_t each = 0; each < members_.size(); ++each) {
                    if (!item.revoked[each]) {  // a repair may have reached the others since
                        leftovers.push_back({each, item.key,
                                             member_owner(item.key.second, found->second.attempt),
                                             item.mode, item.kind, found->second.forget_at});
                    }
                }
            }
        }
        if (decided && what->done) {
            std::transform(what->items.begin(), what->items.end(), std::back_inserter(answer),
                           [&](const auto& item) {
                               auto reply = outcome_of(item, names_);
                               const auto found = holds_.find(item.key);
                               reply.incomplete = reply.result == renew_reply::outcome::renewed &&
                                                  found != holds_.end() && incomplete(found->second);
                               return reply;
                           });
            done = std::exchange(what->done, {});
        }
    }
    // A member that still has it would keep it for the ttl: also one that was told of it after somebody
    // took it away from the others by force.
    give_back(leftovers);
    // Not a vote in this renewal: a member that has just been told does not prove that nobody else was
    // let in before.
    for (const auto& [where, of] : repairs) {
        repair(where, of->key, of->generation, of->mode);
    }
    if (done) {
        done(std::move(answer));
    }
}

/// The lease is lost: no majority has it. Returns false if the loss is already known, or if the hold
/// has changed since the renewal was sent. Under the mutex.
bool quorum_engine::give_up(hold& of, const renewal_item& what) {
    if (of.is != hold::state::held || of.generation != what.generation || of.mode != what.mode ||
        of.asking) {
        return false;
    }
    of.is = hold::state::letting_go;
    ++of.generation;
    of.forget_at = now() + of.ttl + memory_of_attempts;
    return true;
}

/// Gives a member that lost the claim the claim again, unless anything has changed since it said so.
void quorum_engine::repair(std::size_t member, const hold_key& key, std::uint64_t generation,
                           claim_mode mode) {
    acquire_request request;
    const auto unchanged = [&](const hold& of) {
        return of.is == hold::state::held && of.generation == generation;
    };
    {
        const std::lock_guard lock{guard_};
        const auto found = holds_.find(key);
        if (found == holds_.end() || !unchanged(found->second) || found->second.asking ||
            found->second.mode != mode) {
            return;
        }
        auto& of = found->second;
        ++of.unanswered;
        ++of.being_repaired[member];
        request = {.name = key.first,
                   .mode = mode,
                   .owner = member_owner(key.second, of.attempt),
                   .ttl = of.ttl,
                   .token_count = of.token_count,
                   .kind = of.kind,
                   .token_floor = tokens_agree_ ? of.token : fencing_token{}};
    }
    ask_aside(member, key, std::move(request));
}

/// Asks for a claim that is no vote. Its sending was announced in the hold, under the mutex: whoever
/// converts the claim meanwhile does not trust this member, and whoever lets go of it is followed.
void quorum_engine::ask_aside(std::size_t member, const hold_key& key, acquire_request request) {
    const auto owner = request.owner;
    const auto mode = request.mode;
    const auto kind = request.kind;
    const auto deadline = now() + quiet_timeout;
    use(member, [&](engine& store) {
        store.acquire(std::move(request), {deadline, caller::must_not_block},
                      [this, member, key, owner, mode, kind](const acquire_reply& reply) {
                          answered_aside(member, key, owner, mode, kind, reply);
                      });
    });
    bool let_go_meanwhile = true;
    {
        const std::lock_guard lock{guard_};
        if (const auto found = holds_.find(key); found != holds_.end()) {
            auto& being = found->second.being_repaired[member];
            being -= being > 0 ? 1 : 0;
            let_go_meanwhile = found->second.is != hold::state::held;
            found->second.unanswered += let_go_meanwhile ? 1 : 0;  // by `release_announced`
        }
    }
    if (let_go_meanwhile) {
        // Its release may have overtaken this.
        release_announced(member, key, owner, mode, kind);
    }
}

void quorum_engine::answered_aside(std::size_t member, const hold_key& key, const owner_id& owner,
                                   claim_mode mode, lock_kind kind, const acquire_reply& reply) {
    // A request that reached the member after the release: nobody else would give it back.
    bool nobodys = reply.result == acquire_reply::outcome::granted;
    {
        const std::lock_guard lock{guard_};
        note_answer(member, reply.error);
        if (const auto found = holds_.find(key); found != holds_.end()) {
            auto& of = found->second;
            of.unanswered -= of.unanswered > 0 ? 1 : 0;
            const bool late_share =
                mode == claim_mode::shared && reply.error.code == errc::outcome_unknown;
            of.unsteady[member] = of.unsteady[member] || late_share;
            if (member_owner(key.second, of.attempt) == owner) {
                of.known_to[member] = nobodys;
            }
            nobodys = nobodys &&
                      (of.is != hold::state::held || member_owner(key.second, of.attempt) != owner);
            of.unanswered += nobodys ? 1 : 0;  // by `release_announced`
        }
    }
    if (nobodys) {
        release_announced(member, key, owner, mode, kind);
    }
}

/// A majority is free of it; the others are told again when they answer. Under the mutex.
void quorum_engine::keep_leftovers_of(giving_back& what) {
    const auto result = what.votes.result();
    if (what.done || what.missed.empty() || what.ttl.count() == 0 ||
        leftovers_.size() >= most_leftovers || (result != verdict::done && result != verdict::gone)) {
        return;
    }
    auto [place, fresh] = holds_.try_emplace(what.key, members_.size());
    auto& of = place->second;
    const auto until = now() + what.ttl;
    if (fresh) {
        of.attempt = what.attempt;
        of.forget_at = until;
    } else if (of.forget_at != clock::time_point::max()) {
        of.forget_at = std::max(of.forget_at, until);
    }
    for (const auto member : std::exchange(what.missed, {})) {
        keep_leftover({member, what.key, what.owner, what.mode, what.kind, until}, of);
    }
}

void quorum_engine::release(release_request request, call how, completion<release_reply> done) {
    auto bad = check_request(request, promises_);
    if (!bad) {
        bad = lateness(how);
    }
    if (bad) {
        done({release_reply::outcome::failed, 0, std::move(bad)});
        return;
    }
    auto what = std::make_shared<giving_back>(giving_back{{request.name, request.owner},
                                                          core::quorum_tally{members_.size()},
                                                          std::vector<failure>(members_.size()),
                                                          std::move(done)});
    const auto ttl = begin_letting_go(*what, request);
    const auto order = asking_order();
    const auto deadline = std::min(how.deadline, now() + member_timeout(ttl));
    member_answers answers{*this, how};
    for (const auto member : order) {
        const bool called = use(member, [&](engine& store) {
            store.release(request, {deadline, caller::must_not_block},
                          [this, what, member](release_reply reply) {
                              release_answered(*what, member, std::move(reply));
                          });
        });
        if (!called) {
            release_answered(*what, member,
                             {release_reply::outcome::failed,
                              0,
                              {errc::shut_down, "shutdown was called, or the client was destroyed"}});
        }
    }
    {
        const std::lock_guard lock{guard_};
        what->asking = false;
    }
    conclude(*what);
    const auto decided = [&] { return !what->done; };
    answers.await(deadline, decided, decided);
}

/// From now on nothing makes the claim anew. The ttl that it had.
std::chrono::milliseconds quorum_engine::begin_letting_go(giving_back& what, release_request& request) {
    std::vector<leftover> leftovers;
    std::chrono::milliseconds ttl{std::chrono::hours{1}};
    {
        const std::lock_guard lock{guard_};
        request.owner = owner_at_members(what.key);
        what.owner = request.owner;
        what.mode = request.mode;
        what.kind = request.kind;
        if (const auto found = holds_.find(what.key); found != holds_.end()) {
            auto& of = found->second;
            of.is = hold::state::letting_go;
            what.generation = ++of.generation;
            of.forget_at = now() + std::max(of.ttl, request.linger) + memory_of_attempts;
            what.attempt = of.attempt;
            what.ttl = request.linger.count() == 0 ? of.ttl : std::chrono::milliseconds{};
            ttl = of.ttl.count() > 0 ? of.ttl : ttl;
            if (of.asking) {
                of.asking->machine.stop_raising();
            }
        }
        leftovers = take_leftovers(&what.key);
    }
    give_back(leftovers);
    return ttl;
}

void quorum_engine::release_answered(giving_back& what, std::size_t member, release_reply reply) {
    using outcome = release_reply::outcome;
    {
        const std::lock_guard lock{guard_};
        note_answer(member, reply.error);
        what.votes.add(reply.result == outcome::released ? vote::done
                       : reply.result == outcome::gone   ? vote::gone
                                                         : vote::failed);
        what.others_waiting = std::max(what.others_waiting, reply.others_waiting);
        what.any_released = what.any_released || reply.result == outcome::released;
        if (reply.result == outcome::gone) {
            keep_reason(what.why_gone, reply.error);
        } else {
            what.failures[member] = std::move(reply.error);
        }
        if (reply.result == outcome::failed) {
            what.missed.push_back(member);
            keep_leftovers_of(what);
        }
    }
    conclude(what);
}

/// Tells what became of it once that is decided.
void quorum_engine::conclude(giving_back& what) {
    using outcome = release_reply::outcome;
    completion<release_reply> finish;
    release_reply answer;
    {
        const std::lock_guard lock{guard_};
        const auto result = what.votes.result();
        if (result == verdict::open || what.asking || !what.done) {
            return;
        }
        if (result == verdict::failed) {
            answer.error = core::combined_failure(names_, what.failures);
            if (what.any_released) {
                answer.error.code = errc::outcome_unknown;
            }
        } else {
            let_go(what.key, what.generation);
            answer = result == verdict::done
                         ? release_reply{outcome::released, what.others_waiting, {}}
                         : release_reply{outcome::gone, what.others_waiting, what.why_gone};
        }
        finish = std::exchange(what.done, {});
        keep_leftovers_of(what);
    }
    finish(std::move(answer));
}

/// A majority is free of it. Under the mutex.
void quorum_engine::let_go(const hold_key& key, std::uint64_t generation) {
    const auto found = holds_.find(key);
    if (found == holds_.end() || found->second.is != hold::state::letting_go ||
        found->second.generation != generation) {
        return;
    }
    auto& of = found->second;
    if (of.unanswered == 0 && !of.asking) {
        holds_.erase(found);
        return;
    }
    // What still may arrive at a member must not meet the same owner again.
    ++of.attempt;
    of.is = hold::state::idle;
    of.forget_at = now() + memory_of_attempts;
}

}  // namespace holdfast::engines::quorums
