#include <joint_session.hpp>

#include <utility>

namespace holdfast::testing::sim {

void joint_process::later(clock::duration delay, std::function<void()> what) {
    stage_.after(delay, [this, what = std::move(what)] {
        if (state_.awake_at > stage_.now()) {
            later(state_.awake_at - stage_.now(), what);
        } else {
            what();
        }
    });
}

joint_session::joint_session(joint_process& process, quorum_member& store, network_quality quality,
                             const core::table_settings& settings, const owner_id& client)
    : process_{process},
      store_{std::make_unique<member_link>(process_.stage(), store, process_.state(), quality)},
      core_{*this, store_, settings, client},
      request_timeout_{settings.contention.request_timeout} {}

core::waiter_id joint_session::acquire(const core::claim& what, joint_caller& who) {
    core::waiter_id call{};
    core_.step([&](core::lock_table& table, clock::time_point now) {
        call = table.acquire(what, now);
        callers_[call] = &who;
    });
    return call;
}

std::shared_ptr<core::joint_question> joint_session::acquire_together(
    const std::vector<core::claim>& all, clock::time_point deadline, joint_caller& who) {
    const auto question = std::make_shared<core::joint_question>();
    core_.step([&](core::lock_table& table, clock::time_point now) {
        question->begin(table, all, now);
        for (const auto call : question->calls()) {
            callers_[call] = &who;
            together_[call] = question;
        }
    });
    core_.ask_together(question, {std::min(deadline, process_.now() + request_timeout_),
                                  engines::caller::must_not_block});
    return question;
}

void joint_session::cancel(core::waiter_id call) {
    core_.step([&](core::lock_table& table, clock::time_point now) {
        table.cancel(call, errc::cancelled, now);
    });
}

void joint_session::cancel(const core::joint_question& what) {
    core_.step([&](core::lock_table& table, clock::time_point now) { what.cancel(table, now); });
}

void joint_session::release(core::hold_id which) {
    core_.step(
        [&](core::lock_table& table, clock::time_point now) { table.release_hold(which, {}, now); });
}

bool joint_session::take(core::waiter_id whose, core::send_acquire& task, follow_up&) {
    const auto found = together_.find(whose);
    if (found == together_.end()) {
        return false;
    }
    found->second->keep(std::move(task));
    return true;
}

/// A thread is awake after a while, and looks whether the lock is still free.
void joint_session::perform(const core::offer_turn& what, follow_up&) {
    process_.later(process_.stage().between(0us, 200us), [this, id = what.id] {
        core_.step([&](core::lock_table& table, clock::time_point now) { table.take_turn(id, now); });
    });
}

void joint_session::perform(const core::finish_acquire& what, follow_up&) {
    together_.erase(what.id);
    const auto found = callers_.find(what.id);
    if (found == callers_.end()) {
        return;
    }
    auto* const who = found->second;
    if (what.error) {
        callers_.erase(found);
    }
    who->on_finished(*this, what);
}

void joint_session::perform(const core::finish_release& what, follow_up&) {
    if (const auto node = callers_.extract(what.id); !node.empty()) {
        node.mapped()->on_released(*this, what.id);
    }
}

void joint_session::perform(const core::set_validity& what, follow_up&) {
    if (const auto found = callers_.find(what.id); found != callers_.end()) {
        found->second->on_validity(*this, what.id, what.valid_until);
    }
}

void joint_session::perform(const core::tell_loss& what, follow_up&) {
    if (const auto found = callers_.find(what.id); found != callers_.end()) {
        found->second->on_loss(*this, what.id);
    }
}

void joint_session::arm(clock::time_point when) {
    // A moment late, as timers are: by then the clock shows it.
    const auto at = process_.truth(when) + 1us;
    process_.later(std::max(at - process_.stage().now(), clock::duration{}), [this, number = ++timer_] {
        if (number == timer_) {
            core_.on_time();
        }
    });
}

}  // namespace holdfast::testing::sim
