#include <runtime/notifier.hpp>

#include <utility>

namespace holdfast::detail {

notifier::notifier(std::shared_ptr<observer> events) : state_{std::make_shared<shared_state>()} {
    state_->events = std::move(events);
    thread_ = std::thread{[state = state_] { run(state); }};
}

notifier::~notifier() {
    {
        const std::lock_guard lock{state_->guard};
        state_->closing = true;
    }
    state_->changed.notify_one();
    if (thread_.get_id() == std::this_thread::get_id()) {
        thread_.detach();  // a callback destroyed the client: the thread ends when the callback returns
    } else {
        thread_.join();
    }
}

void notifier::tell_loss(std::shared_ptr<hold> whose) {
    post(std::move(whose));
}

void notifier::tell_observer(event what) {
    post(std::move(what));
}

void notifier::post(message what) {
    {
        const std::lock_guard lock{state_->guard};
        // Losses are never dropped: there is at most one per hold.
        if (std::holds_alternative<event>(what) && state_->queue.size() >= most_events) {
            ++state_->dropped;
            return;
        }
        state_->queue.push_back(std::move(what));
    }
    state_->changed.notify_one();
}

void notifier::run(const std::shared_ptr<shared_state>& state) {
    while (true) {
        message next;
        {
            std::unique_lock lock{state->guard};
            state->changed.wait(lock, [&] { return state->closing || !state->queue.empty(); });
            if (state->queue.empty()) {
                return;
            }
            next = std::move(state->queue.front());
            state->queue.pop_front();
        }
        if (auto* lost = std::get_if<std::shared_ptr<hold>>(&next)) {
            (*lost)->tell_loss();
        } else if (state->events) {
            state->events->on_event(std::get<event>(next));
        }
    }
}

}  // namespace holdfast::detail
