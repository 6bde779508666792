#include <joint_user.hpp>

#include <algorithm>
#include <array>

namespace holdfast::testing::sim {

namespace {

using core::joint_acquisition;

/// How long a thread may take to go on once it can.
constexpr auto longest_wake_up = 100us;

[[nodiscard]] std::string text(const joint_lock& which) {
    return which.second + " on store " + std::to_string(which.first);
}

}  // namespace

void joint_referee::complain(const std::string& what) {
    if (result_.violation.empty()) {
        const auto at =
            std::chrono::duration_cast<std::chrono::microseconds>(stage_.now().time_since_epoch());
        result_.violation = what + " (at " + std::to_string(at.count()) + " us)";
    }
}

void joint_referee::granted(std::uint32_t user, const joint_lock& which, fencing_token token,
                            clock::time_point believes_until) {
    ++result_.grants;
    if (token <= largest_[which]) {
        complain(text(which) + ": token " + std::to_string(token.value) + " was granted after " +
                 std::to_string(largest_[which].value));
    }
    largest_[which] = token;
    if (const auto other = beliefs_.find(which);
        other != beliefs_.end() && other->second.until > stage_.now()) {
        complain("user " + std::to_string(user) + " was granted " + text(which) + " while user " +
                 std::to_string(other->second.user) + " rightly believed in it");
    }
    beliefs_[which] = {user, believes_until};
}

void joint_referee::extended(std::uint32_t user, const joint_lock& which,
                             clock::time_point believes_until) {
    if (auto& one = beliefs_[which]; one.user == user) {
        one.until = std::max(one.until, believes_until);
    }
}

void joint_referee::ended(std::uint32_t user, const joint_lock& which) {
    if (const auto found = beliefs_.find(which);
        found != beliefs_.end() && found->second.user == user) {
        beliefs_.erase(found);
    }
}

bool joint_referee::store_has(const joint_lock& which, const owner_id& owner) {
    auto& store = *stores_[which.first];
    const auto holders = store.store().inspect(which.second, store.local()).holders;
    return std::any_of(holders.begin(), holders.end(),
                       [&](const holder_info& one) { return one.owner == owner; });
}

joint_user::joint_user(joint_process& process, std::vector<joint_session*> sessions,
                       joint_referee& referee, const joint_terms& terms, std::uint32_t number)
    : process_{process},
      sessions_{std::move(sessions)},
      referee_{referee},
      terms_{terms},
      number_{number} {}

void joint_user::later(clock::duration delay, std::function<void()> what) {
    process_.later(delay, [this, step = ++step_, what = std::move(what)] {
        if (step == step_) {
            what();
        }
    });
}

void joint_user::soon(std::function<void()> what) {
    later(process_.stage().between(0us, longest_wake_up), std::move(what));
}

void joint_user::start() {
    later(process_.stage().between(0ms, 5ms), [this] { next_round(); });
}

void joint_user::next_round() {
    if (round_++ == terms_.rounds) {
        finished_ = true;
        return;
    }
    draw_wishes();
    draw_patience();
    taken_.assign(targets_.size(), std::nullopt);
    way_.emplace(targets_.size(), patience_,
                 [this](std::size_t first) { return how_many_together(first); });
    go_on();
}

void joint_user::draw_wishes() {
    auto& stage = process_.stage();
    std::vector<joint_lock> wishes;
    for (auto count = 1 + stage.pick(4); count > 0; --count) {
        const auto store = stage.pick(static_cast<std::uint32_t>(sessions_.size()));
        wishes.emplace_back(store, std::string(1, static_cast<char>('a' + stage.pick(terms_.names))));
    }
    std::vector<core::joint_place> places;
    for (const auto& [store, name] : wishes) {
        places.push_back({sessions_[store]->address(), name});
    }
    targets_.clear();
    for (const auto index : core::joint_order(places)) {
        targets_.push_back(wishes[index]);
    }
}

void joint_user::draw_patience() {
    auto& stage = process_.stage();
    const bool first_call = number_ == 0 && round_ == 1;
    how_ = {};
    how_.ttl = terms_.ttl;
    how_.margin = std::max<clock::duration>(terms_.ttl / 20, 5ms);
    how_.jeopardy = terms_.ttl / 3;
    how_.release_timeout = 100ms;
    how_.renewal = stage.one_in(8) ? renewal_mode::none : renewal_mode::automatic;
    patience_ = {};
    stopped_at_.reset();
    const auto choice = first_call ? 5 : stage.pick(6);
    if (choice == 0) {
        patience_.wait = false;
    } else if (choice == 1) {
        patience_.deadline = process_.now() + stage.between(1ms, 2 * terms_.ttl);
    } else if (choice == 2) {
        const auto most = stage.one_in(2) ? clock::duration{5ms} : clock::duration{2 * terms_.ttl};
        process_.later(stage.between(0us, most), [this, round = round_] {
            if (round == round_) {
                cancel();
            }
        });
    }
}

core::claim joint_user::claim_for(std::size_t which) const {
    core::claim what;
    what.name = targets_[which].second;
    what.terms = how_;
    return what;
}

std::size_t joint_user::how_many_together(std::size_t first) const {
    const auto store = targets_[first].first;
    auto end = first + 1;
    while (terms_.together[store] && end < targets_.size() && targets_[end].first == store) {
        ++end;
    }
    return end - first;
}

void joint_user::go_on() {
    using kind = joint_acquisition::move::kind;
    if (stopped_at_) {
        way_->cancel();
    }
    const auto move = way_->next(process_.now());
    switch (move.what) {
        case kind::ask_together:
            ask_together(move.which);
            return;
        case kind::wait_for:
            wait_for(move.which.front());
            return;
        case kind::give_back:
            give_back(move.which, joint_acquisition::last_moment, [this] {
                way_->on_given_back();
                go_on();
            });
            return;
        case kind::check:
            check();
            return;
        case kind::end:
            end_call();
            return;
    }
}

void joint_user::ask_together(const std::vector<std::size_t>& which) {
    std::vector<core::claim> claims;
    for (const auto one : which) {
        claims.push_back(claim_for(one));
        claims.back().wait = false;
    }
    ++step_;
    asked_ = which;
    question_ =
        session_of(which.front()).acquire_together(claims, way_->answer_by(process_.now()), *this);
    calls_ = question_->calls();
    look_at_answers();
}

void joint_user::wait_for(std::size_t which) {
    auto what = claim_for(which);
    what.wait = patience_.wait;
    what.deadline = patience_.deadline;
    ++step_;
    asked_ = {which};
    calls_ = {session_of(which).acquire(what, *this)};
    look_at_answers();
}

void joint_user::cancel() {
    if (!way_ || stopped_at_) {
        return;
    }
    stopped_at_ = process_.stage().now();
    if (question_) {
        session_of(asked_.front()).cancel(*question_);
    } else if (!calls_.empty()) {
        session_of(asked_.front()).cancel(calls_.front());
    }
}

void joint_user::on_finished(joint_session& from, const core::finish_acquire& what) {
    answers_[what.id] = what;
    if (!what.error) {
        // Names are unique in a store, and a call asks one store at a time.
        auto place = std::find_if(targets_.begin(), targets_.end(), [&](const joint_lock& one) {
            return sessions_[one.first] == &from && one.second == *what.name;
        });
        const auto& lock = *place;
        taken_[static_cast<std::size_t>(place - targets_.begin())] = hold_number{&from, what.id};
        holds_[{&from, what.id}] = {lock, what.owner, what.valid_until};
        referee_.granted(number_, lock, what.token, process_.truth(what.valid_until));
    }
    look_at_answers();
}

/// The call sees its answers when its thread wakes up. Some come before it knows their numbers.
void joint_user::look_at_answers() {
    const bool all = !calls_.empty() && std::all_of(calls_.begin(), calls_.end(), [this](auto call) {
        return answers_.contains(call);
    });
    if (all) {
        soon([this] { conclude(); });
    }
}

void joint_user::conclude() {
    failure why;
    for (std::size_t index = 0; index < calls_.size(); ++index) {
        const auto& answer = answers_.at(calls_[index]);
        if (!answer.error) {
            way_->on_taken(asked_[index]);
        } else if (!why) {
            why = answer.error;
        }
    }
    const auto busy = question_ ? question_->busy() : 0;
    calls_.clear();
    answers_.clear();
    question_.reset();
    way_->on_answered(why, busy);
    go_on();
}

void joint_user::give_back(const std::vector<std::size_t>& which, clock::duration patience,
                           std::function<void()> then) {
    std::vector<hold_number> some;
    for (const auto one : which) {
        some.push_back(*std::exchange(taken_[one], std::nullopt));
    }
    releasing_.insert(some.begin(), some.end());
    when_released_ = then;
    later(patience, [this, then = std::move(then)] {
        releasing_.clear();
        then();
    });
    for (const auto& one : some) {
        const auto held = holds_.extract(one);
        referee_.ended(number_, held.mapped().lock);
        one.first->release(one.second);
    }
    if (some.empty()) {
        soon(when_released_);
    }
}

void joint_user::on_released(joint_session& from, core::hold_id which) {
    if (releasing_.erase({&from, which}) == 1 && releasing_.empty()) {
        soon(when_released_);
    }
}

joint_user::hold* joint_user::find(joint_session& from, core::hold_id which) {
    const auto found = holds_.find({&from, which});
    return found == holds_.end() ? nullptr : &found->second;
}

void joint_user::on_validity(joint_session& from, core::hold_id which, clock::time_point until) {
    if (auto* const held = find(from, which)) {
        held->valid_until = until;
        referee_.extended(number_, held->lock, process_.truth(until));
    }
}

void joint_user::on_loss(joint_session& from, core::hold_id which) {
    if (auto* const held = find(from, which)) {
        held->lost = true;
        referee_.ended(number_, held->lock);
    }
}

/// The core says that all are taken.
void joint_user::check() {
    for (std::size_t index = 0; index < targets_.size(); ++index) {
        if (!taken_[index]) {
            referee_.complain("user " + std::to_string(number_) + " is given all, without " +
                              text(targets_[index]));
            return;
        }
        const auto& held = holds_.at(*taken_[index]);
        if (held.lost || process_.now() >= held.valid_until) {
            way_->on_lost(index, {errc::lost, "it is over"}, process_.now());
            go_on();
            return;
        }
        if (!referee_.store_has(held.lock, held.owner)) {
            referee_.complain("user " + std::to_string(number_) + " is given all, but the store of " +
                              text(held.lock) + " knows nothing of it");
        }
    }
    referee_.call_granted();
    way_.reset();
    work();
}

void joint_user::end_call() {
    referee_.call_ended();
    for (const auto& [id, held] : holds_) {
        referee_.complain("user " + std::to_string(number_) +
                          " was told that it has nothing, and still has " + text(held.lock));
    }
    check_end_in_time();
    way_.reset();
    soon([this] { next_round(); });
}

/// Giving up takes no longer than an answer that is coming, and what is given back.
void joint_user::check_end_in_time() {
    constexpr auto moment = joint_acquisition::last_moment + 3ms;
    const auto now = process_.stage().now();
    const auto late = [&](clock::time_point since, clock::duration most) {
        return now > std::max(since, process_.awake_at()) + most;
    };
    if (stopped_at_ && late(*stopped_at_, moment)) {
        referee_.complain("user " + std::to_string(number_) + " gave up, and its call went on");
    }
    if (patience_.deadline && late(process_.truth(*patience_.deadline), 2 * moment)) {
        referee_.complain("user " + std::to_string(number_) + " was told long after its deadline");
    }
}

void joint_user::work() {
    auto& stage = process_.stage();
    const std::array<clock::duration, 3> usual{100us, terms_.ttl / 4, 2 * terms_.ttl};
    const auto longest = usual[(stage.pick(6) + 1) / 3];
    later(stage.between(0ms, longest), [this] {
        std::vector<std::size_t> all(targets_.size());
        for (std::size_t index = 0; index < all.size(); ++index) {
            all[index] = index;
        }
        give_back(all, how_.release_timeout, [this] { soon([this] { next_round(); }); });
    });
}

}  // namespace holdfast::testing::sim
