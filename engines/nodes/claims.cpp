#include <nodes/claims.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace holdfast::engines::nodes {

namespace {

using outcome = acquire_reply::outcome;
using std::chrono::milliseconds;
using state = claim::state;

[[nodiscard]] acquire_reply busy() {
    return {.result = outcome::busy};
}

[[nodiscard]] acquire_reply of_another_kind() {
    return {.error = {errc::wrong_kind,
                      "the name is in use for another kind of lock or with another limit"}};
}

[[nodiscard]] acquire_reply refused(const standing& place) {
    return place.result == standing::verdict::wrong_kind ? of_another_kind() : busy();
}

[[nodiscard]] node_claim node_of(const acquire_request& terms, std::string label) {
    return {.label = std::move(label),
            .mode = terms.mode,
            .permits = terms.permits,
            .limit = terms.limit,
            .kind = terms.kind};
}

}  // namespace

void claim_table::start_acquire(waiting_call call, clock::time_point now) {
    const auto& request = std::get<acquire_request>(call.request);
    auto* const found = find(request.name, request.owner);
    if (found == nullptr) {
        if (request.converts) {
            outbox_.refuse(call, {errc::lost, "the store does not know the lease"});
            return;
        }
        prepare(add_claim(call, now), now);
        return;
    }
    auto& claim = *found;
    const auto mode = request.mode;
    const bool queue = claim.terms.queue || request.queue;
    claim.terms = request;
    claim.terms.queue = queue;
    claim.asked_at = call.asked_at;
    claim.caller = std::move(call);
    switch (claim.current) {
        case state::held:
            claim.expires = std::max(claim.expires, claim.asked_at + claim.terms.ttl);
            wake(claim, std::min(claim.expires, claim.caller->deadline));
            if (mode == claim.mode) {
                answer_granted(claim, now);
            } else if (mode == claim_mode::permit || claim.mode == claim_mode::permit) {
                answer(claim, of_another_kind());
            } else {
                enter(claim, state::converting);
                claim.replacing = false;
                read(claim, now);
            }
            break;
        case state::in_line:
            claim.expires = claim.asked_at + claim.terms.ttl;
            wake(claim, claim.expires);
            if (claim.request == 0) {
                // News can be lost, so a waiter looks for itself once in a while.
                if (claim.changed || now - claim.read_at >= settings_.recheck) {
                    read(claim, now);
                } else {
                    answer(claim, busy());
                }
            }
            break;
        default:  // doubtful: the others have a caller, or are not found
            enter(claim, state::creating);
            wake(claim, never);
            read(claim, now);
            break;
    }
}

void claim_table::start_release(waiting_call call, clock::time_point now) {
    const auto& request = std::get<release_request>(call.request);
    auto* claim = find(request.name, request.owner);
    if (claim == nullptr) {
        claim = find_leftover(request.name, request.owner);
    }
    if (claim == nullptr) {
        outbox_.emit(answer_release{call.id, {.result = release_reply::outcome::gone}});
        return;
    }
    const auto linger = request.linger;
    claim->caller = std::move(call);
    if (claim->current == state::leaving) {
        if (claim->request == 0) {
            remove_next(*claim, now);
        }
    } else if (claim->current == state::held && linger.count() > 0) {
        start_linger(*claim, linger, now);
    } else {
        leave(*claim, now);
    }
}

void claim_table::answer(claim& claim, const acquire_reply& reply) {
    if (claim.caller && claim.caller->acquires()) {
        outbox_.emit(answer_acquire{claim.caller->id, reply});
        claim.caller.reset();
        answered_.push_back(claim.terms.name);
    }
}

void claim_table::answer(claim& claim, const release_reply& reply) {
    if (claim.caller && !claim.caller->acquires()) {
        outbox_.emit(answer_release{claim.caller->id, reply});
        claim.caller.reset();
        answered_.push_back(claim.terms.name);
    }
}

void claim_table::fail(claim& claim, const failure& reason) {
    answer(claim, acquire_reply{.error = reason});
    answer(claim, release_reply{.error = reason});
}

claim* claim_table::find(const std::string& name, const owner_id& owner) {
    const auto found = by_owner_.find({name, owner});
    return found == by_owner_.end() ? nullptr : &claims_.at(found->second);
}

/// What the owner had before, and could not be removed so far.
claim* claim_table::find_leftover(const std::string& name, const owner_id& owner) {
    for (const auto id : claims_of(name)) {
        auto& claim = claims_.at(id);
        if (claim.current == state::leaving && claim.terms.owner == owner && !claim.caller &&
            !claim.lingers) {
            return &claim;
        }
    }
    return nullptr;
}

const std::set<claim_id>& claim_table::claims_of(const std::string& name) const {
    static const std::set<claim_id> none;
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? none : found->second;
}

/// The claim that waits for this answer, if it still does.
claim* claim_table::asked_by(request_id id) {
    const auto found = claims_.find(outbox_.answered(id));
    if (found == claims_.end() || found->second.request != id) {
        return nullptr;
    }
    found->second.request = 0;
    return &found->second;
}

claim& claim_table::add_claim(const waiting_call& call, clock::time_point now) {
    const auto id = outbox_.next_id();
    auto& claim = claims_[id];
    claim.id = id;
    claim.terms = std::get<acquire_request>(call.request);
    claim.asked_at = call.asked_at;
    claim.caller = call;
    by_name_[claim.terms.name].insert(id);
    by_owner_[{claim.terms.name, claim.terms.owner}] = id;
    claim.session = sessions_.for_ttl(claim.terms.ttl, now);
    sessions_.at(claim.session).claims.insert(id);
    return claim;
}

void claim_table::prepare(claim& claim, clock::time_point now) {
    const auto& session = sessions_.at(claim.session);
    if (session.open && session.fresh(now)) {
        begin(claim, now);
        return;
    }
    enter(claim, state::preparing);
    wake(claim, claim.caller->deadline);
    sessions_.ask(claim.session, now);
}

/// An exclusive claim that may not wait is refused in the step that would create its node. The others
/// look first: nodes that come and go would wake every waiter.
void claim_table::begin(claim& claim, clock::time_point now) {
    wake(claim, never);
    if (claim.terms.mode == claim_mode::exclusive || claim.terms.queue) {
        enter(claim, state::creating);
        create(claim, claim.terms.mode, claim.session, !claim.terms.queue, now);
    } else {
        enter(claim, state::reading);
        read(claim, now);
    }
}

void claim_table::create(claim& claim, claim_mode mode, session_key session, bool only_if_empty,
                         clock::time_point now) {
    queue_node node;
    node.claim = node_of(claim.terms, client_ + '.' + std::to_string(outbox_.next_id()));
    node.claim.mode = mode;
    claim.labels.push_back(node.claim.label);
    claim.nodes.push_back(std::move(node));
    send_creation(claim, session, only_if_empty, now);
}

void claim_table::send_creation(claim& claim, session_key session, bool only_if_empty,
                                clock::time_point now) {
    claim.request = outbox_.ask_for(claim.id);
    outbox_.emit(send_create{
        claim.request,
        {claim.terms.name, sessions_.at(session).id, claim.nodes.back().claim, only_if_empty},
        deadline_of(claim, now)});
}

void claim_table::read(claim& claim, clock::time_point now) {
    claim.changed = false;
    claim.read_at = now;
    claim.request = outbox_.ask_for(claim.id);
    const auto& label = claim.nodes.empty() ? std::string{} : claim.nodes.back().claim.label;
    outbox_.emit(send_read{claim.request, claim.terms.name, label, deadline_of(claim, now)});
}

void claim_table::on_created(request_id id, const create_reply& reply, clock::time_point now) {
    auto* const claim = asked_by(id);
    if (claim == nullptr) {
        return;  // its session is over, and takes the node with it
    }
    if (reply.error) {
        on_creation_failed(*claim, reply.error, now);
        return;
    }
    if (!reply.created) {
        const auto& queue = reply.queue ? *reply.queue : std::vector<queue_node>{};
        claim->verdict = refused(judge_newcomer(queue, claim->nodes.back().claim, claim->labels));
        claim->nodes.pop_back();
        leave(*claim, now);
        return;
    }
    claim->nodes.back() = *reply.created;
    if (!reply.queue) {
        read(*claim, now);
        return;
    }
    auto queue = *reply.queue;
    if (find_node(queue, reply.created->claim.label) == nullptr) {
        queue.push_back(*reply.created);
    }
    if (claim->current == state::converting) {
        convert(*claim, queue, now);
    } else if (claim->current == state::lingering) {
        linger(*claim, queue, now);
    } else {
        look(*claim, queue, now);
    }
}

/// A creation without an answer may have taken effect, or still do so.
void claim_table::on_creation_failed(claim& claim, const failure& reason, clock::time_point now) {
    if (reason.code == errc::lost) {
        const bool lingers = claim.current == state::lingering;
        end_session(lingers ? claim.linger_session : claim.session, true, now);
        return;
    }
    const bool unknown = reason.code == errc::outcome_unknown;
    if (unknown) {
        claim.doubt_until = now + sessions_.at(claim.session).granted;
    } else if (now >= claim.doubt_until) {
        claim.nodes.pop_back();
    }
    if (claim.current != state::creating) {
        stay_held(claim);
        fail(claim, reason);
        return;
    }
    if (claim.nodes.empty()) {
        fail(claim, reason);
        forget(claim.id);
        return;
    }
    doubt(claim, reason);
}

void claim_table::on_read(request_id id, const queue_reply& reply, clock::time_point now) {
    auto* const claim = asked_by(id);
    if (claim == nullptr) {
        return;
    }
    if (reply.error) {
        on_reading_failed(*claim, reply.error, now);
        return;
    }
    switch (claim->current) {
        case state::reading:
            look_before(*claim, reply.queue, now);
            break;
        case state::creating:
        case state::in_line:
            look(*claim, reply.queue, now);
            break;
        case state::held:
            verify_hold(*claim, reply.queue, now);
            break;
        case state::converting:
            if (claim->replacing) {
                convert(*claim, reply.queue, now);
            } else {
                look_before_conversion(*claim, reply.queue, now);
            }
            break;
        case state::lingering:
            linger(*claim, reply.queue, now);
            break;
        case state::leaving:
        case state::sweeping:
            look_for_forgotten(*claim, reply.queue, now);
            break;
        case state::preparing:
        case state::doubtful:
            break;
    }
}

void claim_table::on_reading_failed(claim& claim, const failure& reason, clock::time_point now) {
    switch (claim.current) {
        case state::reading:
            fail(claim, {errc::store_unavailable, reason.detail});
            forget(claim.id);
            break;
        case state::creating:
            doubt(claim, reason);
            break;
        case state::in_line:
            answer(claim, busy());
            [[fallthrough]];
        case state::held:
            claim.changed = true;
            retry_later(claim, now);
            break;
        case state::converting:
        case state::lingering:
            stay_held(claim);
            fail(claim, {errc::outcome_unknown, reason.detail});
            break;
        case state::leaving:
        case state::sweeping:
            go_on_later(claim, {errc::outcome_unknown, reason.detail}, now);
            break;
        case state::preparing:
        case state::doubtful:
            break;
    }
}

/// Nobody's node is created in vain.
void claim_table::look_before(claim& claim, const std::vector<queue_node>& queue,
                              clock::time_point now) {
    const auto place = judge_newcomer(queue, node_of(claim.terms, {}), claim.labels);
    if (place.result == standing::verdict::granted) {
        enter(claim, state::creating);
        create(claim, claim.terms.mode, claim.session, false, now);
        return;
    }
    answer(claim, refused(place));
    forget(claim.id);
}

/// Only a node that is in the queue can be granted anything: a session may have ended unnoticed.
void claim_table::look(claim& claim, const std::vector<queue_node>& queue, clock::time_point now) {
    auto& own = claim.nodes.back();
    const auto* const found = find_node(queue, own.claim.label);
    if (found == nullptr || (found->session != 0 && found->session != sessions_.at(claim.session).id)) {
        if (claim.current == state::creating && own.id.empty()) {
            const bool only_if_empty = claim.terms.mode == claim_mode::exclusive && !claim.terms.queue;
            send_creation(claim, claim.session, only_if_empty, now);
            return;
        }
        lose(claim, {errc::store_unavailable, "the place in the queue is gone"}, now);
        return;
    }
    const auto token = found->token != 0 ? found->token : own.token;
    own = *found;
    own.token = token;
    auto place = judge(queue, own, claim.labels);
    if (place.result == standing::verdict::granted) {
        grant(claim, now);
    } else if (place.result == standing::verdict::blocked && claim.terms.queue) {
        stand_in_line(claim, std::move(place.blockers), now);
    } else {
        claim.verdict = refused(place);
        leave(claim, now);
    }
}

void claim_table::grant(claim& claim, clock::time_point now) {
    const auto last = std::numeric_limits<std::uint64_t>::max() / settings_.tokens_per_node;
    if (claim.nodes.back().token > last) {
        claim.verdict = acquire_reply{.error = {errc::store_error, "the fencing tokens are used up"}};
        leave(claim, now);
        return;
    }
    stop_watching(claim);
    claim.mode = claim.terms.mode;
    set_token(claim, claim.nodes.back());
    claim.was_held = true;
    claim.expires = claim.asked_at + claim.terms.ttl;
    stay_held(claim);
    if (claim.caller) {
        answer_granted(claim, now);
        return;
    }
    std::optional<turn_grant> told;
    if (const auto ttl = sessions_.at(claim.session).granted_ttl(claim.terms.ttl, claim.asked_at)) {
        told = turn_grant{.first_token = claim.token,
                          .token_count = claim.token_count,
                          .asked_at = claim.asked_at,
                          .ttl = *ttl};
    }
    outbox_.emit(tell_turn{claim.terms.name, claim.terms.owner, told});
}

void claim_table::set_token(claim& claim, const queue_node& node) const {
    claim.token = {node.token * settings_.tokens_per_node};
    claim.token_count = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(claim.terms.token_count, settings_.tokens_per_node));
}

/// What is held says so at once, unless too little of the session is left.
void claim_table::answer_granted(claim& claim, clock::time_point now) {
    const auto& session = sessions_.at(claim.session);
    if (!session.fresh(now) && session.confirmed_at < claim.asked_at) {
        wake(claim, std::min(claim.expires, claim.caller->deadline));
        sessions_.ask(claim.session, now);
        return;
    }
    wake(claim, claim.expires);
    const auto ttl = session.granted_ttl(claim.terms.ttl, claim.asked_at);
    if (!ttl) {
        fail(claim, {errc::outcome_unknown, "the session is about to end"});
        return;
    }
    answer(claim, acquire_reply{.result = outcome::granted,
                                .first_token = claim.token,
                                .token_count = claim.token_count,
                                .ttl = *ttl});
}

void claim_table::stand_in_line(claim& claim, std::vector<queue_node> blockers, clock::time_point now) {
    enter(claim, state::in_line);
    claim.expires = std::max(claim.asked_at + claim.terms.ttl, now);
    wake(claim, claim.expires);
    watch_blockers(claim, std::move(blockers));
    answer(claim, busy());
    if (claim.changed) {
        read(claim, now);
    }
}

void claim_table::watch_blockers(claim& claim, std::vector<queue_node> blockers) {
    const bool same =
        std::equal(blockers.begin(), blockers.end(), claim.blockers.begin(), claim.blockers.end(),
                   [](const auto& one, const auto& other) { return one.place == other.place; });
    if (claim.watch != 0 && same) {
        return;
    }
    stop_watching(claim);
    claim.watch = outbox_.next_id();
    claim.blockers = blockers;
    watches_[claim.watch] = claim.id;
    outbox_.emit(start_watch{claim.watch, claim.terms.name, std::move(blockers)});
}

void claim_table::stop_watching(claim& claim) {
    if (claim.watch != 0) {
        watches_.erase(claim.watch);
        outbox_.emit(stop_watch{std::exchange(claim.watch, 0)});
    }
}

void claim_table::on_changed(watch_id id, clock::time_point now) {
    const auto watch = watches_.find(id);
    if (watch == watches_.end()) {
        return;
    }
    auto& claim = claims_.at(watch->second);
    if (claim.request != 0) {
        claim.changed = true;
    } else {
        read(claim, now);
    }
}

/// The claim looks for itself, after a pause, and watches again then.
void claim_table::on_watch_failed(watch_id id, clock::time_point now) {
    const auto watch = watches_.find(id);
    if (watch == watches_.end()) {
        return;
    }
    auto& claim = claims_.at(watch->second);
    watches_.erase(watch);
    claim.watch = 0;
    if (claim.current == state::in_line && claim.request == 0) {
        claim.changed = true;
        wake(claim, std::min(claim.expires, now + settings_.longest_pause));
    }
}

void claim_table::on_node_removed(const std::string& name, const std::string& id,
                                  clock::time_point now) {
    for (const auto each : claims_of(name)) {
        auto& claim = claims_.at(each);
        const bool settled = claim.current == state::held || claim.current == state::in_line;
        if (settled && claim.request == 0 && !claim.nodes.empty() && claim.nodes.front().id == id) {
            read(claim, now);
        }
    }
}

void claim_table::verify_hold(claim& claim, const std::vector<queue_node>& queue,
                              clock::time_point now) {
    if (find_node(queue, claim.nodes.front().claim.label) == nullptr) {
        lose(claim, {errc::lost, "its node was removed"}, now);
    } else if (claim.caller) {
        answer_granted(claim, now);
    }
}

// Conversions: the node of the new mode is created behind all others, and takes the place of the old
// one if nobody is in between for whom that makes a difference.

void claim_table::look_before_conversion(claim& claim, const std::vector<queue_node>& queue,
                                         clock::time_point now) {
    if (find_node(queue, claim.nodes.front().claim.label) == nullptr) {
        lose(claim, {errc::lost, "its node was removed"}, now);
        return;
    }
    if (claim.terms.mode == claim_mode::exclusive &&
        somebody_between(queue, claim.labels, 0, std::numeric_limits<std::uint64_t>::max())) {
        stay_held(claim);
        answer(claim, busy());
        return;
    }
    claim.replacing = true;
    create(claim, claim.terms.mode, claim.session, false, now);
}

void claim_table::convert(claim& claim, const std::vector<queue_node>& queue, clock::time_point now) {
    const auto* const found = find_node(queue, claim.nodes.back().claim.label);
    if (found == nullptr) {
        stay_held(claim);
        fail(claim, {errc::outcome_unknown, "the new node is gone"});
        return;
    }
    auto new_node = *found;
    new_node.token = found->token != 0 ? found->token : claim.nodes.back().token;
    const bool upgrade = claim.terms.mode == claim_mode::exclusive;
    const bool hindered =
        upgrade ? somebody_between(queue, claim.labels, 0, new_node.place)
                : writer_between(queue, claim.labels, claim.nodes.front().place, new_node.place);
    claim.nodes.pop_back();
    std::erase_if(claim.nodes, [](const queue_node& node) { return node.id.empty(); });
    if (hindered) {
        // Writers wait behind the old node, which keeps them out until it is released. A reader's share
        // is then as strong as the lock was.
        claim.surplus = {new_node};
    } else {
        claim.surplus = std::exchange(claim.nodes, {new_node});
    }
    if (upgrade && hindered) {
        claim.verdict = busy();
    } else {
        claim.mode = claim.terms.mode;
        if (upgrade) {
            set_token(claim, new_node);
        }
    }
    remove_surplus(claim, now);
}

void claim_table::remove_surplus(claim& claim, clock::time_point now) {
    if (!claim.surplus.empty()) {
        claim.request = outbox_.ask_for(claim.id);
        outbox_.emit(send_remove{claim.request, claim.terms.name, claim.surplus.back(),
                                 deadline_of(claim, now)});
        return;
    }
    stay_held(claim);
    if (claim.verdict) {
        answer(claim, *std::exchange(claim.verdict, std::nullopt));
    } else if (claim.caller) {
        answer_granted(claim, now);
    }
}

void claim_table::start_linger(claim& claim, milliseconds linger, clock::time_point now) {
    enter(claim, state::lingering);
    if (auto* const earlier = sessions_.find(claim.linger_session)) {
        earlier->claims.erase(claim.id);  // what it made there ends with it
    }
    claim.linger_session = sessions_.make(linger, now);
    auto& session = sessions_.at(claim.linger_session);
    session.ends_at = now + linger;
    session.claims.insert(claim.id);
    wake(claim, std::min(claim.expires, claim.caller->deadline));
    sessions_.ask(claim.linger_session, now);
}

/// The node of the linger keeps the name taken, also when this process ends. If somebody has come
/// between, the old node must stay as well, and this client keeps it.
void claim_table::linger(claim& claim, const std::vector<queue_node>& queue, clock::time_point now) {
    const auto stays = claim.nodes.back();
    const auto place = find_node(queue, stays.claim.label);
    if (place == nullptr) {
        stay_held(claim);
        fail(claim, {errc::outcome_unknown, "the node that was to linger is gone"});
        return;
    }
    if (somebody_between(queue, claim.labels, claim.nodes.front().place, place->place)) {
        claim.lingers = true;
        claim.expires = *sessions_.at(claim.linger_session).ends_at;
        stay_held(claim);
        detach(claim);
        answer(claim, release_reply{.result = release_reply::outcome::released});
        return;
    }
    claim.nodes.pop_back();
    std::erase(claim.labels, stays.claim.label);
    sessions_.at(claim.linger_session).claims.erase(claim.id);
    claim.linger_session = 0;
    leave(claim, now);
}

void claim_table::leave(claim& claim, clock::time_point now) {
    stop_watching(claim);
    enter(claim, state::leaving);
    wake(claim, never);
    claim.request = 0;
    claim.pause = settings_.shortest_pause;
    if (!claim.caller) {
        detach(claim);
    }
    if (now < claim.doubt_until) {
        read(claim, now);
    } else {
        remove_next(claim, now);
    }
}

void claim_table::remove_next(claim& claim, clock::time_point now) {
    wake(claim, never);
    std::erase_if(claim.nodes, [](const queue_node& node) { return node.id.empty(); });
    if (!claim.nodes.empty()) {
        claim.request = outbox_.ask_for(claim.id);
        outbox_.emit(
            send_remove{claim.request, claim.terms.name, claim.nodes.back(), deadline_of(claim, now)});
    } else {
        left(claim, now);
    }
}

void claim_table::on_removed(request_id id, const remove_reply& reply, clock::time_point now) {
    auto* const claim = asked_by(id);
    if (claim == nullptr) {
        return;
    }
    if (reply.error.code == errc::lost) {
        end_session(claim->session, true, now);
    } else if (claim->current == state::converting) {
        if (reply.error) {
            claim->nodes.push_back(claim->surplus.back());  // goes with the rest, at the latest
        }
        claim->surplus.pop_back();
        remove_surplus(*claim, now);
    } else if (reply.error) {
        go_on_later(*claim, reply.error, now);
    } else {
        claim->nodes.pop_back();
        remove_next(*claim, now);
    }
}

void claim_table::look_for_forgotten(claim& claim, const std::vector<queue_node>& queue,
                                     clock::time_point now) {
    claim.nodes.clear();
    std::copy_if(queue.begin(), queue.end(), std::back_inserter(claim.nodes),
                 [&](const queue_node& node) { return contains(claim.labels, node.claim.label); });
    remove_next(claim, now);
}

void claim_table::left(claim& claim, clock::time_point now) {
    enter(claim, state::sweeping);
    if (claim.verdict) {
        answer(claim, *claim.verdict);
    }
    answer(claim, release_reply{.result = claim.was_held ? release_reply::outcome::released
                                                         : release_reply::outcome::gone});
    detach(claim);
    if (claim.read_at < claim.doubt_until) {
        claim.pause = std::max<clock::duration>(claim.pause, settings_.shortest_pause);
        retry_later(claim, now);
    } else {
        forget(claim.id);
    }
}

/// The caller hears the reason. The nodes are removed all the same.
void claim_table::go_on_later(claim& claim, const failure& reason, clock::time_point now) {
    if (claim.verdict) {
        answer(claim, *claim.verdict);
    }
    fail(claim, reason);
    detach(claim);
    retry_later(claim, now);
}

void claim_table::retry_later(claim& claim, clock::time_point now) {
    claim.pause =
        std::clamp<clock::duration>(2 * claim.pause, settings_.shortest_pause, settings_.longest_pause);
    wake(claim, now + claim.pause);
}

/// The store has taken it from us.
void claim_table::lose(claim& claim, const failure& reason, clock::time_point now) {
    loss_ = loss_ || (claim.was_held && !claim.lingers);
    if (claim.current == state::in_line && !claim.caller) {
        outbox_.emit(tell_turn{claim.terms.name, claim.terms.owner, std::nullopt});
        outbox_.emit(tell_hint{claim.terms.name});
    }
    fail(claim, reason);
    stop_watching(claim);
    if (claim.nodes.size() > 1 || now < claim.doubt_until) {
        leave(claim, now);
    } else {
        forget(claim.id);
    }
}

/// No call of its owner is about it any more.
void claim_table::detach(const claim& claim) {
    const auto found = by_owner_.find({claim.terms.name, claim.terms.owner});
    if (found != by_owner_.end() && found->second == claim.id) {
        by_owner_.erase(found);
    }
}

void claim_table::forget(claim_id id) {
    auto& claim = claims_.at(id);
    stop_watching(claim);
    wake(claim, never);
    enter(claim, state::sweeping);
    detach(claim);
    for (const auto key : {claim.session, claim.linger_session}) {
        if (auto* const session = sessions_.find(key)) {
            session->claims.erase(id);
        }
    }
    const auto named = by_name_.find(claim.terms.name);
    named->second.erase(id);
    if (named->second.empty()) {
        by_name_.erase(named);
    }
    claims_.erase(id);
}

void claim_table::enter(claim& claim, state next) {
    claim.current = next;
    const bool mutes =
        next == state::in_line || ((next == state::held || next == state::converting) &&
                                   claim.mode == claim_mode::exclusive && !claim.lingers);
    if (mutes != claim.mutes) {
        claim.mutes = mutes;
        news_.mute(claim.terms.name, mutes);
    }
}

/// As it was before the call.
void claim_table::stay_held(claim& claim) {
    enter(claim, state::held);
    wake(claim, claim.expires);
}

/// The creation may have taken effect, or still do so.
void claim_table::doubt(claim& claim, const failure& reason) {
    enter(claim, state::doubtful);
    claim.expires = claim.asked_at + claim.terms.ttl;
    wake(claim, claim.expires);
    fail(claim, {errc::outcome_unknown, reason.detail});
}

void claim_table::wake(claim& claim, clock::time_point at) {
    if (claim.wakes != never) {
        timers_.erase({claim.wakes, claim.id});
    }
    claim.wakes = at;
    if (at != never) {
        timers_.insert({at, claim.id});
    }
}

void claim_table::on_wake(claim& claim, clock::time_point now) {
    claim.wakes = never;
    if (claim.caller && claim.request == 0 && now >= claim.caller->deadline) {
        fail(claim, {errc::store_unavailable, "the store did not answer in time"});
        if (claim.current == state::preparing) {
            forget(claim.id);
            return;
        }
        if (claim.current == state::lingering) {
            enter(claim, state::held);
        }
    }
    switch (claim.current) {
        case state::held:
        case state::in_line:
        case state::doubtful:
            if (claim.caller) {
                wake(claim, std::max(claim.caller->deadline, now + settings_.shortest_pause));
            } else if (now >= claim.expires) {
                leave(claim, now);
            } else {
                wake(claim, claim.expires);
                if (claim.changed && claim.request == 0) {
                    read(claim, now);
                }
            }
            break;
        case state::leaving:
        case state::sweeping:
            if (now < claim.doubt_until || claim.current == state::sweeping) {
                read(claim, now);
            } else {
                remove_next(claim, now);
            }
            break;
        case state::lingering:
            wake(claim, std::max(claim.caller ? claim.caller->deadline : claim.expires,
                                 now + settings_.shortest_pause));
            break;
        case state::preparing:
        case state::reading:
        case state::creating:
        case state::converting:
            break;
    }
}

clock::time_point claim_table::deadline_of(const claim& claim, clock::time_point now) const {
    return claim.caller ? claim.caller->deadline : now + settings_.request_timeout;
}

/// Goes on with the claims that waited for the session.
void claim_table::on_session(session_key key, const failure& trouble, clock::time_point now) {
    const auto claims = sessions_.at(key).claims;
    for (const auto id : claims) {
        auto& claim = claims_.at(id);
        if (claim.current == state::preparing) {
            if (trouble) {
                fail(claim, {errc::store_unavailable, trouble.detail});
                forget(id);
            } else {
                begin(claim, now);
            }
        } else if (claim.current == state::lingering && claim.request == 0 &&
                   claim.linger_session == key) {
            if (trouble) {
                stay_held(claim);
                fail(claim, trouble);
            } else {
                wake(claim, never);
                create(claim, claim.mode, key, false, now);
            }
        } else if (claim.current == state::held && claim.caller && claim.caller->acquires() &&
                   claim.request == 0 && claim.session == key) {
            if (trouble) {
                fail(claim, trouble);
                wake(claim, claim.expires);
            } else {
                answer_granted(claim, now);
            }
        }
    }
}

void claim_table::end_session(session_key key, bool known_to_store, clock::time_point now) {
    if (sessions_.find(key) == nullptr) {
        return;
    }
    const auto session = sessions_.take(key);
    for (const auto id : session.claims) {
        auto& claim = claims_.at(id);
        if (claim.session != key) {  // only its linger
            claim.linger_session = 0;
            if (claim.current == state::lingering) {
                claim.request = 0;
                stay_held(claim);
                fail(claim, {errc::outcome_unknown, "the session of the linger ended"});
            }
            continue;
        }
        loss_ = loss_ || (claim.was_held && !claim.lingers);
        if (claim.current == state::in_line) {
            outbox_.emit(tell_turn{claim.terms.name, claim.terms.owner, std::nullopt});
            outbox_.emit(tell_hint{claim.terms.name});
        }
        if (claim.current == state::leaving && claim.verdict) {
            answer(claim, *claim.verdict);
        }
        answer(claim, release_reply{.result = release_reply::outcome::gone});
        fail(claim, {claim.terms.converts ? errc::lost : errc::outcome_unknown,
                     "the session with the store ended"});
        forget(id);
    }
    if (!known_to_store) {
        sessions_.close(session, now);
    }
}

void claim_table::expire(clock::time_point now) {
    for (const auto key : sessions_.ended(now)) {
        end_session(key, false, now);
    }
}

void claim_table::on_time(clock::time_point now) {
    while (!timers_.empty() && timers_.begin()->first <= now) {
        const auto id = timers_.begin()->second;
        timers_.erase(timers_.begin());
        on_wake(claims_.at(id), now);
    }
}

clock::time_point claim_table::next_wake() const {
    return timers_.empty() ? never : timers_.begin()->first;
}

void claim_table::end(const failure& reason) {
    for (auto& [id, claim] : claims_) {
        fail(claim, reason);
        if (claim.lingers) {
            sessions_.abandon(claim.session);
        }
    }
    for (const auto& [id, claim] : watches_) {
        outbox_.emit(stop_watch{id});
    }
    claims_.clear();
    by_owner_.clear();
    by_name_.clear();
    watches_.clear();
    timers_.clear();
    answered_.clear();
}

}  // namespace holdfast::engines::nodes
