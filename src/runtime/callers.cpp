#include <runtime/callers.hpp>

#include <runtime/session.hpp>

namespace holdfast::detail {

void callers::follow_up::wake(const std::shared_ptr<call>& caller) {
    if (caller == self) {
        return;  // awake
    }
    if (!first_to_wake) {
        first_to_wake = caller;
    } else {
        others_to_wake.push_back(caller);  // a hand-over wakes the next, and the one after it
    }
}

void callers::start(timer_thread& timer, notifier& notifier) noexcept {
    timer_ = &timer;
    notifier_ = &notifier;
}

void callers::stop() noexcept {
    timer_ = nullptr;
    notifier_ = nullptr;
}

void callers::arm(clock::time_point when) noexcept {
    if (timer_ != nullptr) {
        timer_->arm(when);
    }
}

std::vector<store_task> callers::take_tasks(call& caller) {
    caller.has_tasks.store(false, std::memory_order_relaxed);
    return std::exchange(caller.tasks, {});
}

std::shared_ptr<call> callers::find(core::waiter_id id, const follow_up& after) const {
    if (after.is_self(id)) {
        return after.self;
    }
    if (const auto found = calls_.find(id); found != calls_.end()) {
        return found->second;
    }
    const auto found = conversions_.find(id);
    return found == conversions_.end() ? nullptr : found->second;
}

std::shared_ptr<call> callers::leave(call_map& from, core::waiter_id id, const follow_up& after) {
    if (after.is_self(id)) {
        return after.self;
    }
    auto node = from.extract(id);
    return node.empty() ? nullptr : std::move(node.mapped());
}

/// The caller has its answer. What it did not get to is done by whoever is here.
void callers::finish(const std::shared_ptr<call>& caller, follow_up& after) {
    for (auto& task : caller->tasks) {
        after.tasks.push_back(std::move(task));
    }
    caller->tasks.clear();
    caller->done.store(true, std::memory_order_release);
    after.wake(caller);
}

void callers::perform(core::stand_by& soon, follow_up& after) {
    if (const auto caller = find(soon.id, after)) {
        caller->standing_by.store(true, std::memory_order_release);
        after.wake(caller);
    }
}

void callers::perform(core::offer_turn& offer, follow_up& after) {
    if (const auto caller = find(offer.id, after)) {
        caller->offered.store(true, std::memory_order_release);
        after.wake(caller);
    }
}

void callers::perform(core::finish_acquire& got, follow_up& after) {
    const auto caller = leave(calls_, got.id, after);
    if (!caller) {
        return;
    }
    caller->error = std::move(got.error);
    if (!caller->error) {
        caller->taken = std::make_shared<hold>(
            owner_.shared_from_this(), got.id, std::move(got.name), got.owner.sequence, got.token,
            got.valid_until, got.jeopardy, got.longest, caller->asked->kind, caller->asked->mode);
        holds_.add(got.id, caller->taken);
    }
    finish(caller, after);
}

void callers::perform(core::finish_release& gone, follow_up& after) {
    holds_.end(gone.id, gone.outcome, gone.error);
    if (const auto caller = leave(calls_, gone.id, after)) {
        caller->outcome = gone.outcome;
        finish(caller, after);
    }
}

void callers::perform(core::finish_convert& changed, follow_up& after) {
    if (const auto caller = leave(conversions_, changed.id, after)) {
        caller->error = std::move(changed.error);
        caller->token = changed.token;
        finish(caller, after);
    }
}

void callers::perform(core::set_validity& valid, follow_up&) {
    holds_.extend(valid.id, valid.valid_until);
}

void callers::perform(core::tell_loss& loss, follow_up&) {
    const auto lost = holds_.lose(loss.id, loss.why);
    if (auto owned = notifier_ != nullptr ? lost.lock() : nullptr) {
        notifier_->tell_loss(std::move(owned));
    }
}

void callers::perform(core::tell_observer& seen, follow_up&) {
    if (notifier_ != nullptr) {
        notifier_->tell_observer(std::move(seen.news));
    }
}

void callers::end_step(follow_up& after) {
    if (after.self && !after.self->done.load(std::memory_order_relaxed)) {
        enter(after.self);
    }
}

void callers::wake(const follow_up& after) noexcept {
    if (after.first_to_wake) {
        after.first_to_wake->spot.unpark();
    }
    for (const auto& one : after.others_to_wake) {
        one->spot.unpark();
    }
}

}  // namespace holdfast::detail
