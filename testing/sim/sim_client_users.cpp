#include <sim_client.hpp>

namespace holdfast::testing::sim {

void sim_client::user_acts(std::uint32_t index) {
    switch (users_[index].doing) {
        case user::state::idle:
            begin_round(index);
            return;
        case user::state::holding:
            work(index);
            return;
        case user::state::converting:
            left_conversions_.push_back(users_[index].call);
            let_go(index);
            return;
        case user::state::waiting:
        case user::state::releasing:
            return;
    }
}

void sim_client::begin_round(std::uint32_t index) {
    auto& who = users_[index];
    if (who.rounds_left == 0) {
        return;
    }
    auto& run = world_.run;
    const auto now = run.now();
    who.lock = draw_lock(run);
    who.asked = draw_claim(run, who.lock);
    who.since = now;
    who.answer_by.reset();
    who.began_after = world_.judge.largest_completed(who.lock);
    who.doing = user::state::waiting;
    run.log.note("client ", +number_, " user ", index, ": wants ", who.asked.name,
                 who.asked.mode == claim_mode::shared ? " shared" : "",
                 !who.asked.wait      ? ", asks once"
                 : who.asked.deadline ? ", waits until " + relative(*who.asked.deadline)
                                      : std::string{});
    if (who.asked.wait && who.asked.deadline) {
        schedule_check(what_happens::check_call, index, *who.asked.deadline);
    }
    const auto& numbers = run.numbers;
    // Unless grants can come too late to be of use, one request decides.
    if (!who.asked.wait && !run.has(feature::pause_client) &&
        numbers.contention.request_timeout < numbers.ttl - who.asked.terms.margin) {
        schedule_check(what_happens::check_call, index, now + numbers.contention.request_timeout);
    }
    if (run.has(feature::cancel) && run.random.one_in(3)) {
        happening event;
        event.what = what_happens::user_cancels;
        event.client = number_;
        event.life = life_;
        event.subject = index;
        event.detail = who.turn;
        const bool soon = run.random.one_in(2);
        run.after(
            run.random.between(0us, soon ? 2 * numbers.longest_delay : clock::duration{numbers.ttl}),
            event);
    }
    process_->core.step([&](core::lock_table& table, clock::time_point at) {
        who.call = table.acquire(who.asked, at);
    });
}

void sim_client::user_cancels(const happening& event) {
    auto& who = users_[event.subject];
    if (event.detail != who.turn || who.doing != user::state::waiting) {
        return;
    }
    world_.run.log.note("client ", +number_, " user ", event.subject, ": gives up waiting");
    process_->core.step([&](core::lock_table& table, clock::time_point now) {
        table.cancel(who.call, errc::cancelled, now);
    });
    if (event.detail == who.turn && who.doing == user::state::waiting) {
        world_.run.log.violated("calls end in time", "client ", +number_, " user ", event.subject,
                                " gave up, and its call goes on");
    }
}

void sim_client::work(std::uint32_t index) {
    auto& who = users_[index];
    const bool valid = !who.lost && world_.run.now() < who.hold.valid_until;
    if (valid && who.may_convert) {
        convert(index);
        return;
    }
    if ((who.careful && !valid) || who.writes_left == 0) {
        let_go(index);
        return;
    }
    write_once(who);
    schedule_user(index, world_.run.random.between(0us, world_.run.numbers.longest_work / 4));
}

void sim_client::write_once(user& who) {
    auto& judge = world_.judge;
    if (who.hold.mode != claim_mode::exclusive) {
        --who.writes_left;
        return;
    }
    if (who.seen) {
        static_cast<void>(judge.write(who.hold, *who.seen));
        who.seen.reset();
        --who.writes_left;
        return;
    }
    if (world_.run.random.one_in(3)) {
        static_cast<void>(judge.increment(who.hold));
        --who.writes_left;
        return;
    }
    who.seen = judge.read(who.hold);
    if (!who.seen) {
        who.writes_left = 0;  // the resource has seen a later holder
    }
}

void sim_client::convert(std::uint32_t index) {
    auto& who = users_[index];
    who.may_convert = false;
    who.doing = user::state::converting;
    who.converting_to = claim_mode::exclusive;
    if (who.hold.mode == claim_mode::exclusive) {
        // Whatever comes of it, the user no longer counts on being alone.
        who.converting_to = who.hold.mode = claim_mode::shared;
        who.seen.reset();
        if (!who.lost) {
            world_.judge.hold_changes_mode(who.hold.serial, claim_mode::shared, who.hold.token);
        }
    }
    world_.run.log.note("client ", +number_, " user ", index, ": converts ", who.asked.name,
                        who.converting_to == claim_mode::shared ? " to shared" : " to exclusive");
    process_->core.step([&](core::lock_table& table, clock::time_point now) {
        table.convert(who.call, who.converting_to, now);
    });
    if (who.doing == user::state::converting && world_.run.has(feature::impatient) &&
        world_.run.random.one_in(2)) {
        schedule_user(index, world_.run.random.between(0us, 2 * world_.run.numbers.longest_delay));
    }
}

void sim_client::let_go(std::uint32_t index) {
    auto& who = users_[index];
    auto& run = world_.run;
    if (!who.lost) {
        world_.judge.hold_ends(who.hold.serial);
    }
    who.doing = user::state::releasing;
    const bool lingers = run.has(feature::linger) && run.random.one_in(6);
    const auto linger = std::chrono::milliseconds{lingers ? 1 + run.random.pick(10) : 0};
    schedule_check(what_happens::check_release, index, run.now() + who.asked.terms.release_timeout);
    run.log.note("client ", +number_, " user ", index, ": lets go of ", who.asked.name);
    process_->core.step([&](core::lock_table& table, clock::time_point now) {
        table.release_hold(who.call, linger, now);
    });
}

void sim_client::end_round(user& who) {
    if (who.doing != user::state::idle) {
        who.doing = user::state::idle;
        --who.rounds_left;
    }
    who.call = 0;
    who.hold = {};
    ++who.turn;
}

}  // namespace holdfast::testing::sim
