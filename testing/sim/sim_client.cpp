#include <sim_client.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::testing::sim {

sim_client::sim_client(const surroundings& world, std::uint8_t number)
    : world_{world}, number_{number} {
    const auto& how = world_.run.how;
    users_.resize(1 + world_.run.random.pick(how.threads));
    for (auto& who : users_) {
        who.rounds_left = how.rounds;
    }
}

void sim_client::start() {
    identity_ = identity_of(number_, life_);
    core::table_settings settings;
    settings.contention = world_.run.numbers.contention;
    settings.handover = world_.run.numbers.handover;
    settings.seed = world_.run.random.bits();
    auto connection = std::make_unique<sim_connection>(world_.run, world_.net, number_, life_);
    connection_ = connection.get();
    process_ = std::make_unique<process>(*this, std::move(connection), settings);
    connection_->attach(process_->core.callbacks());
    shutting_down_ = false;
    left_conversions_.clear();
    for (std::uint32_t i = 0; i < users_.size(); ++i) {
        schedule_user(i, world_.run.random.between(0us, world_.run.numbers.longest_work / 2));
    }
}

void sim_client::schedule_user(std::uint32_t index, clock::duration delay) {
    happening event;
    event.what = what_happens::user_acts;
    event.client = number_;
    event.life = life_;
    event.subject = index;
    event.detail = users_[index].turn;
    world_.run.after(delay, event);
}

void sim_client::schedule_check(what_happens what, std::uint32_t index, clock::time_point when) {
    happening event;
    event.what = what;
    event.client = number_;
    event.life = life_;
    event.subject = index;
    event.detail = users_[index].turn;
    world_.run.at(when + clock::duration{1}, event);
}

void sim_client::handle(const happening& event) {
    if (event.life != life_ || !running()) {
        return;
    }
    if (paused()) {
        backlog_.push_back(event);
        return;
    }
    process_event(event);
    check_after_step();
    if (running()) {
        check_quiet();
    }
}

void sim_client::process_event(const happening& event) {
    switch (event.what) {
        case what_happens::user_acts:
            if (event.detail == users_[event.subject].turn) {
                user_acts(event.subject);
            }
            return;
        case what_happens::user_cancels:
            user_cancels(event);
            return;
        case what_happens::user_is_awake:
            if (event.detail == users_[event.subject].turn) {
                process_->core.step([&](core::lock_table& table, clock::time_point now) {
                    table.take_turn(users_[event.subject].call, now);
                });
            }
            return;
        case what_happens::timer_fires:
            if (event.detail == timer_number_) {
                process_->core.on_time();
            }
            return;
        case what_happens::request_times_out:
            on_reply(world_.net.request_times_out(event.subject));
            return;
        case what_happens::reply_arrives:
            on_reply(world_.net.reply_arrives(event.subject));
            return;
        case what_happens::hint_arrives:
            connection_->on_hint(event.subject);
            return;
        case what_happens::turn_arrives:
            connection_->on_turn(world_.net.turn_number(event.subject));
            return;
        case what_happens::watch_is_active:
            connection_->on_watch_active(event.subject);
            return;
        case what_happens::holds_may_have_changed:
            connection_->on_holds_may_have_changed();
            return;
        default:
            return;
    }
}

void sim_client::on_reply(const message* what) {
    if (what != nullptr) {
        connection_->on_reply(*what);
        check_gone_is_told(*what);
    }
}

void sim_client::arm(clock::time_point when) {
    happening event;
    event.what = what_happens::timer_fires;
    event.client = number_;
    event.life = life_;
    event.detail = ++timer_number_;
    world_.run.at(when, event);
}

void sim_client::pause(clock::duration how_long) {
    if (paused() || !running()) {
        return;
    }
    world_.run.log.note("client ", +number_, ": is stopped");
    paused_until_ = world_.run.now() + how_long;
    happening event;
    event.what = what_happens::client_resumes;
    event.client = number_;
    event.life = life_;
    world_.run.at(paused_until_, event);
}

/// What came in meanwhile is there all at once: answers in their order, hints in theirs, timers and
/// users whenever their thread gets to run.
void sim_client::resume() {
    if (!running()) {
        return;
    }
    world_.run.log.note("client ", +number_, ": goes on");
    last_resume_ = world_.run.now();
    std::array<std::vector<happening>, 8> queues;
    for (const auto& event : std::exchange(backlog_, {})) {
        switch (event.what) {
            case what_happens::reply_arrives:
                queues[0].push_back(event);
                break;
            case what_happens::hint_arrives:
            case what_happens::turn_arrives:
            case what_happens::watch_is_active:
            case what_happens::holds_may_have_changed:
                queues[1].push_back(event);
                break;
            case what_happens::user_acts:
            case what_happens::user_cancels:
            case what_happens::user_is_awake:
                queues[4 + event.subject % 4].push_back(event);
                break;
            default:
                queues[2].push_back(event);
                break;
        }
    }
    std::vector<std::uint32_t> places;
    for (auto& queue : queues) {
        places.clear();
        for (std::size_t i = 0; i < queue.size(); ++i) {
            places.push_back(static_cast<std::uint32_t>(world_.run.random.bits() >> 32U));
        }
        std::sort(places.begin(), places.end());
        for (std::size_t i = 0; i < queue.size(); ++i) {
            queue[i].at = world_.run.now();
            queue[i].tie = places[i];
            world_.run.events.add(queue[i]);
        }
    }
}

void sim_client::crash(clock::duration how_long) {
    if (!running()) {
        return;
    }
    world_.run.log.note("client ", +number_, ": is killed");
    for (auto& who : users_) {
        if (who.hold.serial != 0) {
            world_.judge.hold_ends(who.hold.serial);
        }
        end_round(who);
    }
    process_.reset();
    backlog_.clear();
    paused_until_ = {};
    ++life_;
    world_.net.forget_client(number_);
    happening event;
    event.what = what_happens::client_starts;
    event.client = number_;
    event.life = life_;
    world_.run.after(how_long, event);
}

void sim_client::shut_down() {
    if (!running() || paused() || shutting_down_) {
        return;
    }
    world_.run.log.note("client ", +number_, ": is shut down");
    shutting_down_ = true;
    process_->core.step([](core::lock_table& table, clock::time_point now) { table.shut_down(now); });
    check_after_step();
    check_quiet();
}

bool sim_client::finished() const noexcept {
    return std::all_of(users_.begin(), users_.end(), [](const user& who) {
        return who.rounds_left == 0 && who.doing == user::state::idle;
    });
}

}  // namespace holdfast::testing::sim
