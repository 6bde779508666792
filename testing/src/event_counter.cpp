#include <condition_variable>
#include <mutex>

#include <holdfast/testing/event_counter.hpp>

namespace holdfast::testing {

struct event_counter::state {
    std::mutex guard;
    std::condition_variable changed;
    std::size_t count{};
};

event_counter::event_counter() : state_{std::make_shared<state>()} {}

std::function<void()> event_counter::callback() const {
    return [shared = state_] {
        const std::lock_guard lock{shared->guard};
        ++shared->count;
        shared->changed.notify_all();
    };
}

std::size_t event_counter::count() const {
    const std::lock_guard lock{state_->guard};
    return state_->count;
}

bool event_counter::wait_for(std::size_t wanted, std::chrono::milliseconds limit) const {
    std::unique_lock lock{state_->guard};
    return state_->changed.wait_for(lock, limit, [&] { return state_->count >= wanted; });
}

}  // namespace holdfast::testing
