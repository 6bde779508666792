#include <network.hpp>

#include <planted.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::testing::sim {

namespace {

[[nodiscard]] reply no_answer(const request& asked, errc why) {
    const failure error{why, {}};
    if (std::holds_alternative<engines::acquire_request>(asked)) {
        return engines::acquire_reply{engines::acquire_reply::outcome::failed, {}, 1, {}, error};
    }
    if (const auto* batch = std::get_if<renew_requests>(&asked)) {
        return renew_replies(batch->size(), {engines::renew_reply::outcome::failed, error});
    }
    return engines::release_reply{engines::release_reply::outcome::failed, 0, error};
}

}  // namespace

happening network::for_client(what_happens what, std::uint8_t client,
                              std::uint32_t subject) const noexcept {
    happening event;
    event.what = what;
    event.client = client;
    event.life = links_[client].life;
    event.subject = subject;
    return event;
}

void network::send(std::uint8_t client, std::uint16_t life, core::request_id id, request what,
                   clock::time_point deadline) {
    auto& on = links_[client];
    on.life = life;
    const auto index = static_cast<std::uint32_t>(messages_.size());
    auto& sent = messages_.emplace_back();
    sent.client = client;
    sent.life = life;
    sent.connection = on.connection;
    sent.id = id;
    sent.sent_at = run_.now();
    sent.asked = std::move(what);
    on.pending.push_back(index);
    if (down_) {
        sent.dropped = true;
        fail(index, delay(), errc::store_unavailable);
        return;
    }
    run_.at(std::max(deadline, run_.now()), for_client(what_happens::request_times_out, client, index));
    if (run_.random.fault(feature::lose_request, 12)) {
        sent.dropped = true;
        run_.log.note("network: request ", index, " of client ", +client, " is lost");
        return;
    }
    auto travel = delay() + slowness_;
    if (auto bad = run_.random.fault(feature::long_delay, 20)) {
        travel += bad->between(1ms, 2 * run_.numbers.ttl);
        run_.log.note("network: request ", index, " of client ", +client, " is held up");
    }
    on.last_request = std::max(on.last_request, run_.now() + travel);
    run_.at(on.last_request, for_client(what_happens::request_arrives, client, index));
}

void network::fail(std::uint32_t index, clock::duration after, errc why) {
    messages_[index].answer = no_answer(messages_[index].asked, why);
    run_.after(after, for_client(what_happens::reply_arrives, messages_[index].client, index));
}

void network::request_arrives(std::uint32_t index) {
    auto& what = messages_[index];
    if (what.dropped || down_) {
        return;
    }
    if (run_.now() < what.not_before) {
        run_.at(what.not_before, for_client(what_happens::request_arrives, what.client, index));
        return;
    }
    execute(what);
    auto& on = links_[what.client];
    if (what.connection != on.connection || what.life != on.life) {
        return;  // nobody is left to answer
    }
    if (run_.random.fault(feature::lose_reply, 12)) {
        run_.log.note("network: the answer to request ", index, " of client ", +what.client,
                      " is lost");
        return;
    }
    auto travel = delay();
    if (auto bad = run_.random.fault(feature::long_delay, 20)) {
        travel += bad->between(1ms, 2 * run_.numbers.ttl);
        run_.log.note("network: the answer to request ", index, " of client ", +what.client,
                      " is held up");
    }
    on.last_reply = std::max(on.last_reply, run_.now() + travel);
    run_.at(on.last_reply, for_client(what_happens::reply_arrives, what.client, index));
}

void network::execute(message& what) {
    what.executed = true;
    const bool too_late = what.answered || what.life != links_[what.client].life;
    reply answer;
    if (const auto* acquire = std::get_if<engines::acquire_request>(&what.asked)) {
        answer = store_.acquire(*acquire, what.sent_at, too_late);
    } else if (const auto* batch = std::get_if<renew_requests>(&what.asked)) {
        renew_replies replies;
        for (const auto& one : *batch) {
            replies.push_back(store_.renew(one, too_late));
        }
        answer = std::move(replies);
    } else {
        const auto& release = std::get<engines::release_request>(what.asked);
        if (run_.has(feature::refuse_release) && run_.random.fault(feature::refuse_release, 4)) {
            run_.log.note("store: refuses to release ", release.name, " of #", release.owner.low, ":",
                          release.owner.sequence);
            answer = no_answer(what.asked, errc::store_error);
        } else {
            auto released = store_.release(release);
            released.others_waiting = others_watching(lock_index(release.name), what.client);
            answer = std::move(released);
        }
    }
    if (!what.answered && what.connection == links_[what.client].connection) {
        what.answer = std::move(answer);
    }
    notify();
}

const message* network::deliver(std::uint32_t index) {
    auto& what = messages_[index];
    if (what.answered || what.life != links_[what.client].life) {
        return nullptr;
    }
    what.answered = true;
    std::erase(links_[what.client].pending, index);
    return &what;
}

const message* network::reply_arrives(std::uint32_t index) {
    return deliver(index);
}

const message* network::request_times_out(std::uint32_t index) {
    const auto* what = deliver(index);
    if (what != nullptr) {
        messages_[index].answer = no_answer(what->asked, errc::outcome_unknown);
    }
    return what;
}

void network::reset(std::uint8_t client, dice::severity how) {
    auto& on = links_[client];
    run_.log.note("network: the connection of client ", +client, " breaks");
    // The store has read up to some point what was sent; the rest is gone.
    const bool late = run_.has(feature::late_request);
    const auto held_up = how.between(0ms, 2 * run_.numbers.ttl);
    auto reach = late ? how.pick(static_cast<std::uint32_t>(on.pending.size()) + 1) : 0U;
    auto place = 0;
    for (const auto index : on.pending) {
        auto& what = messages_[index];
        ++place;
        if (!what.executed && !what.dropped) {
            what.dropped = reach == 0;
            what.not_before = run_.now() + held_up + place * 1us;
            reach -= reach > 0 ? 1 : 0;
        }
        if (what.connection == on.connection) {
            fail(index, 0us, errc::outcome_unknown);
        }
    }
    ++on.connection;
    on.last_request = on.last_reply = run_.now();
    on.watched = {};
    for (std::uint32_t lock = 0; lock < lock_count; ++lock) {
        if (on.wanted[lock] && !down_) {
            run_.after(delay(), for_client(what_happens::watch_arrives, client, lock));
        }
    }
}

void network::store_goes_down(clock::duration how_long, dice::severity how, bool keeps_data) {
    if (std::exchange(down_, true)) {
        return;
    }
    run_.log.note("store: goes down");
    for (std::uint8_t client = 0; client < most_clients; ++client) {
        reset(client, how);
    }
    if (!keeps_data) {
        store_.lose_data();
    }
    run_.after(how_long, for_client(what_happens::store_is_up, 0, 0));
}

void network::store_comes_up() {
    run_.log.note("store: is up");
    down_ = false;
    for (std::uint8_t client = 0; client < most_clients; ++client) {
        for (std::uint32_t lock = 0; lock < lock_count; ++lock) {
            if (links_[client].wanted[lock]) {
                run_.after(delay(), for_client(what_happens::watch_arrives, client, lock));
            }
        }
    }
}

bool network::set_watch(std::uint8_t client, std::uint16_t life, std::size_t lock, bool wanted) {
    auto& on = links_[client];
    on.life = life;
    on.wanted[lock] = wanted;
    if (!wanted) {
        on.watched[lock] = false;
    } else if (!down_ && run_.random.one_in(3)) {
        on.watched[lock] = true;
    } else if (!down_) {
        run_.after(delay(),
                   for_client(what_happens::watch_arrives, client, static_cast<std::uint32_t>(lock)));
    }
    return on.watched[lock];
}

void network::watch_arrives(const happening& event) {
    auto& on = links_[event.client];
    if (down_ || event.life != on.life || !on.wanted[event.subject]) {
        return;
    }
    on.watched[event.subject] = true;
    run_.after(delay(), for_client(what_happens::watch_is_active, event.client, event.subject));
}

void network::forget_client(std::uint8_t client) {
    auto& on = links_[client];
    ++on.life;
    ++on.connection;
    on.wanted = on.watched = {};
    on.pending.clear();
}

std::uint32_t network::others_watching(std::size_t lock, std::uint8_t client) const noexcept {
    std::uint32_t count = 0;
    for (std::uint8_t other = 0; other < most_clients; ++other) {
        count += other != client && links_[other].watched[lock] ? 1 : 0;
    }
    return count;
}

bool network::watched_by(std::uint8_t client) const noexcept {
    const auto& on = links_[client];
    return std::any_of(on.wanted.begin(), on.wanted.end(), [](bool wanted) { return wanted; });
}

/// One in line is told on the connection that hints take, in their order.
void network::tell_turns() {
    for (auto& told : store_.take_turns()) {
        const auto client = client_of(told.owner);
        if (run_.random.fault(feature::lose_hint, 4)) {
            continue;
        }
        auto travel = run_.random.between(20us, run_.numbers.longest_hint_delay);
        if (auto bad = run_.random.fault(feature::long_delay, 3)) {
            // Beyond that it would not be believed anyway.
            travel += bad->between(1ms, run_.numbers.ttl / 3);
            run_.log.note("network: client ", +client, " hears late that it is the turn of ",
                          told.owner.sequence);
        }
        auto& on = links_[client];
        on.last_hint = std::max(on.last_hint, run_.now() + travel);
        run_.at(on.last_hint, for_client(what_happens::turn_arrives, client,
                                         static_cast<std::uint32_t>(turns_.size())));
        turns_.push_back(std::move(told));
    }
}

void network::notify() {
    tell_turns();
    for (const auto& name : store_.take_hints()) {
        const auto lock = lock_index(name);
        for (std::uint8_t client = 0; client < most_clients; ++client) {
            if (links_[client].watched[lock] && !run_.random.fault(feature::lose_hint, 4) &&
                !core::planted(core::bug::store_forgets_to_notify)) {
                send_hint(client, lock);
            }
        }
        // Who is first in a line may just be leaving it, and so may the next.
        const bool in_line = lock == perhaps_fair && run_.has(feature::fair);
        if (run_.numbers.wake_up_bound > 0us && store_.is_free(lock) && !in_line) {
            happening check;
            check.what = what_happens::check_wake_up;
            check.subject = static_cast<std::uint32_t>(lock);
            check.detail = store_.freedom(lock);
            run_.after(run_.numbers.wake_up_bound, check);
            check.what = what_happens::check_readers;
            check.detail = store_.closings(lock);
            run_.after(2 * run_.numbers.wake_up_bound, check);
        }
    }
}

void network::send_hint(std::uint8_t client, std::size_t lock) {
    auto& on = links_[client];
    on.last_hint =
        std::max(on.last_hint, run_.now() + run_.random.between(20us, run_.numbers.longest_hint_delay));
    run_.at(on.last_hint,
            for_client(what_happens::hint_arrives, client, static_cast<std::uint32_t>(lock)));
}

void network::tell_of_revocation() {
    for (std::uint8_t client = 0; client < most_clients; ++client) {
        if (!run_.random.fault(feature::lose_hint, 4)) {
            run_.after(run_.random.between(20us, run_.numbers.longest_hint_delay),
                       for_client(what_happens::holds_may_have_changed, client, 0));
        }
    }
}

}  // namespace holdfast::testing::sim
