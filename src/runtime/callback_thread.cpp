#include <runtime/callback_thread.hpp>

#include <mutex>
#include <utility>

namespace holdfast::detail {

callback_thread::callback_thread(std::size_t most, std::atomic<std::uint64_t>* dropped)
    : most_{most},
      dropped_{dropped},
      state_{std::make_shared<shared_state>()},
      thread_{[state = state_] { run(state); }} {}

callback_thread::~callback_thread() {
    std::unique_lock lock{state_->guard};
    state_->closing = true;
    state_->changed.notify_one();
    const bool called_back = thread_.get_id() == threading::this_thread::get_id();
    if (!called_back && state_->ended.wait_for(lock, patience, [this] { return state_->over; })) {
        lock.unlock();
        thread_.join();
        return;
    }
    if (most_ != unlimited) {
        count_dropped(state_->queue.size());
        state_->queue.clear();
    }
    thread_.detach();
}

void callback_thread::post(std::function<void()> callback) {
    const auto state = state_;  // the callback may end us before we have woken its thread
    {
        const std::lock_guard lock{state->guard};
        if (most_ != unlimited && state->queue.size() >= most_) {
            count_dropped(1);
            return;
        }
        state->queue.push_back(std::move(callback));
    }
    state->changed.notify_one();
}

void callback_thread::count_dropped(std::size_t more) {
    if (dropped_ != nullptr) {
        dropped_->fetch_add(more, std::memory_order_relaxed);
    }
}

void callback_thread::run(const std::shared_ptr<shared_state>& state) {
    std::unique_lock lock{state->guard};
    while (true) {
        state->changed.wait(lock, [&] { return state->closing || !state->queue.empty(); });
        if (state->queue.empty()) {
            state->over = true;
            state->ended.notify_one();
            return;
        }
        auto next = std::move(state->queue.front());
        state->queue.pop_front();
        lock.unlock();
        next();
        next = nullptr;
        lock.lock();
    }
}

}  // namespace holdfast::detail
