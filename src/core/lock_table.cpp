#include <core/lock_table.hpp>

#include <utility>

namespace holdfast::core {

lock_table::lock_table(const table_settings& settings, const owner_id& client)
    : settings_{settings}, client_{client}, random_{settings.seed} {}

owner_id lock_table::next_owner() noexcept {
    return {client_.high, client_.low, ++last_sequence_};
}

double lock_table::jitter() {
    return static_cast<double>(random_() >> 11U) * 0x1.0p-53;
}

std::optional<lock_table::pending_request> lock_table::take_request(request_id id) {
    auto node = requests_.extract(id);
    if (node.empty()) {
        return std::nullopt;
    }
    return std::move(node.mapped());
}

lock_table::name_record& lock_table::record_of(const std::string& name, lock_kind kind) {
    if (const auto found = names_.find(name); found != names_.end()) {
        return found->second;
    }
    if (!latest_name_ || *latest_name_ != name) {
        latest_name_ = std::make_shared<const std::string>(name);
    }
    const std::string_view key{*latest_name_};
    return names_.emplace(key, name_record{latest_name_, 0, nullptr, false, kind}).first->second;
}

lock_table::line& lock_table::line_of(name_record& where) {
    if (!where.waiting) {
        where.waiting = spare_line_ ? std::move(spare_line_) : std::make_unique<line>();
    }
    return *where.waiting;
}

void lock_table::put_away(std::unique_ptr<line> unused) noexcept {
    if (unused) {
        unused->queue.clear();
        unused->window = line::unlimited;
        spare_line_ = std::move(unused);
    }
}

shared_terms lock_table::shared(const terms& how) {
    if (!latest_terms_ || *latest_terms_ != how) {
        latest_terms_ = std::make_shared<const terms>(how);
    }
    return latest_terms_;
}

/// Starts or stops watching a name as its contests need it, and forgets what is not needed any more.
void lock_table::tidy(const std::string& name) {
    const auto found = names_.find(name);
    if (found == names_.end()) {
        return;
    }
    auto& record = found->second;
    const auto* here = record.waiting.get();
    const bool busy =
        here != nullptr && (!here->queue.empty() || !here->contests.empty() || !here->standing.empty());
    // Once begun, watching goes on as long as anybody waits: they will need it again.
    const bool wanted = busy && record.kind != lock_kind::fair_mutex &&
                        (record.watched || std::any_of(here->contests.begin(), here->contests.end(),
                                                       [this](contest_id id) {
                                                           return contests_.at(id).way.contended();
                                                       }));
    if (wanted != record.watched) {
        record.watched = wanted;
        actions_.emplace_back(update_watch{name, record.kind});
    }
    if (!busy && record.idle()) {
        put_away(std::move(record.waiting));
        names_.erase(found);
    } else if (!busy && here != nullptr && !here->queue.token_left()) {
        put_away(std::move(record.waiting));
    }
}

bool lock_table::wants_watch(const std::string& name) const {
    const auto found = names_.find(name);
    return found != names_.end() && found->second.watched;
}

void lock_table::tell(event_kind kind, const std::string& name, const owner_id& owner,
                      fencing_token token, clock::duration duration, failure error) {
    if (settings_.observed) {
        actions_.emplace_back(tell_observer{{kind, name, owner, token, std::move(error), duration}});
    }
}

std::vector<action> lock_table::take_actions(std::vector<action> spare) {
    spare.clear();
    std::swap(spare, actions_);
    return spare;
}

waiter_id lock_table::acquire(const claim& what, clock::time_point now) {
    const auto id = next_id();
    if (shut_down_) {
        actions_.emplace_back(finish_acquire{
            id, {errc::shut_down, "shutdown was called, or the client was destroyed"}, {}, {}, {}});
        return id;
    }
    auto& who = waiters_.try_emplace(id, id, what, now).first->second;
    if (what.deadline) {
        timers_.arm(who.deadline, *what.deadline);
    }
    auto& record = record_of(what.name, what.kind);
    if (what.asks_in_turn()) {
        line_of(record).standing.push_back(id);
        let_some_ask(what.name, now);
        if (who.own_contest == 0) {
            tell(event_kind::contended, what.name, client_, {});
        }
        return id;
    }
    if (!what.queues_here()) {
        start_contest(record, who, now, now);
        return id;
    }
    if (overtake(who, record, now)) {
        return id;
    }
    auto& queue = line_of(record).queue;
    const bool free_here = record.idle() && queue.empty();
    if (!free_here && !what.wait) {
        finish_waiter(id, {errc::busy, "another thread of this process has it or waits for it"}, now);
        return id;
    }
    queue.push(id);
    if (free_here) {
        start_contest(record, who, now, now);
    } else {
        tell(event_kind::contended, what.name, client_, {});
        if (queue.soon_on_arrival()) {
            actions_.emplace_back(stand_by{id});
        }
    }
    return id;
}

void lock_table::cancel(waiter_id who, errc why, clock::time_point now) {
    if (waiters_.contains(who)) {
        finish_waiter(who, {why, "the caller stopped waiting"}, now);
    }
}

void lock_table::on_hint(const std::string& name, clock::time_point now) {
    const auto found = names_.find(name);
    if (found == names_.end() || !found->second.waiting) {
        return;
    }
    const auto contests = found->second.waiting->contests;  // asking may end some of them
    for (const auto id : contests) {
        const auto who = contests_.find(id);
        if (who != contests_.end() && !who->second.in_turn) {
            step(who->second, who->second.way.on_hint(), now);
        }
    }
    let_first_ask(name, now);
}

void lock_table::on_turn(const std::string& name, const owner_id& owner,
                         const std::optional<engines::turn_grant>& granted, clock::time_point now) {
    auto* const who = contest_of(name, owner);
    if (who == nullptr) {
        if (granted) {
            const auto found = names_.find(name);
            const auto kind = found == names_.end() ? lock_kind::mutex : found->second.kind;
            give_back_unused({name, claim_mode::exclusive, owner, {}, kind}, now + lease_options{}.ttl,
                             now);
        }
        return;
    }
    const auto verdict = granted ? who->way.on_turn(*granted, now) : who->way.on_hint();
    if (verdict != acquisition::verdict::granted) {
        step(*who, verdict, now);
        return;
    }
    engines::acquire_reply reply;
    reply.result = engines::acquire_reply::outcome::granted;
    reply.first_token = granted->first_token;
    reply.token_count = granted->token_count;
    settle_grant(*who, reply, now);
}

lock_table::contest* lock_table::contest_of(const std::string& name, const owner_id& owner) {
    const auto found = names_.find(name);
    if (found == names_.end() || !found->second.waiting) {
        return nullptr;
    }
    for (const auto id : found->second.waiting->contests) {
        if (auto& each = contests_.at(id); each.way.owner() == owner) {
            return &each;
        }
    }
    return nullptr;
}

/// The store granted the lock to an owner who waits no more, or has released it: a request of its may
/// have arrived late. Without a release the lock would stay taken until its ttl ends. An owner that
/// holds the lock got it in answer to a later question, or was handed it over, and one whose release is
/// under way gives it back anyway.
void lock_table::give_back_unused(engines::release_request what, clock::time_point expires_by,
                                  clock::time_point now) {
    const bool held = std::any_of(holds_.begin(), holds_.end(), [&](const auto& each) {
        return !each.second.lost && each.second.tenure.owner == what.owner;
    });
    const bool leaving = std::any_of(releases_.begin(), releases_.end(), [&](const auto& each) {
        return each.second.request.owner == what.owner;
    });
    if (held || leaving) {
        return;
    }
    send(add_release(std::move(what), {}, expires_by), now);
}

void lock_table::on_watch_active(const std::string& name, clock::time_point now) {
    on_hint(name, now);
}

void lock_table::on_holds_may_have_changed(clock::time_point now) {
    for (auto& [id, hold] : holds_) {
        if (!hold.lost) {
            renewal_.suspect(hold.tenure, now);
        }
    }
    on_time(now);
}

clock::time_point lock_table::wake_at() const noexcept {
    return std::min(timers_.next(), renewal_.wake_at());
}

void lock_table::on_time(clock::time_point now) {
    run_renewals(now);
    while (timer* due = timers_.pop_due(now)) {
        const auto id = due->id;
        if (const auto who = waiters_.find(id); who != waiters_.end()) {
            on_deadline(who->second, now);
        } else if (const auto contender = contests_.find(id); contender != contests_.end()) {
            step(contender->second, contender->second.way.on_wake(), now);
        } else if (const auto held = holds_.find(id); held != holds_.end()) {
            end_at_max_hold(held->second, now);
        } else if (const auto back = releases_.find(id); back != releases_.end()) {
            on_release_timer(back->second, now);
        }
    }
}

void lock_table::shut_down(clock::time_point now) {
    if (std::exchange(shut_down_, true)) {
        return;
    }
    std::vector<waiter_id> waiting;
    for (const auto& [id, who] : waiters_) {
        waiting.push_back(id);
    }
    std::sort(waiting.begin(), waiting.end());
    for (const auto id : waiting) {
        finish_waiter(id, {errc::shut_down, "shutdown was called, or the client was destroyed"}, now);
    }
    std::vector<hold_id> held;
    for (const auto& [id, hold] : holds_) {
        if (!hold.lost) {
            held.push_back(id);
        }
    }
    std::sort(held.begin(), held.end());
    for (const auto id : held) {
        auto& hold = holds_.at(id);
        auto& back = add_release(hold.give_back(), hold.token, gone_by(hold.how(), now));
        back.at_shutdown = true;
        lose(hold, {errc::shut_down, "shutdown was called, or the client was destroyed"}, now);
        send(back, now);
    }
}

void lock_table::finish_release_calls(clock::time_point now) {
    for (auto& [id, back] : releases_) {
        if (back.caller != 0) {
            finish_call(back, now);
        }
    }
}

std::vector<unreleased_lock> lock_table::unreleased() const {
    auto result = refused_at_shutdown_;
    for (const auto& [id, back] : releases_) {
        auto why = back.way.trouble();
        if (!why) {
            why = {errc::outcome_unknown, "the store has not answered its release yet"};
        }
        result.push_back({back.request.name, back.token, std::move(why)});
    }
    for (const auto& [id, who] : contests_) {
        result.push_back({*who.name, {}, {errc::outcome_unknown, "a request for it was under way"}});
    }
    return result;
}

lock_table::census lock_table::count() const noexcept {
    return {waiters_.size(),  contests_.size(), renewal_.size(), holds_.size(),
            releases_.size(), names_.size(),    requests_.size()};
}

}  // namespace holdfast::core
