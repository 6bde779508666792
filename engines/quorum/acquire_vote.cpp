#include <quorum/acquire_vote.hpp>

#include <algorithm>
#include <deque>
#include <exception>
#include <utility>

namespace holdfast::engines::quorums {

namespace {

using core::round_purpose;
using acquire_result = acquire_reply::outcome;
using action = core::quorum_round::action;

/// In microseconds. Members may count tokens from their own clocks, and their clocks may be ahead of
/// ours.
constexpr std::uint64_t ahead_of_the_clock = 1'000'000;

[[nodiscard]] std::string seconds_text(clock::duration value) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(value).count()) + " s";
}

/// One acquisition's way through the members: does what the machine says.
///
/// Thread safety: the guard of the holds guards the machine and its actions.
class acquire_vote : public std::enable_shared_from_this<acquire_vote> {
public:
    /// `hold`: its owner's. Under the guard.
    acquire_vote(quorum_parts& parts, acquire_request request, const call& limits,
                 completion<acquire_reply> done, hold& hold)
        : parts_{parts},
          members_{parts.members},
          key_{request.name, request.owner},
          request_{std::move(request)},
          limits_{limits},
          member_timeout_{members_.timeout(request_.ttl)},
          done_{std::move(done)},
          instances_(members_.size()),
          unsteady_(members_.size()),
          machine_{classify(hold)} {}

    /// Under the guard.
    void begin(hold& hold) {
        hold.vote = {shared_from_this(), &machine_};
        enqueue(machine_.start());
    }

    /// Does what the machine said, in order, on whichever thread comes: the caller must not learn of
    /// the end before every member has been asked, or its release might overtake a request.
    void perform() {
        while (true) {
            action next;
            {
                const std::lock_guard lock{parts_.holds.guard};
                if (performing_ || to_do_.empty()) {
                    return;
                }
                next = to_do_.front();
                to_do_.pop_front();
                performing_ = true;
            }
            execute(next);
            const std::lock_guard lock{parts_.holds.guard};
            performing_ = false;
        }
    }

    [[nodiscard]] clock::time_point deadline() const {
        return std::min(limits_.deadline, members_.now() + member_timeout_);
    }
    [[nodiscard]] bool decided() const {
        const std::lock_guard lock{parts_.holds.guard};
        return machine_.done();
    }
    [[nodiscard]] bool won() const {
        const std::lock_guard lock{parts_.holds.guard};
        return machine_.won();
    }

private:
    [[nodiscard]] core::quorum_round::settings classify(hold& hold);
    void guess_token();
    void enqueue(core::quorum_round::actions actions);
    void execute(const action& next);
    void ask(std::size_t member, fencing_token floor);
    void undo(std::size_t member);
    void answered(std::size_t member, const acquire_reply& reply);
    [[nodiscard]] failure uncounted(std::size_t member, const store_instance& instance);
    [[nodiscard]] std::size_t same_instance(std::size_t member, const std::string& id);
    void settle();
    void settle_loss(hold& hold);
    void finish();

    [[nodiscard]] member_claim claim_at(std::size_t member) const {
        return {member, key_, request_.owner, request_.mode, request_.kind};
    }
    [[nodiscard]] bool keeps_its_claim() const noexcept {
        return purpose_ == round_purpose::again || purpose_ == round_purpose::downgrade;
    }

    quorum_parts& parts_;
    member_set& members_;
    const hold_key key_;
    /// As members get it.
    acquire_request request_;
    const call limits_;
    const clock::duration member_timeout_;
    completion<acquire_reply> done_;
    round_purpose purpose_{round_purpose::fresh};
    /// The instances that granted it, to notice two members that are one.
    std::vector<std::string> instances_;
    /// Members whose vote cannot count for reasons that were there before the round.
    std::vector<bool> unsteady_;
    std::deque<action> to_do_;
    bool performing_{};
    core::quorum_round machine_;
};

/// What the request means for what its owner has, and which token to aim at.
core::quorum_round::settings acquire_vote::classify(hold& hold) {
    if (hold.current == hold::state::releasing) {
        ++hold.attempt;  // the release under way is about the claim before
        hold.current = hold::state::idle;
    }
    ++hold.generation;
    hold.known_to.assign(members_.size(), false);
    if (hold.held() && hold.mode == request_.mode) {
        purpose_ = round_purpose::again;
    } else if (hold.held()) {
        purpose_ =
            request_.mode == claim_mode::shared ? round_purpose::downgrade : round_purpose::upgrade;
        hold.mode = claim_mode::shared;  // until it is known to be more
    }
    core::quorum_round::settings settings;
    settings.purpose = purpose_;
    settings.members = members_.names();
    settings.suspects = members_.suspects();
    settings.started = members_.now();
    settings.ttl = request_.ttl;
    settings.drift = members_.promises().drift.over(request_.ttl);
    settings.tokens_agree = members_.tokens_agree();
    settings.jitter = members_.options().environment.random();
    if (keeps_its_claim()) {
        settings.keep_token = std::max(hold.token, request_.token_floor);
        request_.token_count = hold.token_count;
        request_.token_floor = settings.tokens_agree ? *settings.keep_token : fencing_token{};
    } else {
        guess_token();
    }
    settings.token_count = request_.token_count;
    if (purpose_ == round_purpose::upgrade) {
        for (std::size_t member = 0; member < members_.size(); ++member) {
            unsteady_[member] = hold.being_repaired[member] > 0;
        }
    }
    if (purpose_ == round_purpose::fresh) {
        settings.splits = hold.splits;
        if (hold.lead_next) {
            const auto& suspects = settings.suspects;
            const auto trusted = std::find(suspects.begin(), suspects.end(), false);
            settings.lead = trusted == suspects.end()
                                ? 0
                                : static_cast<std::size_t>(std::distance(suspects.begin(), trusted));
        }
    }
    request_.owner = hold.owner_at_members();
    request_.queue = false;
    return settings;
}

/// All members will normally answer with this very token, and need not be asked twice.
void acquire_vote::guess_token() {
    if (!members_.tokens_agree()) {
        request_.token_floor = {};
        return;
    }
    const auto guess = std::max(members_.options().environment.wall_clock() + ahead_of_the_clock,
                                parts_.holds.largest_token() + 1);
    request_.token_floor = std::max(request_.token_floor, fencing_token{guess});
}

/// Members that are asked now are put into the order in which a caller waits best. Under the guard.
void acquire_vote::enqueue(core::quorum_round::actions actions) {
    std::stable_partition(actions.begin(), actions.end(), [&](const action& one) {
        return one.what != action::kind::ask || members_.suspect(one.member);
    });
    to_do_.insert(to_do_.end(), actions.begin(), actions.end());
}

void acquire_vote::execute(const action& next) {
    switch (next.what) {
        case action::kind::ask:
            ask(next.member, request_.token_floor);
            break;
        case action::kind::raise:
            ask(next.member, next.token);
            break;
        case action::kind::undo:
            undo(next.member);
            break;
        case action::kind::complete:
            finish();
            break;
    }
}

void acquire_vote::ask(std::size_t member, fencing_token floor) {
    auto request = request_;
    request.token_floor = floor;
    {
        const std::lock_guard lock{parts_.holds.guard};
        parts_.holds.on_request(key_);
    }
    members_.ask(member, &engine::acquire, request, {deadline(), caller::must_not_block},
                 [self = shared_from_this(), member](const acquire_reply& reply) {
                     self->answered(member, reply);
                 });
}

void acquire_vote::answered(std::size_t member, const acquire_reply& reply) {
    const bool granted = reply.result == acquire_result::granted;
    store_instance instance;
    try {
        instance = granted ? members_.instance(member, key_.first) : store_instance{};
    } catch (const std::exception& wrong) {
        // A grant counts only if it is known which server gave it.
        answered(member, {.error = {errc::outcome_unknown, wrong.what()}});
        return;
    }
    const auto claim = claim_at(member);
    bool orphaned = false;
    {
        const std::lock_guard lock{parts_.holds.guard};
        const bool was_done = machine_.done();
        // Its owner has released it. The release may have reached this member before the request did.
        orphaned = parts_.holds.on_reply(claim, reply) && machine_.won();
        if (orphaned) {
            parts_.leftovers.announce_release(claim);
        }
        auto reason = granted && !was_done ? uncounted(member, instance) : failure{};
        if (reason.code == errc::bad_configuration) {
            enqueue(machine_.abort(reason));
        }
        if (reason) {
            enqueue(machine_.on_uncounted_grant(member, std::move(reason), members_.now()));
        } else if (!orphaned) {
            enqueue(machine_.on_reply(member, reply, members_.now()));
        }
        if (!was_done && machine_.done()) {
            settle();
        }
    }
    if (orphaned) {
        parts_.leftovers.release_announced(claim);
    }
    perform();
}

/// Why a grant does not count. Under the guard.
failure acquire_vote::uncounted(std::size_t member, const store_instance& instance) {
    if (purpose_ == round_purpose::upgrade) {
        const auto* const hold = parts_.holds.find(key_);
        if (unsteady_[member] || (hold != nullptr && hold->unsteady[member])) {
            return {errc::store_unavailable,
                    "an earlier request for the share is unanswered, and may still undo the upgrade"};
        }
    }
    const auto& names = members_.names();
    if (const auto twin = same_instance(member, instance.id); twin != members_.size()) {
        return {errc::bad_configuration,
                names[twin] + " and " + names[member] + " are the same server; it has one vote"};
    }
    const auto grace = members_.options().restart_grace;
    const auto age = instance.since ? members_.now() - *instance.since : clock::duration::max();
    const bool young = grace.count() > 0 && age < grace;
    if (young && !keeps_its_claim()) {
        return {errc::store_unavailable,
                "restarted " + seconds_text(age) +
                    " ago and may have forgotten a lock; it votes again in " +
                    seconds_text(grace - age + std::chrono::milliseconds{999})};
    }
    return {};
}

/// The member that already granted this and is the same server; the number of members if none is.
std::size_t acquire_vote::same_instance(std::size_t member, const std::string& id) {
    for (std::size_t other = 0; !id.empty() && other < members_.size(); ++other) {
        if (other != member && instances_[other] == id) {
            return other;
        }
    }
    instances_[member] = id;
    return members_.size();
}

/// The round is decided: what is known of its owner from now on. Under the guard.
void acquire_vote::settle() {
    auto* const hold = parts_.holds.find(key_);
    if (hold == nullptr) {
        return;
    }
    ++hold->generation;
    if (!machine_.won()) {
        settle_loss(*hold);
        return;
    }
    hold->splits = 0;
    hold->lead_next = false;
    const auto& reply = machine_.reply();
    parts_.holds.raise_largest_token(reply.first_token.value + reply.token_count - 1);
    if (hold->current == hold::state::releasing) {
        return;
    }
    hold->current = hold::state::held;
    hold->mode = request_.mode;
    hold->kind = request_.kind;
    hold->token = reply.first_token;
    hold->token_count = reply.token_count;
    hold->ttl = request_.ttl;
    hold->remember_for(hold->ttl, members_.now());
}

void acquire_vote::settle_loss(hold& hold) {
    if (purpose_ == round_purpose::downgrade && machine_.reply().error.code != errc::outcome_unknown) {
        hold.mode = claim_mode::exclusive;
    }
    if (purpose_ != round_purpose::fresh) {
        return;
    }
    const bool undone = std::any_of(to_do_.begin(), to_do_.end(),
                                    [](const action& one) { return one.what == action::kind::undo; });
    hold.attempt += undone ? 1 : 0;
    hold.splits = machine_.split() ? hold.splits + 1 : machine_.turned_away() ? hold.splits : 0;
    hold.lead_next = machine_.split();
    hold.remember_for(request_.ttl, members_.now());
}

/// A failed round gives back what it got; a failed upgrade goes back to the share.
void acquire_vote::undo(std::size_t member) {
    if (purpose_ == round_purpose::fresh) {
        parts_.leftovers.release(claim_at(member));
    } else {
        parts_.repairs.restore_share(member, key_, request_);
    }
}

void acquire_vote::finish() {
    std::function<void()> next;
    auto reply = machine_.reply();
    {
        const std::lock_guard lock{parts_.holds.guard};
        if (auto* const hold = parts_.holds.find(key_)) {
            reply.incomplete = machine_.won() && parts_.holds.incomplete(*hold);
            hold->vote.reset();
            if (!hold->next.empty()) {
                next = std::move(hold->next.front());
                hold->next.pop_front();
            }
            const bool nothing_to_remember = hold->current == hold::state::idle && hold->attempt == 0 &&
                                             hold->splits == 0 && hold->next.empty() && !next;
            if (nothing_to_remember) {
                parts_.holds.erase(key_);
            }
        }
    }
    if (members_.promises().tokens == fencing::none) {
        reply.first_token = {};
    }
    std::exchange(done_, {})(std::move(reply));
    if (next) {
        next();
    }
}

}  // namespace

void acquire_by_vote(quorum_parts& parts, acquire_request request, call limits,
                     completion<acquire_reply> done) {
    std::shared_ptr<acquire_vote> vote;
    std::vector<member_claim> leftovers;
    {
        const std::lock_guard lock{parts.holds.guard};
        const hold_key key{request.name, request.owner};
        auto& hold = parts.holds.entry(key);
        if (hold.vote) {
            // One after the other: the next vote must not count what a failed one gives back. The
            // thread that brings the last answer asks on, and has other things to do than to wait.
            limits.from = caller::must_not_block;
            hold.next.emplace_back(
                [&parts, request = std::move(request), limits, done = std::move(done)] {
                    acquire_by_vote(parts, request, limits, done);
                });
            return;
        }
        vote = std::make_shared<acquire_vote>(parts, std::move(request), limits, std::move(done), hold);
        leftovers = parts.leftovers.take(&key);
        vote->begin(hold);
    }
    parts.leftovers.release_all(leftovers);
    member_set::own_reading reading{parts.members, limits};
    vote->perform();
    reading.await(
        vote->deadline(), [&] { return vote->decided(); }, [&] { return vote->won(); });
}

}  // namespace holdfast::engines::quorums
