#include <world.hpp>

#include <algorithm>
#include <array>

namespace holdfast::testing::sim {

namespace {

/// Far more than any run needs: reached only by going round in circles.
constexpr std::uint64_t most_events = 20'000;

/// Faults that strike at a moment of their own; the others concern single messages.
constexpr std::array timed_faults{
    feature::reset_connection, feature::spurious_hint,   feature::restart_store, feature::slow_store,
    feature::clock_forward,    feature::clock_backward,  feature::revoke,        feature::pause_client,
    feature::crash_client,     feature::shut_down_client};

}  // namespace

world::world(const plan& what, bool tracing)
    : run_{what, tracing}, judge_{run_}, store_{run_}, net_{run_, store_} {
    for (std::uint8_t number = 0; number < what.clients; ++number) {
        clients_.emplace_back(sim_client::surroundings{run_, net_, store_, judge_}, number);
    }
}

void world::run() {
    for (auto& client : clients_) {
        client.start();
    }
    plan_faults();
    while (!run_.log.failed() && !run_.events.empty()) {
        const auto event = run_.events.take();
        run_.log.hash({static_cast<std::uint64_t>(event.at.time_since_epoch().count()),
                       static_cast<std::uint64_t>(event.what), event.client, event.subject});
        dispatch(event);
        if (run_.events.taken() > most_events) {
            run_.log.violated("progress", "the run goes round in circles at ", relative(run_.now()));
        }
        if (run_.now() > run_.numbers.end_by) {
            break;
        }
    }
    if (!run_.log.failed()) {
        check_at_end();
    }
}

bool world::work_is_done() const {
    return std::all_of(clients_.begin(), clients_.end(),
                       [](const sim_client& one) { return one.finished(); });
}

void world::dispatch(const happening& event) {
    switch (event.what) {
        case what_happens::client_resumes:
            clients_[event.client].resume();
            return;
        case what_happens::client_starts:
            clients_[event.client].start();
            return;
        case what_happens::request_arrives:
            net_.request_arrives(event.subject);
            return;
        case what_happens::watch_arrives:
            net_.watch_arrives(event);
            return;
        case what_happens::store_is_up:
            net_.store_comes_up();
            return;
        case what_happens::store_is_fast:
            net_.slow_down({});
            return;
        case what_happens::fault_strikes:
            strike(static_cast<feature>(event.subject));
            return;
        case what_happens::faults_end:
            end_faults();
            return;
        case what_happens::check_call:
            clients_[event.client].check_call(event);
            return;
        case what_happens::check_release:
            clients_[event.client].check_release(event);
            return;
        case what_happens::check_validity:
            clients_[event.client].check_validity(event);
            return;
        case what_happens::check_wake_up:
            check_wake_up(event);
            return;
        case what_happens::check_readers:
            check_readers(event);
            return;
        default:
            // Spurious hints and the like may be meant for clients that this run does not have.
            if (event.client < clients_.size()) {
                clients_[event.client].handle(event);
            }
            return;
    }
}

void world::plan_faults() {
    for (const auto what : timed_faults) {
        if (run_.has(what)) {
            plan_fault(what);
        }
    }
    happening end;
    end.what = what_happens::faults_end;
    run_.at(run_.numbers.faults_until, end);
}

void world::plan_fault(feature what) {
    happening event;
    event.what = what_happens::fault_strikes;
    event.subject = static_cast<std::uint32_t>(what);
    const auto longest = what == feature::spurious_hint ? 10ms : 60ms;
    run_.after(run_.random.between(100us, longest), event);
}

void world::strike(feature what) {
    if (run_.random.calm() || work_is_done()) {
        return;
    }
    if (auto how = run_.random.fault(what, 1)) {
        strike_client(what, *how);
        strike_store(what, *how);
    }
    plan_fault(what);
}

void world::strike_client(feature what, dice::severity how) {
    const auto victim = how.pick(run_.how.clients);
    auto& client = clients_[victim];
    const auto ttl = run_.numbers.ttl;
    switch (what) {
        case feature::reset_connection:
            net_.reset(static_cast<std::uint8_t>(victim), how);
            return;
        case feature::spurious_hint:
            net_.send_hint(static_cast<std::uint8_t>(victim), how.pick(lock_count));
            return;
        case feature::pause_client:
            client.pause(how.pick(2) == 0 ? how.between(1ms, ttl) : how.between(ttl / 2, 3 * ttl));
            return;
        case feature::crash_client:
            client.crash(how.between(0ms, 20ms));
            return;
        case feature::shut_down_client:
            client.shut_down();
            return;
        default:
            return;
    }
}

void world::strike_store(feature what, dice::severity how) {
    const auto ttl = run_.numbers.ttl;
    happening later;
    switch (what) {
        case feature::restart_store: {
            const bool keeps = !run_.has(feature::lose_data) || how.pick(2) == 0;
            const auto how_long = how.between(100us, how.pick(2) == 0 ? ttl / 4 : 2 * ttl);
            net_.store_goes_down(how_long, how, keeps);
            return;
        }
        case feature::slow_store:
            net_.slow_down(how.between(500us, ttl / 4));
            later.what = what_happens::store_is_fast;
            run_.after(how.between(1ms, ttl), later);
            return;
        case feature::clock_forward:
            store_.step_clock(how.between(1ms, 2 * ttl));
            return;
        case feature::clock_backward:
            store_.step_clock(-how.between(1ms, 2 * ttl));
            return;
        case feature::revoke: {
            // One draw per statement: compilers differ in the order of arguments.
            const auto lock = how.pick(lock_count);
            if (store_.revoke(lock, how.pick(4))) {
                net_.notify();
                net_.tell_of_revocation();
            }
            return;
        }
        default:
            return;
    }
}

void world::end_faults() {
    run_.log.note("no more faults from here on");
    run_.random.calm_down();
    net_.slow_down({});
}

void world::check_wake_up(const happening& event) {
    const auto lock = static_cast<std::size_t>(event.subject);
    if (store_.freedom(lock) != event.detail || !store_.is_free(lock)) {
        return;
    }
    const auto freed_at = run_.now() - run_.numbers.wake_up_bound;
    for (std::size_t i = 0; i < clients_.size(); ++i) {
        if (clients_[i].waited_since(lock, freed_at)) {
            run_.log.violated("nobody oversleeps", "\"", lock_name(lock), "\" has been free since ",
                              relative(freed_at), ", client ", i,
                              " has waited for it since before, and "
                              "nobody has got it");
        }
    }
}

/// Where one reader has been let in, all are: twice the time, because they follow each other.
void world::check_readers(const happening& event) {
    const auto lock = static_cast<std::size_t>(event.subject);
    if (store_.closings(lock) != event.detail || !store_.lets_readers_in(lock)) {
        return;
    }
    const auto freed_at = run_.now() - 2 * run_.numbers.wake_up_bound;
    for (std::size_t i = 0; i < clients_.size(); ++i) {
        if (clients_[i].has_read_waiting(lock, freed_at)) {
            run_.log.violated("no reader oversleeps", "\"", lock_name(lock),
                              "\" has been open to readers since ", relative(freed_at), ", client ", i,
                              " has a reader who waits for it since before");
        }
    }
}

void world::check_at_end() {
    judge_.check_counters();
    for (auto& client : clients_) {
        client.check_at_end();
    }
}

}  // namespace holdfast::testing::sim
