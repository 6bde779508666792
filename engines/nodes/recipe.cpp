#include <nodes/recipe.hpp>

#include <algorithm>
#include <limits>

namespace holdfast::engines::nodes {

namespace {

using outcome = acquire_reply::outcome;
using std::chrono::milliseconds;

constexpr auto never = clock::time_point::max();

[[nodiscard]] bool contains(const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

/// The node with this label. Of several, which late creations can make, the first in the queue.
[[nodiscard]] const queue_node* find_node(const std::vector<queue_node>& queue,
                                          const std::string& label) {
    const queue_node* found = nullptr;
    for (const auto& node : queue) {
        if (node.claim.label == label && (found == nullptr || node.place < found->place)) {
            found = &node;
        }
    }
    return found;
}

/// Whether a node of somebody else stands between the two places.
template <class Matters>
[[nodiscard]] bool somebody_between(const std::vector<queue_node>& queue,
                                    const std::vector<std::string>& own_labels, std::uint64_t after,
                                    std::uint64_t before, Matters matters) {
    return std::any_of(queue.begin(), queue.end(), [&](const queue_node& node) {
        return node.place > after && node.place < before && !contains(own_labels, node.claim.label) &&
               matters(node);
    });
}

[[nodiscard]] bool anybody(const queue_node&) noexcept {
    return true;
}

[[nodiscard]] bool is_writer(const queue_node& node) noexcept {
    return node.claim.mode == claim_mode::exclusive;
}

/// Locks and permits cannot share a name, nor can permits of different limits.
[[nodiscard]] bool same_kind(const node_claim& one, const node_claim& other) noexcept {
    const bool permits = one.mode == claim_mode::permit;
    return permits == (other.mode == claim_mode::permit) && (!permits || one.limit == other.limit);
}

[[nodiscard]] acquire_reply busy() {
    return {.result = outcome::busy};
}

[[nodiscard]] acquire_reply of_another_kind() {
    return {.error = {errc::wrong_kind,
                      "the name is in use for another kind of lock or with another limit"}};
}

[[nodiscard]] milliseconds rounded_up(milliseconds value, milliseconds step) {
    return (value + step - milliseconds{1}) / step * step;
}

}  // namespace

standing judge(const std::vector<queue_node>& queue, const queue_node& node,
               const std::vector<std::string>& own_labels) {
    std::vector<const queue_node*> ahead;
    for (const auto& other : queue) {
        if (other.place < node.place && !contains(own_labels, other.claim.label)) {
            ahead.push_back(&other);
        }
    }
    std::sort(ahead.begin(), ahead.end(),
              [](const auto* a, const auto* b) { return a->place < b->place; });
    if (std::any_of(ahead.begin(), ahead.end(),
                    [&](const auto* other) { return !same_kind(other->claim, node.claim); })) {
        return {standing::verdict::wrong_kind, {}};
    }
    switch (node.claim.mode) {
        case claim_mode::exclusive:
            if (!ahead.empty()) {
                return {standing::verdict::blocked, {*ahead.back()}};
            }
            break;
        case claim_mode::shared: {
            const auto writer = std::find_if(ahead.rbegin(), ahead.rend(),
                                             [](const auto* other) { return is_writer(*other); });
            if (writer != ahead.rend()) {
                return {standing::verdict::blocked, {**writer}};
            }
            break;
        }
        case claim_mode::permit: {
            std::uint64_t taken = node.claim.permits;
            standing result{standing::verdict::blocked, {}};
            for (const auto* other : ahead) {
                taken += other->claim.permits;
                result.blockers.push_back(*other);
            }
            if (taken > node.claim.limit) {
                return result;
            }
            break;
        }
    }
    return {standing::verdict::granted, {}};
}

const std::string& recipe::waiting_call::name() const noexcept {
    return std::visit([](const auto& asked) -> const std::string& { return asked.name; }, request);
}

const owner_id& recipe::waiting_call::owner() const noexcept {
    return std::visit([](const auto& asked) -> const owner_id& { return asked.owner; }, request);
}

recipe::recipe(std::string client, const recipe_settings& settings)
    : client_{std::move(client)}, settings_{settings} {}

// Calls.

actions recipe::acquire(call_id id, acquire_request request, clock::time_point deadline,
                        clock::time_point now) {
    expire(now);
    take({id, deadline, now, std::move(request)}, now);
    return finish(now);
}

actions recipe::release(call_id id, release_request request, clock::time_point deadline,
                        clock::time_point now) {
    expire(now);
    take({id, deadline, now, std::move(request)}, now);
    return finish(now);
}

actions recipe::renew(call_id id, std::vector<renew_request> batch, clock::time_point deadline,
                      clock::time_point now) {
    expire(now);
    const auto size = batch.size();
    renewals_.push_back({id, deadline, now, std::move(batch), {}});
    renewals_.back().replies.resize(size);
    return finish(now);
}

/// What the client asked for first is performed first.
void recipe::take(waiting_call call, clock::time_point now) {
    if (shut_down_) {
        refuse(call, {errc::shut_down, "the client was shut down"});
        return;
    }
    auto& record = names_[call.name()];
    const auto* const who = find(call.name(), call.owner());
    if (!record.backlog.empty() || (who != nullptr && who->caller)) {
        delayed_.insert(call.name());
        record.backlog.push_back(std::move(call));
        return;
    }
    start(std::move(call), now);
}

void recipe::start(waiting_call call, clock::time_point now) {
    if (call.acquires()) {
        start_acquire(std::move(call), now);
    } else {
        start_release(std::move(call), now);
    }
}

void recipe::perform_backlog(const std::string& name, clock::time_point now) {
    while (true) {
        const auto found = names_.find(name);
        if (found == names_.end() || found->second.backlog.empty()) {
            delayed_.erase(name);
            tidy(name);
            return;
        }
        auto& backlog = found->second.backlog;
        const auto* const who = find(name, backlog.front().owner());
        if (who != nullptr && who->caller) {
            return;
        }
        auto call = std::move(backlog.front());
        backlog.pop_front();
        start(std::move(call), now);
    }
}

void recipe::refuse(const waiting_call& call, const failure& why) {
    if (call.acquires()) {
        emit(answer_acquire{call.id, {.error = why}});
    } else {
        emit(answer_release{call.id, {.error = why}});
    }
}

void recipe::answer(claim& who, const acquire_reply& reply) {
    if (who.caller && who.caller->acquires()) {
        emit(answer_acquire{who.caller->id, reply});
        who.caller.reset();
        ready_.push_back(who.terms.name);
    }
}

void recipe::answer(claim& who, const release_reply& reply) {
    if (who.caller && !who.caller->acquires()) {
        emit(answer_release{who.caller->id, reply});
        who.caller.reset();
        ready_.push_back(who.terms.name);
    }
}

void recipe::fail(claim& who, const failure& why) {
    answer(who, acquire_reply{.error = why});
    answer(who, release_reply{.error = why});
}

void recipe::start_acquire(waiting_call call, clock::time_point now) {
    const auto& request = std::get<acquire_request>(call.request);
    auto* const found = find(request.name, request.owner);
    if (found == nullptr) {
        if (request.converts) {
            refuse(call, {errc::lost, "the store does not know the lease"});
            tidy(request.name);
            return;
        }
        prepare(add_claim(call, now), now);
        return;
    }
    auto& who = *found;
    const auto mode = request.mode;
    const bool queue = who.terms.queue || request.queue;
    who.terms = request;
    who.terms.queue = queue;
    who.asked_at = call.asked_at;
    who.caller = std::move(call);
    switch (who.now_in) {
        case state::held:
            who.expires = std::max(who.expires, who.asked_at + who.terms.ttl);
            wake(who, std::min(who.expires, who.caller->deadline));
            if (mode == who.mode) {
                answer_granted(who, now);
            } else if (mode == claim_mode::permit || who.mode == claim_mode::permit) {
                answer(who, of_another_kind());
            } else {
                enter(who, state::converting);
                who.replacing = false;
                read(who, now);
            }
            break;
        case state::in_line:
            who.expires = who.asked_at + who.terms.ttl;
            wake(who, who.expires);
            if (who.request == 0) {
                // News can be lost, so a waiter looks for itself once in a while.
                if (who.changed || now - who.read_at >= settings_.recheck) {
                    read(who, now);
                } else {
                    answer(who, busy());
                }
            }
            break;
        default:  // doubtful: the others have a caller, or are not found
            enter(who, state::creating);
            wake(who, never);
            read(who, now);
            break;
    }
}

void recipe::start_release(waiting_call call, clock::time_point now) {
    const auto& request = std::get<release_request>(call.request);
    auto* who = find(request.name, request.owner);
    if (who == nullptr) {
        who = find_leftover(request.name, request.owner);
    }
    if (who == nullptr) {
        emit(answer_release{call.id, {.result = release_reply::outcome::gone}});
        tidy(request.name);
        return;
    }
    const auto linger = request.linger;
    who->caller = std::move(call);
    if (who->now_in == state::leaving) {
        if (who->request == 0) {
            remove_next(*who, now);
        }
    } else if (who->now_in == state::held && linger.count() > 0) {
        start_linger(*who, linger, now);
    } else {
        leave(*who, now);
    }
}

// Renewals.

void recipe::settle_renewals(clock::time_point now) {
    std::erase_if(renewals_, [&](renewal& call) { return settle(call, now); });
}

/// A keep-alive that left a moment ago serves as well as a new one.
bool recipe::settle(renewal& call, clock::time_point now) {
    bool complete = true;
    for (std::size_t index = 0; index < call.batch.size(); ++index) {
        auto& reply = call.replies[index];
        if (reply) {
            continue;
        }
        const auto& request = call.batch[index];
        auto* const who = find(request.name, request.owner);
        const bool asks = who != nullptr && who->caller && who->caller->acquires();
        if (asks && !who->was_held && now < call.deadline) {
            complete = false;
            continue;
        }
        const bool held = who != nullptr && who->was_held && who->now_in != state::leaving &&
                          (request.mode == who->mode || asks || request.mode == claim_mode::shared);
        if (!held) {
            reply = renew_reply{.result = renew_reply::outcome::gone,
                                .error = {errc::lost, "the store does not know the lease"}};
            continue;
        }
        const auto key = who->session;
        const auto& session = sessions_.at(key);
        if (session.confirmed_at + session.granted / 10 >= call.asked_at) {
            who->expires = std::max(who->expires, call.asked_at + request.ttl);
            const auto ttl = granted_ttl(*who, request.ttl, call.asked_at);
            reply = ttl ? renew_reply{.result = renew_reply::outcome::renewed, .ttl = *ttl}
                        : renew_reply{.error = {errc::outcome_unknown, "the session is about to end"}};
            continue;
        }
        if (now >= call.deadline) {
            reply = renew_reply{.error = {errc::outcome_unknown, "the store did not answer in time"}};
            continue;
        }
        complete = false;
        if (!session.asking) {
            ask(key, now);
        }
    }
    if (!complete) {
        return false;
    }
    std::vector<renew_reply> replies;
    for (auto& reply : call.replies) {
        replies.push_back(std::move(*reply));
    }
    emit(answer_renew{call.id, std::move(replies)});
    return true;
}

void recipe::fail_renewals(session_key session, const failure& why) {
    for (auto& call : renewals_) {
        for (std::size_t index = 0; index < call.batch.size(); ++index) {
            const auto* const who = find(call.batch[index].name, call.batch[index].owner);
            if (!call.replies[index] && who != nullptr && who->session == session && who->was_held) {
                call.replies[index] = renew_reply{.error = why};
            }
        }
    }
}

// One claim.

recipe::claim* recipe::find(const std::string& name, const owner_id& owner) {
    const auto found = by_owner_.find({name, owner});
    return found == by_owner_.end() ? nullptr : &claims_.at(found->second);
}

/// What the owner had before, and could not be removed so far.
recipe::claim* recipe::find_leftover(const std::string& name, const owner_id& owner) {
    const auto record = names_.find(name);
    if (record == names_.end()) {
        return nullptr;
    }
    for (const auto id : record->second.claims) {
        auto& who = claims_.at(id);
        if (who.now_in == state::leaving && who.terms.owner == owner && !who.caller && !who.lingers) {
            return &who;
        }
    }
    return nullptr;
}

/// The claim that waits for this answer, if it still does.
recipe::claim* recipe::asked_by(request_id id) {
    const auto asked = requests_.find(id);
    if (asked == requests_.end()) {
        return nullptr;
    }
    const auto found = claims_.find(asked->second);
    requests_.erase(asked);
    if (found == claims_.end() || found->second.request != id) {
        return nullptr;
    }
    found->second.request = 0;
    return &found->second;
}

recipe::claim& recipe::add_claim(const waiting_call& call, clock::time_point now) {
    const auto id = ++last_id_;
    auto& who = claims_[id];
    who.id = id;
    who.terms = std::get<acquire_request>(call.request);
    who.asked_at = call.asked_at;
    who.caller = call;
    names_[who.terms.name].claims.insert(id);
    by_owner_[{who.terms.name, who.terms.owner}] = id;
    who.session = session_for(who.terms.ttl, now);
    sessions_.at(who.session).claims.insert(id);
    return who;
}

void recipe::prepare(claim& who, clock::time_point now) {
    const auto& session = sessions_.at(who.session);
    if (session.open && fresh(session, now)) {
        begin(who, now);
        return;
    }
    enter(who, state::preparing);
    wake(who, who.caller->deadline);
    if (!session.asking) {
        ask(who.session, now);
    }
}

/// An exclusive claim that may not wait is refused in the step that would create its node. The others
/// look first: nodes that come and go would wake everybody who waits.
void recipe::begin(claim& who, clock::time_point now) {
    wake(who, never);
    if (who.terms.mode == claim_mode::exclusive || who.terms.queue) {
        enter(who, state::creating);
        create(who, who.terms.mode, who.session, !who.terms.queue, now);
    } else {
        enter(who, state::reading);
        read(who, now);
    }
}

void recipe::create(claim& who, claim_mode mode, session_key session, bool only_if_empty,
                    clock::time_point now) {
    queue_node node;
    node.claim = {.label = client_ + '.' + std::to_string(++last_id_),
                  .mode = mode,
                  .permits = who.terms.permits,
                  .limit = who.terms.limit,
                  .kind = who.terms.kind};
    who.labels.push_back(node.claim.label);
    who.nodes.push_back(std::move(node));
    send_creation(who, session, only_if_empty, now);
}

void recipe::send_creation(claim& who, session_key session, bool only_if_empty, clock::time_point now) {
    who.request = ask_for(who.id);
    emit(send_create{who.request,
                     {who.terms.name, sessions_.at(session).id, who.nodes.back().claim, only_if_empty},
                     deadline_of(who, now)});
}

void recipe::read(claim& who, clock::time_point now) {
    who.changed = false;
    who.read_at = now;
    who.request = ask_for(who.id);
    const auto& label = who.nodes.empty() ? std::string{} : who.nodes.back().claim.label;
    emit(send_read{who.request, who.terms.name, label, deadline_of(who, now)});
}

actions recipe::on_created(request_id id, const create_reply& reply, clock::time_point now) {
    expire(now);
    auto* const who = asked_by(id);
    if (who == nullptr) {
        return finish(now);  // its session is over, and takes the node with it
    }
    if (reply.error) {
        on_creation_failed(*who, reply.error, now);
        return finish(now);
    }
    if (!reply.created) {
        const auto asked = who->nodes.back();
        const auto& queue = reply.queue ? *reply.queue : std::vector<queue_node>{};
        auto behind = asked;
        behind.place = std::numeric_limits<std::uint64_t>::max();
        who->verdict = judge(queue, behind, who->labels).result == standing::verdict::wrong_kind
                           ? of_another_kind()
                           : busy();
        who->nodes.pop_back();
        leave(*who, now);
        return finish(now);
    }
    who->nodes.back() = *reply.created;
    if (!reply.queue) {
        read(*who, now);
        return finish(now);
    }
    auto queue = *reply.queue;
    if (find_node(queue, reply.created->claim.label) == nullptr) {
        queue.push_back(*reply.created);
    }
    if (who->now_in == state::converting) {
        convert(*who, queue, now);
    } else if (who->now_in == state::lingering) {
        linger(*who, queue, now);
    } else {
        look(*who, queue, now);
    }
    return finish(now);
}

/// A creation without an answer may have taken effect, or still do so.
void recipe::on_creation_failed(claim& who, const failure& why, clock::time_point now) {
    if (why.code == errc::lost) {
        const bool lingers = who.now_in == state::lingering;
        end_session(lingers ? who.linger_session : who.session, true, now);
        return;
    }
    const bool unknown = why.code == errc::outcome_unknown;
    if (unknown) {
        who.doubt_until = now + sessions_.at(who.session).granted;
    } else if (now >= who.doubt_until) {
        who.nodes.pop_back();
    }
    if (who.now_in != state::creating) {
        enter(who, state::held);
        wake(who, who.expires);
        fail(who, why);
        return;
    }
    if (who.nodes.empty()) {
        fail(who, why);
        forget(who.id);
        return;
    }
    enter(who, state::doubtful);
    who.expires = who.asked_at + who.terms.ttl;
    wake(who, who.expires);
    fail(who, {errc::outcome_unknown, why.detail});
}

actions recipe::on_read(request_id id, const queue_reply& reply, clock::time_point now) {
    expire(now);
    auto* const who = asked_by(id);
    if (who == nullptr) {
        return finish(now);
    }
    if (reply.error) {
        on_reading_failed(*who, reply.error, now);
        return finish(now);
    }
    switch (who->now_in) {
        case state::reading:
            look_before(*who, reply.queue, now);
            break;
        case state::creating:
        case state::in_line:
            look(*who, reply.queue, now);
            break;
        case state::held:
            verify_hold(*who, reply.queue, now);
            break;
        case state::converting:
            if (who->replacing) {
                convert(*who, reply.queue, now);
            } else {
                look_before_conversion(*who, reply.queue, now);
            }
            break;
        case state::lingering:
            linger(*who, reply.queue, now);
            break;
        case state::leaving:
        case state::sweeping:
            look_for_forgotten(*who, reply.queue, now);
            break;
        case state::preparing:
        case state::doubtful:
            break;
    }
    return finish(now);
}

void recipe::on_reading_failed(claim& who, const failure& why, clock::time_point now) {
    switch (who.now_in) {
        case state::reading:
            fail(who, {errc::store_unavailable, why.detail});
            forget(who.id);
            break;
        case state::creating:
            enter(who, state::doubtful);
            who.expires = who.asked_at + who.terms.ttl;
            wake(who, who.expires);
            fail(who, {errc::outcome_unknown, why.detail});
            break;
        case state::in_line:
            answer(who, busy());
            [[fallthrough]];
        case state::held:
            who.changed = true;
            retry_later(who, now);
            break;
        case state::converting:
        case state::lingering:
            enter(who, state::held);
            wake(who, who.expires);
            fail(who, {errc::outcome_unknown, why.detail});
            break;
        case state::leaving:
        case state::sweeping:
            if (who.verdict) {
                answer(who, *who.verdict);
            }
            fail(who, {errc::outcome_unknown, why.detail});
            detach(who);
            retry_later(who, now);
            break;
        case state::preparing:
        case state::doubtful:
            break;
    }
}

/// Nobody's node is created in vain.
void recipe::look_before(claim& who, const std::vector<queue_node>& queue, clock::time_point now) {
    queue_node behind;
    behind.place = std::numeric_limits<std::uint64_t>::max();
    behind.claim = {.label = {},
                    .mode = who.terms.mode,
                    .permits = who.terms.permits,
                    .limit = who.terms.limit,
                    .kind = who.terms.kind};
    const auto verdict = judge(queue, behind, who.labels).result;
    if (verdict == standing::verdict::granted) {
        enter(who, state::creating);
        create(who, who.terms.mode, who.session, false, now);
        return;
    }
    answer(who, verdict == standing::verdict::wrong_kind ? of_another_kind() : busy());
    forget(who.id);
}

/// Only a node that is in the queue can be granted anything: a session may have ended unnoticed.
void recipe::look(claim& who, const std::vector<queue_node>& queue, clock::time_point now) {
    auto& own = who.nodes.back();
    const auto* const found = find_node(queue, own.claim.label);
    if (found == nullptr || (found->session != 0 && found->session != sessions_.at(who.session).id)) {
        if (who.now_in == state::creating && own.id.empty()) {
            const bool only_if_empty = who.terms.mode == claim_mode::exclusive && !who.terms.queue;
            send_creation(who, who.session, only_if_empty, now);
            return;
        }
        lose(who, {errc::store_unavailable, "the place in the queue is gone"}, now);
        return;
    }
    const auto token = found->token != 0 ? found->token : own.token;
    own = *found;
    own.token = token;
    auto where = judge(queue, own, who.labels);
    if (where.result == standing::verdict::granted) {
        grant(who, now);
    } else if (where.result == standing::verdict::blocked && who.terms.queue) {
        stand_in_line(who, std::move(where.blockers), now);
    } else {
        who.verdict = where.result == standing::verdict::wrong_kind ? of_another_kind() : busy();
        leave(who, now);
    }
}

void recipe::grant(claim& who, clock::time_point now) {
    const auto last = std::numeric_limits<std::uint64_t>::max() / settings_.tokens_per_node;
    if (who.nodes.back().token > last) {
        who.verdict = acquire_reply{.error = {errc::store_error, "the fencing tokens are used up"}};
        leave(who, now);
        return;
    }
    stop_watching(who);
    who.mode = who.terms.mode;
    who.token = {who.nodes.back().token * settings_.tokens_per_node};
    who.token_count = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(who.terms.token_count, settings_.tokens_per_node));
    who.was_held = true;
    who.expires = who.asked_at + who.terms.ttl;
    enter(who, state::held);
    wake(who, who.expires);
    if (who.caller) {
        answer_granted(who, now);
        return;
    }
    std::optional<turn_grant> told;
    if (const auto ttl = granted_ttl(who, who.terms.ttl, who.asked_at)) {
        told = turn_grant{.first_token = who.token,
                          .token_count = who.token_count,
                          .asked_at = who.asked_at,
                          .ttl = *ttl};
    }
    emit(tell_turn{who.terms.name, who.terms.owner, told});
}

/// What is held says so at once, unless too little of the session is left.
void recipe::answer_granted(claim& who, clock::time_point now) {
    const auto& session = sessions_.at(who.session);
    if (!fresh(session, now) && session.confirmed_at < who.asked_at) {
        wake(who, std::min(who.expires, who.caller->deadline));
        if (!session.asking) {
            ask(who.session, now);
        }
        return;
    }
    wake(who, who.expires);
    const auto ttl = granted_ttl(who, who.terms.ttl, who.asked_at);
    if (!ttl) {
        fail(who, {errc::outcome_unknown, "the session is about to end"});
        return;
    }
    answer(who, acquire_reply{.result = outcome::granted,
                              .first_token = who.token,
                              .token_count = who.token_count,
                              .ttl = *ttl});
}

void recipe::stand_in_line(claim& who, std::vector<queue_node> blockers, clock::time_point now) {
    enter(who, state::in_line);
    who.expires = std::max(who.asked_at + who.terms.ttl, now);
    wake(who, who.expires);
    watch_blockers(who, std::move(blockers));
    answer(who, busy());
    if (who.changed) {
        read(who, now);
    }
}

void recipe::watch_blockers(claim& who, std::vector<queue_node> blockers) {
    const bool same =
        std::equal(blockers.begin(), blockers.end(), who.blockers.begin(), who.blockers.end(),
                   [](const auto& one, const auto& other) { return one.place == other.place; });
    if (who.watch != 0 && same) {
        return;
    }
    stop_watching(who);
    who.watch = ++last_id_;
    who.blockers = blockers;
    claim_watches_[who.watch] = who.id;
    emit(start_watch{who.watch, who.terms.name, std::move(blockers)});
}

void recipe::stop_watching(claim& who) {
    if (who.watch != 0) {
        claim_watches_.erase(who.watch);
        emit(stop_watch{std::exchange(who.watch, 0)});
    }
}

actions recipe::on_changed(watch_id id, clock::time_point now) {
    expire(now);
    if (const auto name = name_watches_.find(id); name != name_watches_.end()) {
        names_.at(name->second).hears = true;
        emit(tell_hint{name->second});
    } else if (const auto waiter = claim_watches_.find(id); waiter != claim_watches_.end()) {
        auto& who = claims_.at(waiter->second);
        if (who.request != 0) {
            who.changed = true;
        } else {
            read(who, now);
        }
    }
    return finish(now);
}

actions recipe::on_node_removed(const std::string& name, const std::string& id, clock::time_point now) {
    expire(now);
    const auto record = names_.find(name);
    if (record != names_.end()) {
        for (const auto each : record->second.claims) {
            auto& who = claims_.at(each);
            const bool settled = who.now_in == state::held || who.now_in == state::in_line;
            if (settled && who.request == 0 && !who.nodes.empty() && who.nodes.front().id == id) {
                read(who, now);
            }
        }
    }
    return finish(now);
}

void recipe::verify_hold(claim& who, const std::vector<queue_node>& queue, clock::time_point now) {
    if (find_node(queue, who.nodes.front().claim.label) == nullptr) {
        lose(who, {errc::lost, "its node was removed"}, now);
    } else if (who.caller) {
        answer_granted(who, now);
    }
}

// Conversions: the node of the new mode is created behind all others, and takes the place of the old
// one if nobody is in between for whom that makes a difference.

void recipe::look_before_conversion(claim& who, const std::vector<queue_node>& queue,
                                    clock::time_point now) {
    if (find_node(queue, who.nodes.front().claim.label) == nullptr) {
        lose(who, {errc::lost, "its node was removed"}, now);
        return;
    }
    const auto last = std::numeric_limits<std::uint64_t>::max();
    if (who.terms.mode == claim_mode::exclusive &&
        somebody_between(queue, who.labels, 0, last, anybody)) {
        enter(who, state::held);
        wake(who, who.expires);
        answer(who, busy());
        return;
    }
    who.replacing = true;
    create(who, who.terms.mode, who.session, false, now);
}

void recipe::convert(claim& who, const std::vector<queue_node>& queue, clock::time_point now) {
    const auto* const found = find_node(queue, who.nodes.back().claim.label);
    if (found == nullptr) {
        enter(who, state::held);
        wake(who, who.expires);
        fail(who, {errc::outcome_unknown, "the new node is gone"});
        return;
    }
    auto new_node = *found;
    new_node.token = found->token != 0 ? found->token : who.nodes.back().token;
    const bool upgrade = who.terms.mode == claim_mode::exclusive;
    const bool hindered = upgrade ? somebody_between(queue, who.labels, 0, new_node.place, anybody)
                                  : somebody_between(queue, who.labels, who.nodes.front().place,
                                                     new_node.place, is_writer);
    who.nodes.pop_back();
    std::erase_if(who.nodes, [](const queue_node& node) { return node.id.empty(); });
    if (hindered) {
        // Writers wait behind the old node, which keeps them out until it is released. A reader's share
        // is then as strong as the lock was.
        who.surplus = {new_node};
    } else {
        who.surplus = std::exchange(who.nodes, {new_node});
    }
    if (upgrade && hindered) {
        who.verdict = busy();
    } else {
        who.mode = who.terms.mode;
        if (upgrade) {
            who.token = {new_node.token * settings_.tokens_per_node};
            who.token_count = static_cast<std::uint32_t>(
                std::min<std::uint64_t>(who.terms.token_count, settings_.tokens_per_node));
        }
    }
    remove_surplus(who, now);
}

void recipe::remove_surplus(claim& who, clock::time_point now) {
    if (!who.surplus.empty()) {
        who.request = ask_for(who.id);
        emit(send_remove{who.request, who.terms.name, who.surplus.back(), deadline_of(who, now)});
        return;
    }
    enter(who, state::held);
    wake(who, who.expires);
    if (who.verdict) {
        answer(who, *std::exchange(who.verdict, std::nullopt));
    } else if (who.caller) {
        answer_granted(who, now);
    }
}

// Lingering.

void recipe::start_linger(claim& who, milliseconds linger, clock::time_point now) {
    enter(who, state::lingering);
    if (const auto earlier = sessions_.find(who.linger_session); earlier != sessions_.end()) {
        earlier->second.claims.erase(who.id);  // what it made there ends with it
    }
    who.linger_session = make_session(linger, now);
    auto& session = sessions_.at(who.linger_session);
    session.ends_at = now + linger;
    session.claims.insert(who.id);
    wake(who, std::min(who.expires, who.caller->deadline));
    ask(who.linger_session, now);
}

/// The node of the linger keeps the name taken, also when this process ends. If somebody has come
/// between, the old node must stay as well, and this client keeps it.
void recipe::linger(claim& who, const std::vector<queue_node>& queue, clock::time_point now) {
    const auto stays = who.nodes.back();
    const auto place = find_node(queue, stays.claim.label);
    if (place == nullptr) {
        enter(who, state::held);
        wake(who, who.expires);
        fail(who, {errc::outcome_unknown, "the node that was to linger is gone"});
        return;
    }
    if (somebody_between(queue, who.labels, who.nodes.front().place, place->place, anybody)) {
        who.lingers = true;
        who.expires = *sessions_.at(who.linger_session).ends_at;
        enter(who, state::held);
        wake(who, who.expires);
        detach(who);
        answer(who, release_reply{.result = release_reply::outcome::released});
        return;
    }
    who.nodes.pop_back();
    std::erase(who.labels, stays.claim.label);
    sessions_.at(who.linger_session).claims.erase(who.id);
    who.linger_session = 0;
    leave(who, now);
}

// Leaving.

void recipe::leave(claim& who, clock::time_point now) {
    stop_watching(who);
    enter(who, state::leaving);
    wake(who, never);
    who.request = 0;
    who.pause = settings_.shortest_pause;
    if (!who.caller) {
        detach(who);
    }
    if (now < who.doubt_until) {
        read(who, now);
    } else {
        remove_next(who, now);
    }
}

void recipe::remove_next(claim& who, clock::time_point now) {
    wake(who, never);
    std::erase_if(who.nodes, [](const queue_node& node) { return node.id.empty(); });
    if (!who.nodes.empty()) {
        who.request = ask_for(who.id);
        emit(send_remove{who.request, who.terms.name, who.nodes.back(), deadline_of(who, now)});
    } else {
        left(who, now);
    }
}

actions recipe::on_removed(request_id id, const remove_reply& reply, clock::time_point now) {
    expire(now);
    auto* const who = asked_by(id);
    if (who == nullptr) {
        return finish(now);
    }
    if (reply.error.code == errc::lost) {
        end_session(who->session, true, now);
    } else if (who->now_in == state::converting) {
        if (reply.error) {
            who->nodes.push_back(who->surplus.back());  // goes with the rest, at the latest
        }
        who->surplus.pop_back();
        remove_surplus(*who, now);
    } else if (reply.error) {
        if (who->verdict) {
            answer(*who, *who->verdict);
        }
        fail(*who, reply.error);
        detach(*who);
        retry_later(*who, now);
    } else {
        who->nodes.pop_back();
        remove_next(*who, now);
    }
    return finish(now);
}

void recipe::look_for_forgotten(claim& who, const std::vector<queue_node>& queue,
                                clock::time_point now) {
    who.nodes.clear();
    std::copy_if(queue.begin(), queue.end(), std::back_inserter(who.nodes),
                 [&](const queue_node& node) { return contains(who.labels, node.claim.label); });
    remove_next(who, now);
}

void recipe::left(claim& who, clock::time_point now) {
    enter(who, state::sweeping);
    if (who.verdict) {
        answer(who, *who.verdict);
    }
    answer(who, release_reply{.result = who.was_held ? release_reply::outcome::released
                                                     : release_reply::outcome::gone});
    detach(who);
    if (who.read_at < who.doubt_until) {
        who.pause = std::max<clock::duration>(who.pause, settings_.shortest_pause);
        retry_later(who, now);
    } else {
        forget(who.id);
    }
}

void recipe::retry_later(claim& who, clock::time_point now) {
    who.pause =
        std::clamp<clock::duration>(2 * who.pause, settings_.shortest_pause, settings_.longest_pause);
    wake(who, now + who.pause);
}

/// The store has taken it from us.
void recipe::lose(claim& who, const failure& why, clock::time_point now) {
    holds_changed_ = holds_changed_ || (who.was_held && !who.lingers);
    if (who.now_in == state::in_line && !who.caller) {
        emit(tell_turn{who.terms.name, who.terms.owner, std::nullopt});
        emit(tell_hint{who.terms.name});
    }
    fail(who, why);
    stop_watching(who);
    if (who.nodes.size() > 1 || now < who.doubt_until) {
        leave(who, now);
    } else {
        forget(who.id);
    }
}

/// No call of its owner is about it any more.
void recipe::detach(const claim& who) {
    const auto found = by_owner_.find({who.terms.name, who.terms.owner});
    if (found != by_owner_.end() && found->second == who.id) {
        by_owner_.erase(found);
    }
}

void recipe::forget(claim_id id) {
    auto& who = claims_.at(id);
    stop_watching(who);
    wake(who, never);
    enter(who, state::sweeping);
    detach(who);
    for (const auto key : {who.session, who.linger_session}) {
        if (const auto session = sessions_.find(key); session != sessions_.end()) {
            session->second.claims.erase(id);
        }
    }
    const auto name = who.terms.name;
    names_.at(name).claims.erase(id);
    claims_.erase(id);
    tidy(name);
}

void recipe::enter(claim& who, state next) {
    who.now_in = next;
    // A claim in line watches what matters to it, and a name that is ours alone has no news.
    const bool mutes = next == state::in_line || ((next == state::held || next == state::converting) &&
                                                  who.mode == claim_mode::exclusive && !who.lingers);
    if (mutes != who.mutes) {
        who.mutes = mutes;
        auto& record = names_.at(who.terms.name);
        record.muted += mutes ? 1U : -1U;
        update_watch(who.terms.name);
    }
}

void recipe::wake(claim& who, clock::time_point at) {
    if (who.wakes != never) {
        timers_.erase({who.wakes, who.id});
    }
    who.wakes = at;
    if (at != never) {
        timers_.insert({at, who.id});
    }
}

void recipe::on_wake(claim& who, clock::time_point now) {
    who.wakes = never;
    if (who.caller && who.request == 0 && now >= who.caller->deadline) {
        fail(who, {errc::store_unavailable, "the store did not answer in time"});
        if (who.now_in == state::preparing) {
            forget(who.id);
            return;
        }
        if (who.now_in == state::lingering) {
            enter(who, state::held);
        }
    }
    switch (who.now_in) {
        case state::held:
        case state::in_line:
        case state::doubtful:
            if (who.caller) {
                wake(who, std::max(who.caller->deadline, now + settings_.shortest_pause));
            } else if (now >= who.expires) {
                leave(who, now);
            } else {
                wake(who, who.expires);
                if (who.changed && who.request == 0) {
                    read(who, now);
                }
            }
            break;
        case state::leaving:
        case state::sweeping:
            if (now < who.doubt_until || who.now_in == state::sweeping) {
                read(who, now);
            } else {
                remove_next(who, now);
            }
            break;
        case state::lingering:
            wake(who, std::max(who.caller ? who.caller->deadline : who.expires,
                               now + settings_.shortest_pause));
            break;
        case state::preparing:
        case state::reading:
        case state::creating:
        case state::converting:
            break;
    }
}

clock::time_point recipe::deadline_of(const claim& who, clock::time_point now) const {
    return who.caller ? who.caller->deadline : now + settings_.request_timeout;
}

// Sessions.

recipe::session_key recipe::session_for(milliseconds ttl, clock::time_point now) {
    const auto wanted = rounded_up(std::max(ttl, settings_.minimum_ttl), settings_.granularity);
    for (auto& [key, session] : sessions_) {
        if (session.ttl == wanted && !session.ends_at) {
            session.used_at = now;
            return key;
        }
    }
    return make_session(ttl, now);
}

recipe::session_key recipe::make_session(milliseconds ttl, clock::time_point now) {
    const auto key = ++last_id_;
    auto& session = sessions_[key];
    session.ttl = rounded_up(std::max(ttl, settings_.minimum_ttl), settings_.granularity);
    session.used_at = now;
    return key;
}

void recipe::ask(session_key key, clock::time_point now) {
    auto& session = sessions_.at(key);
    session.asking = true;
    session.sent_at = now;
    session.next_keep_alive = never;
    const auto deadline = now + settings_.request_timeout;
    if (session.open) {
        emit(send_keep_alive{ask_for(key), session.id, deadline});
    } else {
        emit(send_open{ask_for(key), session.ttl, deadline});
    }
}

actions recipe::on_session(request_id id, const session_reply& reply, clock::time_point now) {
    expire(now);
    const auto asked = requests_.find(id);
    const auto key = asked == requests_.end() ? 0 : asked->second;
    requests_.erase(id);
    const auto found = sessions_.find(key);
    if (found == sessions_.end()) {
        if (!reply.error && reply.session != 0) {
            start_closing(reply.session, reply.ttl, now);  // opened for nobody
        }
        return finish(now);
    }
    auto& session = found->second;
    session.asking = false;
    if (reply.error) {
        const failure trouble = reply.error;
        if (!session.open || trouble.code == errc::lost) {
            tell_claims(key, {errc::store_unavailable, trouble.detail}, now);
            end_session(key, true, now);
        } else {
            const auto pause = std::clamp<clock::duration>(
                session.granted / 20, settings_.shortest_pause, settings_.longest_pause);
            session.next_keep_alive = now + pause;
            fail_renewals(key, trouble);
            tell_claims(key, trouble, now);
        }
        return finish(now);
    }
    if (!session.open) {
        session.open = true;
        session.id = reply.session;
    }
    // The store may have begun the ttl at any moment since the request left.
    session.granted = reply.ttl;
    session.confirmed_at = session.sent_at;
    session.valid_until = std::max(session.valid_until, session.sent_at + reply.ttl);
    session.next_keep_alive = session.sent_at + reply.ttl / 3;
    if (session.ends_at && session.valid_until >= *session.ends_at) {
        session.next_keep_alive = never;
    }
    if (now >= session.valid_until) {
        end_session(key, false, now);
    } else {
        tell_claims(key, {}, now);
    }
    return finish(now);
}

/// Those who waited for the session.
void recipe::tell_claims(session_key key, const failure& trouble, clock::time_point now) {
    const auto claims = sessions_.at(key).claims;
    for (const auto id : claims) {
        auto& who = claims_.at(id);
        if (who.now_in == state::preparing) {
            if (trouble) {
                fail(who, {errc::store_unavailable, trouble.detail});
                forget(id);
            } else {
                begin(who, now);
            }
        } else if (who.now_in == state::lingering && who.request == 0 && who.linger_session == key) {
            if (trouble) {
                enter(who, state::held);
                wake(who, who.expires);
                fail(who, trouble);
            } else {
                wake(who, never);
                create(who, who.mode, key, false, now);
            }
        } else if (who.now_in == state::held && who.caller && who.caller->acquires() &&
                   who.request == 0 && who.session == key) {
            if (trouble) {
                fail(who, trouble);
                wake(who, who.expires);
            } else {
                answer_granted(who, now);
            }
        }
    }
}

actions recipe::on_session_ended(session_id session, clock::time_point now) {
    expire(now);
    const auto found = std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
        return entry.second.open && entry.second.id == session;
    });
    if (found != sessions_.end()) {
        end_session(found->first, true, now);
    }
    return finish(now);
}

void recipe::end_session(session_key key, bool known_to_store, clock::time_point now) {
    const auto found = sessions_.find(key);
    if (found == sessions_.end()) {
        return;
    }
    const auto session = std::move(found->second);
    sessions_.erase(found);
    for (const auto id : session.claims) {
        auto& who = claims_.at(id);
        if (who.session != key) {  // only its linger
            who.linger_session = 0;
            if (who.now_in == state::lingering) {
                who.request = 0;
                enter(who, state::held);
                wake(who, who.expires);
                fail(who, {errc::outcome_unknown, "the session of the linger ended"});
            }
            continue;
        }
        holds_changed_ = holds_changed_ || (who.was_held && !who.lingers);
        if (who.now_in == state::in_line) {
            emit(tell_turn{who.terms.name, who.terms.owner, std::nullopt});
            emit(tell_hint{who.terms.name});
        }
        if (who.now_in == state::leaving && who.verdict) {
            answer(who, *who.verdict);
        }
        answer(who, release_reply{.result = release_reply::outcome::gone});
        fail(who, {who.terms.converts ? errc::lost : errc::outcome_unknown,
                   "the session with the store ended"});
        forget(id);
    }
    if (session.open && !known_to_store) {
        start_closing(session.id, session.granted, now);
    }
}

/// Until the store has confirmed it, or has ended it by itself.
void recipe::start_closing(session_id id, milliseconds ttl, clock::time_point now) {
    const auto key = ++last_id_;
    auto& session = closing_[key];
    session.id = id;
    session.gone_at = now + settings_.request_timeout + ttl;
    session.pause = settings_.shortest_pause;
    close(key, session, now);
}

void recipe::close(std::uint64_t key, closing_session& session, clock::time_point now) {
    session.wakes = never;
    emit(send_close{ask_for(key), session.id, now + settings_.request_timeout});
}

actions recipe::on_closed(request_id id, const remove_reply& reply, clock::time_point now) {
    expire(now);
    const auto asked = requests_.find(id);
    const auto found = asked == requests_.end() ? closing_.end() : closing_.find(asked->second);
    requests_.erase(id);
    if (found != closing_.end()) {
        auto& session = found->second;
        const bool over = !reply.error || reply.error.code == errc::lost || now >= session.gone_at;
        if (over) {
            closing_.erase(found);
        } else {
            session.wakes = now + session.pause;
            session.pause = std::min<clock::duration>(2 * session.pause, settings_.longest_pause);
        }
    }
    return finish(now);
}

bool recipe::fresh(const session_record& session, clock::time_point now) const {
    return session.valid_until - now >= session.granted / 2;
}

/// As replies say it: zero for as asked. None if nothing is left.
std::optional<milliseconds> recipe::granted_ttl(const claim& who, milliseconds ttl,
                                                clock::time_point since) const {
    const auto left = std::chrono::floor<milliseconds>(sessions_.at(who.session).valid_until - since);
    if (left < milliseconds{1}) {
        return std::nullopt;
    }
    return left < ttl ? left : milliseconds::zero();
}

/// What is over by our clock, whatever the store may still say.
void recipe::expire(clock::time_point now) {
    std::vector<session_key> over;
    for (const auto& [key, session] : sessions_) {
        if ((session.open && now >= session.valid_until) ||
            (session.ends_at && now >= *session.ends_at)) {
            over.push_back(key);
        }
    }
    for (const auto key : over) {
        end_session(key, false, now);
    }
}

// Time.

actions recipe::on_time(clock::time_point now) {
    expire(now);
    std::vector<session_key> due;
    for (const auto& [key, session] : sessions_) {
        if (!session.asking && now >= session.next_keep_alive) {
            due.push_back(key);
        }
    }
    for (const auto key : due) {
        const auto& session = sessions_.at(key);
        const bool idle = session.claims.empty() && now - session.used_at >= settings_.idle_session &&
                          !session.ends_at;
        if (idle) {
            end_session(key, false, now);
        } else {
            ask(key, now);
        }
    }
    for (auto& [key, session] : closing_) {
        if (now >= session.wakes) {
            close(key, session, now);
        }
    }
    while (!timers_.empty() && timers_.begin()->first <= now) {
        const auto id = timers_.begin()->second;
        timers_.erase(timers_.begin());
        on_wake(claims_.at(id), now);
    }
    const auto delayed = delayed_;
    for (const auto& name : delayed) {
        std::erase_if(names_.at(name).backlog, [&](const waiting_call& call) {
            const bool late = now >= call.deadline;
            if (late) {
                refuse(call, {errc::store_unavailable, "the store did not answer in time"});
            }
            return late;
        });
        ready_.push_back(name);
    }
    return finish(now);
}

clock::time_point recipe::next_wake() const {
    auto next = timers_.empty() ? never : timers_.begin()->first;
    for (const auto& [key, session] : sessions_) {
        if (!session.asking) {
            next = std::min(next, session.next_keep_alive);
        }
        if (session.open) {
            next = std::min(next, session.valid_until);
        }
        if (session.ends_at) {
            next = std::min(next, *session.ends_at);
        }
    }
    for (const auto& [key, session] : closing_) {
        next = std::min(next, session.wakes);
    }
    for (const auto& call : renewals_) {
        next = std::min(next, call.deadline);
    }
    for (const auto& name : delayed_) {
        for (const auto& call : names_.at(name).backlog) {
            next = std::min(next, call.deadline);
        }
    }
    return next;
}

actions recipe::shut_down(clock::time_point now) {
    shut_down_ = true;
    const failure over{errc::shut_down, "the client was shut down"};
    for (auto& [id, who] : claims_) {
        fail(who, over);
        if (who.lingers) {
            sessions_.erase(who.session);  // neither kept alive nor closed
        }
    }
    for (auto& [name, record] : names_) {
        for (const auto& call : record.backlog) {
            refuse(call, over);
        }
    }
    for (const auto& call : renewals_) {
        emit(answer_renew{call.id, std::vector<renew_reply>(call.batch.size(), {.error = over})});
    }
    for (const auto& [id, name] : name_watches_) {
        emit(stop_watch{id});
    }
    for (const auto& [id, who] : claim_watches_) {
        emit(stop_watch{id});
    }
    for (const auto& [key, session] : sessions_) {
        if (session.open && !session.ends_at) {
            start_closing(session.id, session.granted, now);
        }
    }
    claims_.clear();
    by_owner_.clear();
    names_.clear();
    sessions_.clear();
    renewals_.clear();
    name_watches_.clear();
    claim_watches_.clear();
    timers_.clear();
    delayed_.clear();
    ready_.clear();
    return std::exchange(actions_, {});
}

// News.

actions recipe::watchers(const std::string& name, std::uint32_t count) {
    if (shut_down_) {
        return {};
    }
    names_[name].watchers = count;
    update_watch(name);
    tidy(name);
    return std::exchange(actions_, {});
}

bool recipe::hears(const std::string& name) const {
    const auto found = names_.find(name);
    return found != names_.end() && found->second.hears;
}

void recipe::update_watch(const std::string& name) {
    auto& record = names_.at(name);
    const bool wanted = record.watchers > 0 && record.muted == 0;
    record.hears = record.watchers > 0 && (record.hears || record.muted > 0);
    if (wanted && record.watch == 0) {
        record.watch = ++last_id_;
        name_watches_[record.watch] = name;
        emit(start_watch{record.watch, name, {}});
    } else if (!wanted && record.watch != 0) {
        name_watches_.erase(record.watch);
        emit(stop_watch{std::exchange(record.watch, 0)});
    }
}

void recipe::tidy(const std::string& name) {
    const auto found = names_.find(name);
    if (found != names_.end() && found->second.claims.empty() && found->second.backlog.empty() &&
        found->second.watchers == 0 && found->second.watch == 0) {
        names_.erase(found);
    }
}

actions recipe::finish(clock::time_point now) {
    while (!ready_.empty()) {
        const auto name = std::move(ready_.back());
        ready_.pop_back();
        perform_backlog(name, now);
    }
    settle_renewals(now);
    if (std::exchange(holds_changed_, false)) {
        emit(tell_holds_changed{});
    }
    return std::exchange(actions_, {});
}

request_id recipe::ask_for(std::uint64_t subject) {
    const auto id = ++last_id_;
    requests_[id] = subject;
    return id;
}

}  // namespace holdfast::engines::nodes
