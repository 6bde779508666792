#include <quorum/engine.hpp>

#include <common/validate.hpp>

#include <algorithm>
#include <utility>

/// How a quorum is asked for a lock: one round of `core::quorum_round` for each request.
namespace holdfast::engines::quorums {

namespace {

using core::round_purpose;
using outcome = acquire_reply::outcome;
using kind = core::quorum_round::action::kind;

/// In microseconds. Members may count tokens from their own clocks, and their clocks may be ahead of
/// ours.
constexpr std::uint64_t ahead_of_the_clock = 1'000'000;

[[nodiscard]] std::string seconds_text(clock::duration value) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(value).count()) + " s";
}

}  // namespace

failure quorum_engine::refusal(const acquire_request& request, const call& how) const {
    if (auto bad = check_request(request, promises_)) {
        return bad;
    }
    if (request.mode == claim_mode::permit) {
        return {errc::guarantee_not_met, promises_.why_no_permits};
    }
    if (request.kind == lock_kind::fair_mutex) {
        return {errc::guarantee_not_met,
                "a quorum has no fair locks: its members' lines may differ in order"};
    }
    if (request.mode == claim_mode::shared && !promises_.shared) {
        return {errc::guarantee_not_met, "not all members of this quorum have shared locks"};
    }
    if (request.owner.sequence < 0 || request.owner.sequence > largest_sequence) {
        return {errc::invalid_argument, "the owner's number is out of range for a quorum"};
    }
    return lateness(how);
}

void quorum_engine::acquire(acquire_request request, call how, completion<acquire_reply> done) {
    if (auto bad = refusal(request, how)) {
        acquire_reply reply;
        reply.error = std::move(bad);
        done(std::move(reply));
        return;
    }
    round_ptr what;
    std::vector<leftover> leftovers;
    {
        const std::lock_guard lock{guard_};
        forget_now_and_then();
        const hold_key key{request.name, request.owner};
        auto& of = holds_.try_emplace(key, members_.size()).first->second;
        if (of.asking) {
            // One after the other: what a failed round gives back, the next must not have counted.
            // Whoever brings the last answer asks on, and has other things to do than to wait.
            how.from = caller::must_not_block;
            of.next.emplace_back([this, request = std::move(request), how, done = std::move(done)] {
                acquire(request, how, done);
            });
            return;
        }
        what = prepare(std::move(request), how, std::move(done), of);
        of.asking = what;
        leftovers = take_leftovers(&key);
        enqueue(what, what->machine.start());
    }
    give_back(leftovers);
    member_answers answers{*this, how};
    perform(what);
    answers.await(
        std::min(how.deadline, now() + what->member_timeout), [&] { return what->machine.done(); },
        [&] { return what->machine.won(); });
}

quorum_engine::round_ptr quorum_engine::prepare(acquire_request request, call how,
                                                completion<acquire_reply> done, hold& of) {
    core::quorum_round::settings settings;
    settings.members = names_;
    settings.suspects = suspects_;
    settings.started = now();
    settings.ttl = request.ttl;
    settings.drift = promises_.drift.over(request.ttl);
    settings.tokens_agree = tokens_agree_;
    settings.token_count = request.token_count;
    settings.jitter = options_.environment.random();
    const hold_key key{request.name, request.owner};
    const auto timeout = member_timeout(request.ttl);
    auto what = std::make_shared<round>(round{core::quorum_round{{}}, key, std::move(request),
                                              round_purpose::fresh, how, timeout, std::move(done),
                                              std::vector<std::string>(members_.size()),
                                              std::vector<bool>(members_.size())});
    classify(*what, of, settings);
    what->request.owner = member_owner(key.second, of.attempt);
    what->request.queue = false;
    settings.purpose = what->purpose;
    what->machine = core::quorum_round{std::move(settings)};
    return what;
}

/// What the request means for what its owner has, and which token to aim at.
void quorum_engine::classify(round& what, hold& of, core::quorum_round::settings& how) {
    auto& request = what.request;
    if (of.is == hold::state::letting_go) {
        ++of.attempt;  // the release that is under way is about what was before
        of.is = hold::state::idle;
    }
    ++of.generation;
    of.known_to.assign(members_.size(), false);
    if (of.is == hold::state::held && of.mode == request.mode) {
        what.purpose = round_purpose::again;
    } else if (of.is == hold::state::held) {
        what.purpose =
            request.mode == claim_mode::shared ? round_purpose::downgrade : round_purpose::upgrade;
        of.mode = claim_mode::shared;  // until it is known to be more
    }
    if (what.purpose == round_purpose::again || what.purpose == round_purpose::downgrade) {
        how.keep_token = std::max(of.token, request.token_floor);
        how.token_count = of.token_count;
        request.token_count = of.token_count;
        request.token_floor = tokens_agree_ ? *how.keep_token : fencing_token{};
        return;
    }
    if (tokens_agree_) {
        // All members will normally answer with this very token, and need not be asked twice.
        const auto guess =
            std::max(options_.environment.wall_clock() + ahead_of_the_clock, last_token_ + 1);
        request.token_floor = std::max(request.token_floor, fencing_token{guess});
    } else {
        request.token_floor = {};
    }
    if (what.purpose == round_purpose::upgrade) {
        for (std::size_t member = 0; member < members_.size(); ++member) {
            what.unsteady[member] = of.being_repaired[member] > 0;
        }
        return;
    }
    how.splits = of.splits;
    if (of.lead_next) {
        const auto trusted = std::find(suspects_.begin(), suspects_.end(), false);
        how.lead = trusted == suspects_.end()
                       ? 0
                       : static_cast<std::size_t>(std::distance(suspects_.begin(), trusted));
    }
}

/// Under the mutex. Members that are asked now are put into the order in which a caller waits best.
void quorum_engine::enqueue(const round_ptr& what, core::quorum_round::actions actions) {
    std::stable_partition(actions.begin(), actions.end(), [&](const action& one) {
        return one.what != kind::ask || suspects_[one.member];
    });
    what->to_do.insert(what->to_do.end(), actions.begin(), actions.end());
}

/// Does what the machine said, in order, whoever comes: the caller must not learn of the end before
/// everybody has been asked, or its release might overtake a request.
void quorum_engine::perform(const round_ptr& what) {
    while (true) {
        action next;
        {
            const std::lock_guard lock{guard_};
            if (what->performing || what->to_do.empty()) {
                return;
            }
            next = what->to_do.front();
            what->to_do.pop_front();
            what->performing = true;
        }
        execute(what, next);
        const std::lock_guard lock{guard_};
        what->performing = false;
    }
}

void quorum_engine::execute(const round_ptr& what, const action& next) {
    switch (next.what) {
        case kind::ask:
            ask(what, next.member, what->request.token_floor);
            break;
        case kind::raise:
            ask(what, next.member, next.token);
            break;
        case kind::undo:
            undo(what, next.member);
            break;
        case kind::complete:
            finish(what);
            break;
    }
}

void quorum_engine::ask(const round_ptr& what, std::size_t member, fencing_token floor) {
    const call how{std::min(what->how.deadline, now() + what->member_timeout), caller::must_not_block};
    auto request = what->request;
    request.token_floor = floor;
    {
        const std::lock_guard lock{guard_};
        if (const auto found = holds_.find(what->key); found != holds_.end()) {
            ++found->second.unanswered;
        }
    }
    const bool called = use(member, [&](engine& store) {
        store.acquire(std::move(request), how, [this, what, member](const acquire_reply& reply) {
            answered(what, member, reply);
        });
    });
    if (!called) {
        acquire_reply reply;
        reply.error = {errc::shut_down, "shutdown was called, or the client was destroyed"};
        answered(what, member, reply);
    }
}

void quorum_engine::answered(const round_ptr& what, std::size_t member, const acquire_reply& reply) {
    bool nobodys = false;
    store_instance from;
    if (reply.result == outcome::granted) {
        use(member, [&](engine& store) { from = instance_of(store, what->key.first); });
    }
    {
        const std::lock_guard lock{guard_};
        note_answer(member, reply.error);
        const auto found = holds_.find(what->key);
        const bool known = found != holds_.end();
        if (known) {
            auto& of = found->second;
            of.unanswered -= of.unanswered > 0 ? 1 : 0;
            const bool late_share =
                what->request.mode == claim_mode::shared && reply.error.code == errc::outcome_unknown;
            of.unsteady[member] = of.unsteady[member] || late_share;
        }
        const bool was_done = what->machine.done();
        const bool granted = reply.result == outcome::granted;
        if (known && member_owner(what->key.second, found->second.attempt) == what->request.owner) {
            found->second.known_to[member] = granted;
        }
        // Its owner has let go, and may not have reached this member before the request did.
        nobodys = granted && what->machine.won() &&
                  (!known || found->second.is != hold::state::held ||
                   member_owner(what->key.second, found->second.attempt) != what->request.owner);
        if (nobodys && known) {
            ++found->second.unanswered;  // by `release_announced`
        }
        auto why = granted && !was_done ? uncounted(*what, member, from) : failure{};
        if (why.code == errc::bad_configuration) {
            enqueue(what, what->machine.abort(why));
            enqueue(what, what->machine.on_uncounted_grant(member, std::move(why), now()));
        } else if (why) {
            enqueue(what, what->machine.on_uncounted_grant(member, std::move(why), now()));
        } else if (!nobodys) {
            enqueue(what, what->machine.on_reply(member, reply, now()));
        }
        if (!was_done && what->machine.done()) {
            settle(*what);
        }
    }
    if (nobodys) {
        release_announced(member, what->key, what->request.owner, what->request.mode,
                          what->request.kind);
    }
    perform(what);
}

/// Why a grant does not count. Under the mutex.
failure quorum_engine::uncounted(round& what, std::size_t member, const store_instance& from) {
    if (what.purpose == round_purpose::upgrade) {
        const auto found = holds_.find(what.key);
        if (what.unsteady[member] || (found != holds_.end() && found->second.unsteady[member])) {
            return {errc::store_unavailable,
                    "an earlier request for the share is unanswered, and may still undo the upgrade"};
        }
    }
    if (const auto twin = same_instance(what, member, from.id); twin != members_.size()) {
        return {errc::bad_configuration,
                names_[twin] + " and " + names_[member] + " are the same server; it has one vote"};
    }
    const bool young = from.since && options_.restart_grace.count() > 0 &&
                       now() - *from.since < options_.restart_grace;
    if (young && what.purpose != round_purpose::again && what.purpose != round_purpose::downgrade) {
        const auto age = now() - *from.since;
        return {errc::store_unavailable,
                "restarted " + seconds_text(age) +
                    " ago and may have forgotten a lock; it votes again in " +
                    seconds_text(options_.restart_grace - age + std::chrono::milliseconds{999})};
    }
    return {};
}

/// The member that already granted this and is the same server; the number of members if none is.
std::size_t quorum_engine::same_instance(round& what, std::size_t member, const std::string& id) const {
    for (std::size_t other = 0; !id.empty() && other < members_.size(); ++other) {
        if (other != member && what.instances[other] == id) {
            return other;
        }
    }
    what.instances[member] = id;
    return members_.size();
}

/// The round is decided: what is known of its owner from now on. Under the mutex.
void quorum_engine::settle(round& what) {
    const auto found = holds_.find(what.key);
    if (found == holds_.end()) {
        return;
    }
    auto& of = found->second;
    ++of.generation;
    if (!what.machine.won()) {
        settle_loss(what, of);
        return;
    }
    of.splits = 0;
    of.lead_next = false;
    const auto& reply = what.machine.reply();
    last_token_ = std::max(last_token_, reply.first_token.value + reply.token_count - 1);
    if (of.is == hold::state::letting_go) {
        return;
    }
    of.is = hold::state::held;
    of.mode = what.request.mode;
    of.kind = what.request.kind;
    of.token = reply.first_token;
    of.token_count = reply.token_count;
    of.ttl = what.request.ttl;
    remember_until_over(of);
}

void quorum_engine::settle_loss(round& what, hold& of) {
    if (what.purpose == round_purpose::downgrade &&
        what.machine.reply().error.code != errc::outcome_unknown) {
        of.mode = claim_mode::exclusive;
    }
    if (what.purpose != round_purpose::fresh) {
        return;
    }
    const bool undone = std::any_of(what.to_do.begin(), what.to_do.end(),
                                    [](const action& one) { return one.what == kind::undo; });
    of.attempt += undone ? 1 : 0;
    of.splits = what.machine.split() ? of.splits + 1 : what.machine.turned_away() ? of.splits : 0;
    of.lead_next = what.machine.split();
    of.forget_at = now() + what.request.ttl + memory_of_attempts;
}

/// A failed round gives back what it got; a failed upgrade goes back to the share.
void quorum_engine::undo(const round_ptr& what, std::size_t member) {
    if (what->purpose == round_purpose::fresh) {
        release_quietly(member, what->key, what->request.owner, what->request.mode, what->request.kind);
        return;
    }
    auto request = what->request;
    request.mode = claim_mode::shared;
    {
        const std::lock_guard lock{guard_};
        const auto found = holds_.find(what->key);
        if (found == holds_.end() || found->second.is != hold::state::held) {
            return;  // it has been let go of altogether
        }
        request.token_floor = tokens_agree_ ? found->second.token : fencing_token{};
        request.token_count = found->second.token_count;
        ++found->second.unanswered;
        ++found->second.being_repaired[member];
    }
    ask_aside(member, what->key, std::move(request));
}

void quorum_engine::finish(const round_ptr& what) {
    std::function<void()> next;
    auto reply = what->machine.reply();
    {
        const std::lock_guard lock{guard_};
        if (const auto found = holds_.find(what->key); found != holds_.end()) {
            auto& of = found->second;
            reply.incomplete = what->machine.won() && incomplete(of);
            of.asking.reset();
            if (!of.next.empty()) {
                next = std::move(of.next.front());
                of.next.pop_front();
            }
            const bool nothing_to_remember = of.is == hold::state::idle && of.attempt == 0 &&
                                             of.splits == 0 && of.next.empty() && !next;
            if (nothing_to_remember) {
                holds_.erase(found);
            }
        }
    }
    if (promises_.tokens == fencing::none) {
        reply.first_token = {};
    }
    std::exchange(what->done, {})(std::move(reply));
    if (next) {
        next();
    }
}

bool quorum_engine::incomplete(const hold& of) const {
    for (std::size_t member = 0; member < members_.size(); ++member) {
        if (!of.known_to[member] && !suspects_[member]) {
            return true;
        }
    }
    return false;
}

void quorum_engine::forget_now_and_then() {
    if (--requests_until_sweep_ > 0) {
        return;
    }
    requests_until_sweep_ = requests_between_sweeps;
    const auto when = now();
    std::erase_if(holds_, [&](const auto& entry) {
        return !entry.second.asking && entry.second.forget_at <= when;
    });
}

}  // namespace holdfast::engines::quorums
