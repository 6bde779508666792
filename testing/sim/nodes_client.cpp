#include <nodes_client.hpp>

#include <algorithm>

namespace holdfast::testing::sim {

namespace nodes = engines::nodes;
using engines::acquire_reply;
using engines::release_reply;
using engines::renew_reply;

namespace {

constexpr std::uint64_t tokens_per_node = 8;
constexpr std::uint32_t permit_limit = 3;
constexpr auto nodes_request_timeout = 200ms;

[[nodiscard]] bool exclude(const nodes_referee::belief& one, const nodes_referee::belief& other) {
    return one.mode == claim_mode::exclusive || other.mode == claim_mode::exclusive;
}

}  // namespace

// The referee.

nodes_referee::key nodes_referee::begin(const belief& one) {
    ++grants_;
    check_tokens(one);
    check_others(one);
    beliefs_[++last_] = one;
    return last_;
}

void nodes_referee::check_tokens(const belief& one) {
    auto& [writers, all] = tokens_[one.name];
    const bool writes = one.mode == claim_mode::exclusive;
    if (one.mode != claim_mode::permit && one.token <= (writes ? all : writers)) {
        complain("a token that does not rise: " + one.name + " " + std::to_string(one.token));
    }
    if (writes) {
        writers = std::max(writers, one.token);
    }
    all = std::max(all, one.token);
}

void nodes_referee::check_others(const belief& one) {
    std::uint32_t taken = one.permits;
    for (const auto& [number, other] : beliefs_) {
        if (other.name != one.name || other.revoked || stage_.now() >= other.valid_until) {
            continue;
        }
        taken += other.permits;
        if (exclude(one, other)) {
            complain("two holders: " + one.name + " " + std::to_string(other.token) + " and " +
                     std::to_string(one.token));
        }
    }
    if (one.mode == claim_mode::permit && taken > one.limit) {
        complain("more permits than there are: " + one.name);
    }
    if (stage_.now() < kept_[one.name]) {
        complain("granted while it lingers: " + one.name);
    }
}

void nodes_referee::extend(key which, clock::time_point valid_until) {
    beliefs_.at(which).valid_until = valid_until;
}

bool nodes_referee::revoke(const std::string& name, std::uint64_t token) {
    const auto found = std::find_if(beliefs_.begin(), beliefs_.end(), [&](const auto& entry) {
        return entry.second.name == name && entry.second.token == token * tokens_per_node;
    });
    if (found == beliefs_.end()) {
        return false;
    }
    found->second.revoked = true;
    return true;
}

void nodes_referee::keep_taken(const std::string& name, clock::time_point until) {
    kept_[name] = std::max(kept_[name], until);
}

void nodes_referee::complain(const std::string& what) {
    if (violation_.empty()) {
        violation_ = what;
    }
}

// A thread that wants locks.

struct nodes_client::user {
    enum class phase : std::uint8_t {
        asking,
        waiting,
        holding,
        converting,
        releasing,
        done,
    } now_in{phase::done};
    int rounds{};
    /// Counts what it does, so that a timer of something that is over does nothing.
    std::uint64_t epoch{};
    engines::acquire_request wants;
    bool waits{};
    bool stands_in_line{};
    bool asks_again{};
    bool hinted{};
    bool renews{};
    bool lingers{};
    bool counted{};
    clock::time_point patience;
    clock::time_point sent_at;
    clock::time_point valid_until;
    clock::time_point lets_go_at;
    clock::time_point release_until;
    nodes_referee::key believes{};
    claim_mode holds{};
};

nodes_client::nodes_client(quorum_stage& stage, nodes_referee& referee, nodes_server& server,
                           bool& server_is_up, const nodes_weather& weather, const nodes_terms& terms,
                           std::uint32_t number)
    : stage_{stage},
      referee_{referee},
      server_{server},
      server_is_up_{server_is_up},
      weather_{weather},
      terms_{terms},
      number_{number} {
    boot();
}

nodes_client::~nodes_client() = default;

void nodes_client::boot() {
    ++life_;
    recipe_ = std::make_unique<nodes::recipe>(
        "client-" + std::to_string(number_) + '-' + std::to_string(life_),
        nodes::recipe_settings{.granularity = 10ms,
                               .minimum_ttl = 10ms,
                               .tokens_per_node = tokens_per_node,
                               .request_timeout = nodes_request_timeout,
                               .idle_session = terms_.ttl,
                               .recheck = std::chrono::hours{1}});
    timer_ = clock::time_point::max();
    last_arrival_ = stage_.now();
    watches_.clear();
    acquires_.clear();
    renewals_.clear();
    releases_.clear();
}

void nodes_client::start() {
    for (std::uint32_t index = 0; index < terms_.users; ++index) {
        users_.push_back(std::make_unique<user>());
        users_.back()->rounds = terms_.rounds;
        end_round(*users_.back());
    }
}

void nodes_client::pause(clock::duration length) {
    paused_until_ = std::max(paused_until_, stage_.now() + length);
    stage_.at(paused_until_, [this] {
        while (stage_.now() >= paused_until_ && !missed_.empty()) {
            // What has waited comes in any order, as threads do.
            const auto which = stage_.pick(static_cast<std::uint32_t>(missed_.size()));
            auto next = std::move(missed_[which]);
            missed_.erase(missed_.begin() + which);
            arrive(next.first, std::move(next.second));
        }
    });
}

void nodes_client::crash() {
    boot();
    for (auto& who : users_) {
        if (who->believes != 0) {
            referee_.end(std::exchange(who->believes, 0));
        }
        ++who->epoch;
        if (who->now_in != user::phase::done) {
            end_round(*who);
        }
    }
}

bool nodes_client::finished() const {
    return std::all_of(users_.begin(), users_.end(),
                       [](const auto& who) { return who->now_in == user::phase::done; });
}

std::string nodes_client::waits_for() const {
    std::string text;
    for (const auto& who : users_) {
        if (who->now_in != user::phase::done) {
            text += " client " + std::to_string(number_) + " " + who->wants.name + " phase " +
                    std::to_string(static_cast<int>(who->now_in));
        }
    }
    return text;
}

// Between the recipe and the store.

void nodes_client::after(clock::duration delay, std::function<void()> what) {
    stage_.after(delay, [this, life = life_, what = std::move(what)]() mutable {
        arrive(life, std::move(what));
    });
}

void nodes_client::arrive(std::uint64_t life, std::function<void()> what) {
    if (life != life_) {
        return;
    }
    if (stage_.now() < paused_until_) {
        missed_.emplace_back(life, std::move(what));
    } else {
        what();
    }
}

void nodes_client::take(const step& one) {
    auto wanted = one(*recipe_);
    const auto life = life_;
    for (auto& each : wanted) {
        if (life == life_) {
            perform(each);
        }
    }
    set_timer();
}

void nodes_client::set_timer() {
    const auto next = recipe_->next_wake();
    if (next == timer_) {
        return;
    }
    timer_ = next;
    const auto epoch = ++timer_epoch_;
    if (next == clock::time_point::max()) {
        return;
    }
    after(std::max(next - stage_.now(), clock::duration{1us}), [this, epoch] {
        if (epoch == timer_epoch_) {
            timer_ = clock::time_point::max();
            take([this](auto& recipe) { return recipe.on_time(stage_.now()); });
        }
    });
}

template <class Reply>
void nodes_client::send(clock::time_point deadline, std::function<Reply()> ask,
                        std::function<void(const Reply&)> tell) {
    const auto chance = [&](std::uint32_t one_in) { return one_in != 0 && stage_.one_in(one_in); };
    const auto unanswered = [this, deadline, tell] {
        Reply reply;
        reply.error = {errc::outcome_unknown, "no answer"};
        after(std::max(deadline - stage_.now(), clock::duration{1us}), [tell, reply] { tell(reply); });
    };
    if (chance(weather_.refused_one_in)) {
        Reply reply;
        reply.error = {errc::store_unavailable, "not connected"};
        after(stage_.between(10us, 1ms), [tell, reply] { tell(reply); });
        return;
    }
    if (chance(weather_.late_one_in)) {
        // It overtakes nothing, but takes effect long after it was given up.
        stage_.at(deadline + stage_.between(1ms, terms_.ttl / 2),
                  [ask = std::move(ask)] { static_cast<void>(ask()); });
        unanswered();
        return;
    }
    if (chance(weather_.lost_one_in)) {
        unanswered();
        return;
    }
    last_arrival_ = std::max(last_arrival_, stage_.now() + stage_.between(200us, 5ms));
    const bool answer_lost = chance(weather_.lost_one_in);
    stage_.at(last_arrival_, [this, life = life_, deadline, answer_lost, unanswered,
                              ask = std::move(ask), tell = std::move(tell)] {
        if (!server_is_up_) {
            if (life == life_) {
                unanswered();
            }
            return;
        }
        const auto reply = ask();
        if (life != life_) {
            return;
        }
        const auto delay = stage_.between(200us, 5ms);
        if (answer_lost || stage_.now() + delay > deadline) {
            unanswered();
        } else {
            after(delay, [tell, reply] { tell(reply); });
        }
    });
}

template <class Reply>
void nodes_client::tell(nodes::request_id id,
                        nodes::actions (nodes::recipe::*answer)(nodes::request_id, const Reply&,
                                                                clock::time_point),
                        clock::time_point deadline, std::function<Reply()> ask) {
    send<Reply>(deadline, std::move(ask), [this, id, answer](const Reply& reply) {
        take([&](auto& recipe) { return (recipe.*answer)(id, reply, stage_.now()); });
    });
}

void nodes_client::perform(nodes::action& wanted) {
    using nodes::recipe;
    if (auto* open = std::get_if<nodes::send_open>(&wanted)) {
        tell<engines::session_reply>(open->id, &recipe::on_session, open->deadline,
                                     [this, ttl = open->ttl] { return server_.open(ttl); });
    } else if (auto* kept = std::get_if<nodes::send_keep_alive>(&wanted)) {
        tell<engines::session_reply>(
            kept->id, &recipe::on_session, kept->deadline,
            [this, session = kept->session] { return server_.keep_alive(session); });
    } else if (auto* closed = std::get_if<nodes::send_close>(&wanted)) {
        tell<engines::remove_reply>(closed->id, &recipe::on_closed, closed->deadline,
                                    [this, session = closed->session] {
                                        server_.close(session);
                                        return engines::remove_reply{};
                                    });
    } else if (auto* created = std::get_if<nodes::send_create>(&wanted)) {
        tell<engines::create_reply>(
            created->id, &recipe::on_created, created->deadline,
            [this, request = created->request] { return server_.create(request); });
    } else if (auto* read = std::get_if<nodes::send_read>(&wanted)) {
        tell<engines::queue_reply>(
            read->id, &recipe::on_read, read->deadline,
            [this, name = read->name, label = read->label] { return server_.read(name, label); });
    } else if (auto* removed = std::get_if<nodes::send_remove>(&wanted)) {
        tell<engines::remove_reply>(removed->id, &recipe::on_removed, removed->deadline,
                                    [this, name = removed->name, node = removed->node] {
                                        server_.remove(name, node);
                                        return engines::remove_reply{};
                                    });
    } else if (auto* started = std::get_if<nodes::start_watch>(&wanted)) {
        watches_[started->id] = {started->name, started->nodes};
        after(stage_.between(200us, 5ms), [this, id = started->id] { place_watch(id); });
    } else if (auto* stopped = std::get_if<nodes::stop_watch>(&wanted)) {
        watches_.erase(stopped->id);
    } else if (auto* acquired = std::get_if<nodes::answer_acquire>(&wanted)) {
        acquires_.extract(acquired->id).mapped()(acquired->reply);
    } else if (auto* renewal = std::get_if<nodes::answer_renew>(&wanted)) {
        renewals_.extract(renewal->id).mapped()(renewal->replies.front());
    } else if (auto* given_back = std::get_if<nodes::answer_release>(&wanted)) {
        releases_.extract(given_back->id).mapped()(given_back->reply);
    } else if (auto* told = std::get_if<nodes::tell_turn>(&wanted)) {
        if (auto* const who = find(told->owner)) {
            turn(*who, told->granted);
        }
    } else if (auto* hint = std::get_if<nodes::tell_hint>(&wanted)) {
        for (auto& who : users_) {
            if (who->wants.name == hint->name) {
                turn(*who, std::nullopt);
            }
        }
    } else {
        for (auto& who : users_) {
            if (who->now_in == user::phase::holding) {
                keep(*who);
            }
        }
    }
}

void nodes_client::place_watch(nodes::watch_id id) {
    const auto found = watches_.find(id);
    if (found == watches_.end()) {
        return;
    }
    if (!server_is_up_) {
        after(20ms, [this, id] { place_watch(id); });
        return;
    }
    auto& one = found->second;
    const bool again = std::exchange(one.in_place, true);
    const bool gone = std::any_of(one.nodes.begin(), one.nodes.end(),
                                  [&](const auto& node) { return !server_.has(one.name, node); });
    if (again || gone || one.nodes.empty()) {
        tell_watch(id, stage_.between(200us, 5ms));
    }
}

void nodes_client::news(const std::string& name, const engines::queue_node& node) {
    for (auto& [id, one] : watches_) {
        const bool concerned = one.nodes.empty() ||
                               std::any_of(one.nodes.begin(), one.nodes.end(),
                                           [&](const auto& each) { return each.place == node.place; });
        if (!one.in_place || one.name != name || !concerned) {
            continue;
        }
        if (weather_.news_lost_one_in != 0 && stage_.one_in(weather_.news_lost_one_in)) {
            one.in_place = false;
            after(stage_.between(10ms, 200ms), [this, id = id] {
                if (const auto broken = watches_.find(id); broken != watches_.end()) {
                    broken->second.in_place = true;
                    place_watch(id);
                }
            });
            continue;
        }
        tell_watch(id, stage_.between(200us, stage_.one_in(10) ? 200ms : 5ms));
        if (weather_.news_repeated_one_in != 0 && stage_.one_in(weather_.news_repeated_one_in)) {
            tell_watch(id, stage_.between(1ms, 200ms));
        }
    }
}

void nodes_client::tell_watch(nodes::watch_id id, clock::duration delay) {
    after(delay,
          [this, id] { take([&](auto& recipe) { return recipe.on_changed(id, stage_.now()); }); });
}

/// A connection that broke: what happens until it is back is not heard of.
void nodes_client::break_watches() {
    for (auto& [id, one] : watches_) {
        if (std::exchange(one.in_place, false)) {
            after(stage_.between(10ms, 200ms), [this, id = id] {
                if (const auto broken = watches_.find(id); broken != watches_.end()) {
                    broken->second.in_place = true;
                    place_watch(id);
                }
            });
        }
    }
}

void nodes_client::node_removed(const std::string& name, const std::string& id) {
    after(stage_.between(200us, 5ms), [this, name, id] {
        take([&](auto& recipe) { return recipe.on_node_removed(name, id, stage_.now()); });
    });
}

// What users do.

void nodes_client::later(user& who, clock::duration delay, void (nodes_client::*what)(user&)) {
    after(delay, [this, &who, epoch = who.epoch, what] {
        if (who.epoch == epoch) {
            (this->*what)(who);
        }
    });
}

nodes_client::user* nodes_client::find(const owner_id& owner) {
    const auto found = std::find_if(users_.begin(), users_.end(), [&](const auto& who) {
        return who->now_in != user::phase::done && who->wants.owner == owner;
    });
    return found == users_.end() ? nullptr : found->get();
}

void nodes_client::end_round(user& who) {
    if (who.counted) {
        who.counted = false;
        count_watchers(who.wants.name);
    }
    ++who.epoch;
    if (who.rounds-- <= 0) {
        who.now_in = user::phase::done;
        return;
    }
    who.now_in = user::phase::asking;
    later(who, stage_.between(10us, stage_.one_in(4) ? clock::duration{terms_.ttl} : 20ms),
          &nodes_client::begin_round);
}

void nodes_client::begin_round(user& who) {
    ++who.epoch;
    const auto kind = stage_.pick(4);
    who.wants = {};
    who.wants.ttl = terms_.ttl / (stage_.one_in(5) ? 2 : 1);
    who.wants.token_count = 1 + stage_.pick(12);
    who.wants.kind = stage_.one_in(3) ? lock_kind::fair_mutex : lock_kind::mutex;
    who.wants.owner = {number_, life_, ++last_owner_};
    if (kind < 2) {
        who.wants.name = "mutex";
    } else if (kind == 2) {
        who.wants.name = "shared";
        who.wants.kind = lock_kind::shared_mutex;
        who.wants.mode = stage_.one_in(3) ? claim_mode::exclusive : claim_mode::shared;
    } else {
        who.wants.name = "permits";
        who.wants.kind = lock_kind::semaphore;
        who.wants.mode = claim_mode::permit;
        who.wants.permits = 1 + stage_.pick(2);
        who.wants.limit = permit_limit;
    }
    who.waits = !stage_.one_in(6);
    who.stands_in_line = who.waits && (kind < 2 || stage_.one_in(2));
    who.asks_again = stage_.one_in(3);
    who.renews = !stage_.one_in(4);
    who.lingers = stage_.one_in(8);
    who.hinted = false;
    who.patience =
        stage_.now() + (who.waits && !stage_.one_in(4) ? clock::duration{std::chrono::hours{1}}
                                                       : stage_.between(1ms, 2 * terms_.ttl));
    who.wants.queue = who.stands_in_line && who.wants.kind == lock_kind::fair_mutex;
    ask(who);
}

void nodes_client::ask(user& who) {
    ++who.epoch;
    who.now_in = user::phase::asking;
    who.sent_at = stage_.now();
    who.hinted = false;
    const auto id = ++last_call_;
    acquires_[id] = [this, &who](const acquire_reply& reply) { answered(who, reply); };
    take([&](auto& recipe) {
        return recipe.acquire(id, who.wants, stage_.now() + nodes_request_timeout, stage_.now());
    });
}

void nodes_client::answered(user& who, const acquire_reply& reply) {
    using outcome = acquire_reply::outcome;
    ++who.epoch;
    if (reply.result == outcome::granted) {
        const auto ttl = reply.ttl.count() > 0 ? reply.ttl : who.wants.ttl;
        hold(who, reply.first_token, who.sent_at + ttl);
        return;
    }
    if (reply.result == outcome::failed && reply.error.code != errc::store_unavailable &&
        reply.error.code != errc::outcome_unknown) {
        referee_.complain("refused: " + who.wants.name + ": " + reply.error.detail);
    }
    const bool is_busy = reply.result == outcome::busy;
    if (stage_.now() >= who.patience || (is_busy && !who.waits)) {
        if (is_busy && !who.wants.queue) {
            end_round(who);
        } else {
            let_go(who);
        }
        return;
    }
    who.now_in = user::phase::waiting;
    if (!is_busy) {
        later(who, stage_.between(1ms, 50ms), &nodes_client::ask);
        return;
    }
    if (!who.counted) {
        who.counted = true;
        count_watchers(who.wants.name);
    }
    if (who.stands_in_line && !who.wants.queue) {
        who.wants.queue = true;
        later(who, 1us, &nodes_client::ask);
    } else if (who.hinted) {
        later(who, 1us, &nodes_client::ask);
    } else if (who.wants.queue || who.asks_again) {
        // In line it shows that it is still there.
        later(who, who.wants.ttl / 3, &nodes_client::ask);
    } else if (who.patience < stage_.now() + std::chrono::minutes{1}) {
        later(who, who.patience - stage_.now(), &nodes_client::ask);
    }
}

void nodes_client::turn(user& who, const std::optional<engines::turn_grant>& granted) {
    if (who.now_in == user::phase::asking) {
        who.hinted = true;
        return;
    }
    if (who.now_in != user::phase::waiting) {
        return;
    }
    if (granted && granted->asked_at >= who.sent_at) {
        const auto ttl = granted->ttl.count() > 0 ? granted->ttl : who.wants.ttl;
        if (stage_.now() < granted->asked_at + ttl) {
            ++turns_;
            hold(who, granted->first_token, granted->asked_at + ttl);
            return;
        }
    }
    ++who.epoch;
    later(who, 1us, &nodes_client::ask);
}

void nodes_client::hold(user& who, fencing_token token, clock::time_point valid_until) {
    ++who.epoch;
    if (stage_.now() >= valid_until) {
        let_go(who);
        return;
    }
    if (who.counted) {
        who.counted = false;
        count_watchers(who.wants.name);
    }
    who.now_in = user::phase::holding;
    who.valid_until = valid_until;
    who.holds = who.wants.mode;
    who.believes = referee_.begin({.name = who.wants.name,
                                   .mode = who.wants.mode,
                                   .permits = who.wants.permits,
                                   .limit = who.wants.limit,
                                   .token = token.value,
                                   .valid_until = valid_until});
    who.lets_go_at = stage_.now() + stage_.between(10us, stage_.one_in(3) ? terms_.ttl * 3 / 2 : 20ms);
    keep(who);
}

/// Renews, converts, lets go, or sees that it has lost the lock.
void nodes_client::keep(user& who) {
    ++who.epoch;
    const auto now = stage_.now();
    if (now >= who.valid_until) {
        referee_.end(std::exchange(who.believes, 0));
        if (stage_.one_in(2)) {
            end_round(who);  // the store ends it
        } else {
            let_go(who);
        }
        return;
    }
    if (now >= who.lets_go_at) {
        let_go(who);
        return;
    }
    if (who.wants.name == "shared" && stage_.one_in(3)) {
        convert(who);
        return;
    }
    if (!who.renews) {
        const bool lets_it_lapse = stage_.one_in(2);
        who.lets_go_at = lets_it_lapse ? clock::time_point::max() : who.lets_go_at;
        later(who, std::min(who.valid_until, who.lets_go_at) - now, &nodes_client::keep);
        return;
    }
    const auto id = ++last_call_;
    renewals_[id] = [this, &who, epoch = who.epoch, now](const renew_reply& reply) {
        if (who.epoch == epoch) {
            renewed(who, reply, now);
        }
    };
    later(who, std::min({(who.valid_until - now) / 3 + 1us, who.lets_go_at - now}),
          &nodes_client::keep);
    take([&](auto& recipe) {
        return recipe.renew(id,
                            {{.name = who.wants.name,
                              .mode = who.holds,
                              .owner = who.wants.owner,
                              .ttl = who.wants.ttl,
                              .kind = who.wants.kind}},
                            now + nodes_request_timeout, now);
    });
}

void nodes_client::renewed(user& who, const renew_reply& reply, clock::time_point sent_at) {
    const bool in_time = stage_.now() < who.valid_until;
    if (in_time && reply.result == renew_reply::outcome::renewed) {
        const auto ttl = reply.ttl.count() > 0 ? reply.ttl : who.wants.ttl;
        who.valid_until = std::max(who.valid_until, sent_at + ttl);
        referee_.extend(who.believes, who.valid_until);
    } else if (reply.result == renew_reply::outcome::gone) {
        referee_.end(std::exchange(who.believes, 0));
        end_round(who);
    }
}

void nodes_client::convert(user& who) {
    who.now_in = user::phase::converting;
    who.sent_at = stage_.now();
    who.wants.mode = who.holds == claim_mode::shared ? claim_mode::exclusive : claim_mode::shared;
    if (who.wants.mode == claim_mode::shared) {
        referee_.weaken(who.believes);
        who.holds = claim_mode::shared;
    }
    auto request = who.wants;
    request.converts = true;
    request.queue = false;
    const auto id = ++last_call_;
    acquires_[id] = [this, &who](const acquire_reply& reply) { converted(who, reply); };
    take([&](auto& recipe) {
        return recipe.acquire(id, request, stage_.now() + nodes_request_timeout, stage_.now());
    });
}

void nodes_client::converted(user& who, const acquire_reply& reply) {
    using outcome = acquire_reply::outcome;
    ++who.epoch;
    const bool upgrade = who.wants.mode == claim_mode::exclusive;
    const auto ttl = reply.ttl.count() > 0 ? reply.ttl : who.wants.ttl;
    if (stage_.now() >= who.valid_until || reply.error.code == errc::lost) {
        referee_.end(std::exchange(who.believes, 0));
        let_go(who);
    } else if (reply.result == outcome::granted && upgrade) {
        referee_.end(std::exchange(who.believes, 0));
        hold(who, reply.first_token, who.sent_at + ttl);
    } else if (reply.result == outcome::failed) {
        let_go(who);
    } else {
        who.now_in = user::phase::holding;
        who.wants.mode = claim_mode::shared;
        who.holds = claim_mode::shared;
        if (reply.result == outcome::granted) {
            who.valid_until = std::max(who.valid_until, who.sent_at + ttl);
            referee_.extend(who.believes, who.valid_until);
        }
        who.lets_go_at = std::min(who.lets_go_at, stage_.now() + 10ms);
        keep(who);
    }
}

/// The core gives back what it holds, and what it may have been granted, until the ttl is over.
void nodes_client::let_go(user& who) {
    ++who.epoch;
    who.lingers = who.lingers && who.believes != 0 && who.holds == claim_mode::exclusive;
    if (who.believes != 0) {
        referee_.end(std::exchange(who.believes, 0));
    }
    who.now_in = user::phase::releasing;
    who.release_until = stage_.now() + who.wants.ttl + nodes_request_timeout;
    release(who);
}

void nodes_client::release(user& who) {
    ++who.epoch;
    const auto asked_at = stage_.now();
    if (asked_at >= who.release_until) {
        end_round(who);
        return;
    }
    const auto linger = who.lingers ? who.wants.ttl / 2 : 0ms;
    const auto id = ++last_call_;
    releases_[id] = [this, &who, asked_at, linger](const release_reply& reply) {
        ++who.epoch;
        if (reply.result == release_reply::outcome::failed) {
            later(who, stage_.between(1ms, 50ms), &nodes_client::release);
            return;
        }
        if (linger.count() > 0 && weather_.calm && reply.result == release_reply::outcome::released) {
            referee_.keep_taken(who.wants.name, asked_at + linger);
        }
        end_round(who);
    };
    take([&](auto& recipe) {
        return recipe.release(id,
                              {.name = who.wants.name,
                               .mode = who.holds,
                               .owner = who.wants.owner,
                               .linger = linger,
                               .kind = who.wants.kind},
                              asked_at + nodes_request_timeout, asked_at);
    });
}

void nodes_client::count_watchers(const std::string& name) {
    const auto count = std::count_if(users_.begin(), users_.end(), [&](const auto& who) {
        return who->counted && who->wants.name == name;
    });
    take([&](auto& recipe) { return recipe.watchers(name, static_cast<std::uint32_t>(count)); });
}

}  // namespace holdfast::testing::sim
