#include <core/quorum.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::core {

namespace {

using std::chrono::milliseconds;
using outcome = engines::acquire_reply::outcome;

/// Whether asking again can help. Everything else is a refusal.
[[nodiscard]] bool may_pass(errc code) noexcept {
    return code == errc::store_unavailable || code == errc::outcome_unknown;
}

/// The refusal that so many share that no majority is left.
[[nodiscard]] const failure* shared_refusal(const std::vector<failure>& failures) {
    for (const auto& why : failures) {
        const auto alike = static_cast<std::size_t>(
            std::count_if(failures.begin(), failures.end(),
                          [&](const auto& other) { return other.code == why.code; }));
        if (why && !may_pass(why.code) && alike > failures.size() - majority_of(failures.size())) {
            return &why;
        }
    }
    return nullptr;
}

/// Long enough for the others to have finished, random so that they do not come back together.
[[nodiscard]] milliseconds split_pause(std::uint32_t splits, double jitter) {
    const auto longest = milliseconds{8} * (1 << std::min<std::uint32_t>(splits, 5));
    return milliseconds{1} +
           milliseconds{static_cast<milliseconds::rep>(jitter * static_cast<double>(longest.count()))};
}

}  // namespace

quorum_round::quorum_round(settings its_settings)
    : settings_{std::move(its_settings)},
      members_(settings_.members.size()),
      needed_{majority_of(settings_.members.size())} {
    settings_.suspects.resize(members_.size());
}

quorum_round::actions quorum_round::start() {
    for (std::size_t index = 0; index < members_.size(); ++index) {
        if (!settings_.lead || *settings_.lead == index) {
            ask(index);
        }
    }
    return take();
}

void quorum_round::ask(std::size_t index) {
    members_[index].is = state::asked;
    actions_.push_back({action::kind::ask, index, {}});
}

quorum_round::actions quorum_round::on_reply(std::size_t member, const engines::acquire_reply& reply,
                                             clock::time_point now) {
    auto& ballot = members_[member];
    switch (reply.result) {
        case outcome::granted:
            on_grant(ballot, reply.first_token);
            break;
        case outcome::busy:
            ballot.is = state::busy;
            ballot.retry_after = reply.retry_after;
            break;
        case outcome::failed:
            ballot.is = state::failed;
            ballot.error = reply.error;
            break;
    }
    if (done_) {
        after_the_end(member);
        return take();
    }
    const bool led = settings_.lead == member;
    if (led && ballot.is == state::busy) {
        turned_away_ = true;
        lose();
        return take();
    }
    if (led) {
        settings_.lead.reset();
        for (std::size_t index = 0; index < members_.size(); ++index) {
            if (members_[index].is == state::unasked) {
                ask(index);
            }
        }
    }
    agree(now);
    return take();
}

quorum_round::actions quorum_round::on_uncounted_grant(std::size_t member, failure why,
                                                       clock::time_point now) {
    // What the member has is undone with the rest if the round fails, and stays if it is won: there it
    // keeps others out, although it did not help us in.
    engines::acquire_reply reply;
    reply.error = std::move(why);
    members_[member].has_it = true;
    const bool came_late = done_;
    auto rest = on_reply(member, reply, now);
    if (came_late && !won() && undoes()) {
        rest.push_back({action::kind::undo, member, {}});
    }
    return rest;
}

void quorum_round::on_grant(voter& ballot, fencing_token token) {
    const bool first = ballot.is == state::asked;
    ballot.has_it = true;
    ballot.token = token;
    ballot.is = state::granted;
    if (first && !done_) {
        agreed_ = std::max(agreed_, token);
    }
    if (token < ballot.raised_to) {
        ballot.is = state::failed;
        ballot.error = {errc::store_error, "it does not take a token from others"};
    }
}

/// Every member whose token is the largest agrees; the others are raised to it.
void quorum_round::agree(clock::time_point now) {
    const auto wanted = settings_.keep_token.value_or(agreed_);
    for (auto& ballot : members_) {
        if (ballot.is == state::agreed && ballot.token < wanted) {
            ballot.is = state::granted;
        }
        if (ballot.is == state::granted && (ballot.token >= wanted || !settings_.tokens_agree)) {
            ballot.is = state::agreed;
        }
    }
    if (count(state::agreed) >= needed_) {
        if (now >= settings_.started + settings_.ttl - settings_.drift) {
            const auto taken = std::chrono::duration_cast<milliseconds>(now - settings_.started);
            fail({may_have_changed() ? errc::outcome_unknown : errc::store_unavailable,
                  "the members took " + std::to_string(taken.count()) +
                      " ms to grant it, and by then it was over"});
            return;
        }
        engines::acquire_reply reply;
        reply.result = outcome::granted;
        reply.first_token = wanted;
        reply.token_count = settings_.token_count;
        complete(std::move(reply));
    }
    if (settings_.tokens_agree) {
        raise_members();
    }
    const auto left = prospects();
    // Whether it is busy, or too few are there, is not known before those have spoken who still may.
    if (!done_ && left.votes < needed_ &&
        (left.awaited == 0 || known_to_be_busy() || shared_refusal(failures()))) {
        lose();
    }
}

void quorum_round::raise_members() {
    // Before a majority is there it may still turn out that another token is the largest.
    const auto in = count(state::agreed) + count(state::granted) + count(state::raising);
    if (in < needed_ || !may_raise_) {
        return;
    }
    const auto wanted = settings_.keep_token.value_or(agreed_);
    for (std::size_t index = 0; index < members_.size(); ++index) {
        auto& ballot = members_[index];
        if (ballot.is == state::granted && ballot.raised_to < wanted) {
            ballot.is = state::raising;
            ballot.raised_to = wanted;
            actions_.push_back({action::kind::raise, index, wanted});
        }
    }
}

quorum_round::outlook quorum_round::prospects() const noexcept {
    std::size_t sure = 0;
    std::size_t trusted = 0;
    std::size_t trusted_out = 0;
    std::size_t suspects_out = 0;
    for (std::size_t index = 0; index < members_.size(); ++index) {
        const auto is = members_[index].is;
        const bool out = is == state::asked || is == state::unasked;
        const bool raisable = is == state::raising || (is == state::granted && may_raise_);
        sure += is == state::agreed || raisable ? 1 : 0;
        trusted += settings_.suspects[index] ? 0 : 1;
        (settings_.suspects[index] ? suspects_out : trusted_out) += out ? 1 : 0;
    }
    const bool wait_for_suspects = trusted < needed_ || trusted_out > 0;
    const auto awaited = trusted_out + (wait_for_suspects ? suspects_out : 0);
    return {sure + awaited, awaited};
}

/// Somebody has it, and enough members are there to say so.
bool quorum_round::known_to_be_busy() const noexcept {
    const auto busy = count(state::busy);
    return turned_away_ || busy > members_.size() - needed_ ||
           (busy > 0 && busy + members_won() >= needed_);
}

std::size_t quorum_round::members_won() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(members_.begin(), members_.end(),
                      [](const voter& ballot) { return ballot.has_it && ballot.is != state::busy; }));
}

std::size_t quorum_round::count(state wanted) const noexcept {
    return static_cast<std::size_t>(std::count_if(
        members_.begin(), members_.end(), [&](const voter& ballot) { return ballot.is == wanted; }));
}

void quorum_round::lose() {
    engines::acquire_reply reply;
    if (known_to_be_busy()) {
        reply.result = outcome::busy;
        reply.retry_after = lease_ends_in();
        split_ = members_won() > 0;
        if (split_ || turned_away_) {
            const auto pause = split_pause(settings_.splits, settings_.jitter);
            reply.retry_after =
                reply.retry_after.count() > 0 ? std::min(pause, reply.retry_after) : pause;
        }
    } else {
        reply.error = combined_failure(settings_.members, failures());
        if (reply.error.code == errc::store_unavailable && may_have_changed()) {
            reply.error.code = errc::outcome_unknown;
        }
    }
    undo_all();
    complete(std::move(reply));
}

/// When so many of the leases in our way have ended that a majority may be free; zero if unknown.
milliseconds quorum_round::lease_ends_in() const {
    std::vector<milliseconds> ends;
    std::size_t free = 0;
    for (const auto& ballot : members_) {
        if (ballot.is == state::busy) {
            ends.push_back(ballot.retry_after);
        } else if (ballot.is != state::failed) {
            ++free;
        }
    }
    if (free >= needed_) {
        return {};
    }
    const auto missing = needed_ - free;
    if (missing > ends.size()) {
        return {};
    }
    std::sort(ends.begin(), ends.end());
    return ends[missing - 1];
}

bool quorum_round::may_have_changed() const noexcept {
    return std::any_of(members_.begin(), members_.end(), [&](const voter& ballot) {
        const bool unknown = ballot.is == state::asked || ballot.is == state::raising ||
                             (ballot.is == state::failed && ballot.error.code == errc::outcome_unknown);
        const bool kept = !undoes() && (ballot.is == state::agreed || ballot.is == state::granted);
        return unknown || kept;
    });
}

std::vector<failure> quorum_round::failures() const {
    std::vector<failure> all;
    for (const auto& ballot : members_) {
        all.push_back(ballot.is == state::asked ? failure{errc::store_unavailable, "has not answered"}
                                                : ballot.error);
    }
    return all;
}

quorum_round::actions quorum_round::abort(failure why) {
    if (!done_) {
        fail(std::move(why));
    }
    return take();
}

void quorum_round::fail(failure why) {
    engines::acquire_reply reply;
    reply.error = std::move(why);
    undo_all();
    complete(std::move(reply));
}

/// Also where no answer came: the request may have arrived, or may be about to.
void quorum_round::undo_all() {
    if (!undoes()) {
        return;
    }
    for (std::size_t index = 0; index < members_.size(); ++index) {
        const auto& ballot = members_[index];
        const bool unknown = ballot.is == state::asked ||
                             (ballot.is == state::failed && ballot.error.code == errc::outcome_unknown);
        if (ballot.has_it || unknown) {
            actions_.push_back({action::kind::undo, index, {}});
        }
    }
}

/// What comes in when the caller has its answer.
void quorum_round::after_the_end(std::size_t index) {
    auto& ballot = members_[index];
    if (ballot.is != state::granted) {
        return;
    }
    if (!won()) {
        if (undoes()) {
            actions_.push_back({action::kind::undo, index, {}});
        }
        return;
    }
    // So that all members name the same token, by which the hold can be revoked.
    if (settings_.tokens_agree && may_raise_ && ballot.token < reply_.first_token &&
        ballot.raised_to < reply_.first_token) {
        ballot.is = state::raising;
        ballot.raised_to = reply_.first_token;
        actions_.push_back({action::kind::raise, index, reply_.first_token});
    }
}

void quorum_round::complete(engines::acquire_reply reply) {
    done_ = true;
    reply_ = std::move(reply);
    actions_.push_back({action::kind::complete, 0, {}});
}

quorum_round::actions quorum_round::take() {
    return std::exchange(actions_, {});
}

void quorum_tally::add(vote what) noexcept {
    switch (what) {
        case vote::done:
            ++done_;
            break;
        case vote::gone:
            ++gone_;
            break;
        case vote::failed:
            ++failed_;
            break;
    }
}

quorum_tally::verdict quorum_tally::result() const noexcept {
    const auto needed = majority_of(members_);
    if (done_ >= needed) {
        return verdict::done;
    }
    if (gone_ > members_ - needed) {
        return verdict::gone;
    }
    return complete() ? verdict::failed : verdict::open;
}

std::string describe_no_quorum(const std::vector<std::string>& members,
                               const std::vector<failure>& failures) {
    const auto answered =
        std::count_if(failures.begin(), failures.end(), [](const failure& why) { return !why; });
    std::string text = "no quorum: " + std::to_string(answered) + " of " +
                       std::to_string(members.size()) + " members answered, " +
                       std::to_string(majority_of(members.size())) + " needed";
    for (std::size_t index = 0; index < failures.size(); ++index) {
        if (failures[index]) {
            text += "; " + members[index] + ": " + failures[index].detail;
        }
    }
    return text;
}

failure combined_failure(const std::vector<std::string>& members,
                         const std::vector<failure>& failures) {
    if (const auto* refused = shared_refusal(failures)) {
        return *refused;
    }
    const bool unknown = std::any_of(failures.begin(), failures.end(), [](const failure& why) {
        return why.code == errc::outcome_unknown;
    });
    return {unknown ? errc::outcome_unknown : errc::store_unavailable,
            describe_no_quorum(members, failures)};
}

}  // namespace holdfast::core
