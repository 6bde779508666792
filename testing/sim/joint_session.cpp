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
      link_{process.stage(), store, process.state(), quality},
      address_{store.id()},
      request_timeout_{settings.contention.request_timeout},
      table_{settings, client} {}

core::waiter_id joint_session::acquire(const core::claim& what, joint_caller& who) {
    const auto call = table_.acquire(what, process_.now());
    callers_[call] = &who;
    pump();
    return call;
}

std::shared_ptr<core::joint_question> joint_session::acquire_together(
    const std::vector<core::claim>& all, clock::time_point deadline, joint_caller& who) {
    const auto question = std::make_shared<core::joint_question>();
    question->begin(table_, all, process_.now());
    for (const auto call : question->calls()) {
        callers_[call] = &who;
        together_[call] = question;
    }
    pump();
    if (!question->complete()) {
        question->refuse(table_, process_.now());
        pump();
        return question;
    }
    link_.acquire_all(
        question->requests(),
        {std::min(deadline, process_.now() + request_timeout_), engines::caller::must_not_block},
        [this, question](const engines::acquire_all_reply& reply) {
            question->answer(table_, reply, process_.now());
            pump();
        });
    return question;
}

void joint_session::cancel(core::waiter_id call) {
    table_.cancel(call, errc::cancelled, process_.now());
    pump();
}

void joint_session::cancel(const core::joint_question& what) {
    what.cancel(table_, process_.now());
    pump();
}

void joint_session::release(core::hold_id which) {
    table_.release_hold(which, {}, process_.now());
    pump();
}

void joint_session::pump() {
    for (auto& action : table_.take_actions()) {
        std::visit([this](auto& what) { perform(what); }, action);
    }
    arm_timer();
}

void joint_session::perform(core::send_acquire& what) {
    if (const auto found = together_.find(what.on_behalf_of); found != together_.end()) {
        found->second->keep(std::move(what));
        return;
    }
    link_.acquire(std::move(what.request), {what.deadline, engines::caller::must_not_block},
                  [this, id = what.id](const engines::acquire_reply& reply) {
                      table_.on_acquire_reply(id, reply, process_.now());
                      pump();
                  });
}

void joint_session::perform(core::send_renew& what) {
    link_.renew(std::move(what.requests), {what.deadline, engines::caller::must_not_block},
                [this, id = what.id](const std::vector<engines::renew_reply>& replies) {
                    table_.on_renew_replies(id, replies, process_.now());
                    pump();
                });
}

void joint_session::perform(core::send_release& what) {
    link_.release(std::move(what.request), {what.deadline, engines::caller::must_not_block},
                  [this, id = what.id](const engines::release_reply& reply) {
                      table_.on_release_reply(id, reply, process_.now());
                      pump();
                  });
}

void joint_session::perform(const core::update_watch& what) {
    if (!table_.wants_watch(what.name)) {
        watches_.erase(what.name);
        return;
    }
    watches_[what.name] = link_.watch(what.name, what.kind, [this, name = what.name] {
        table_.on_hint(name, process_.now());
        pump();
    });
    process_.later(process_.stage().between(0us, 100us), [this, name = what.name] {
        table_.on_watch_active(name, process_.now());
        pump();
    });
}

/// A thread is awake after a while, and looks whether the lock is still free.
void joint_session::perform(const core::offer_turn& what) {
    process_.later(process_.stage().between(0us, 200us), [this, id = what.id] {
        table_.take_turn(id, process_.now());
        pump();
    });
}

void joint_session::perform(const core::finish_acquire& what) {
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

void joint_session::perform(const core::finish_release& what) {
    if (const auto node = callers_.extract(what.id); !node.empty()) {
        node.mapped()->on_released(*this, what.id);
    }
}

void joint_session::perform(const core::set_validity& what) {
    if (const auto found = callers_.find(what.id); found != callers_.end()) {
        found->second->on_validity(*this, what.id, what.valid_until);
    }
}

void joint_session::perform(const core::tell_loss& what) {
    if (const auto found = callers_.find(what.id); found != callers_.end()) {
        found->second->on_loss(*this, what.id);
    }
}

void joint_session::arm_timer() {
    const auto next = table_.wake_at();
    if (next == armed_for_) {
        return;
    }
    armed_for_ = next;
    const auto number = ++timer_;
    if (next == clock::time_point::max()) {
        return;
    }
    // A moment late, as timers are: by then the clock shows it.
    const auto when = process_.truth(next) + 1us;
    process_.later(std::max(when - process_.stage().now(), clock::duration{}), [this, number] {
        if (number == timer_) {
            armed_for_ = clock::time_point::max();
            table_.on_time(process_.now());
            pump();
        }
    });
}

}  // namespace holdfast::testing::sim
