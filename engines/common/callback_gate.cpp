#include <algorithm>
#include <common/callback_gate.hpp>

namespace holdfast::engines {

void callback_gate::pass(const std::function<void()>& callback) {
    const auto self = std::this_thread::get_id();
    {
        const std::lock_guard lock{mutex_};
        if (closed_ || !callback) {
            return;
        }
        inside_.push_back(self);
    }
    callback();
    const std::lock_guard lock{mutex_};
    inside_.erase(std::find(inside_.begin(), inside_.end(), self));
    left_.notify_all();
}

void callback_gate::close() {
    const auto self = std::this_thread::get_id();
    std::unique_lock lock{mutex_};
    closed_ = true;
    left_.wait(lock, [&] {
        return std::all_of(inside_.begin(), inside_.end(), [&](const auto& id) { return id == self; });
    });
}

}  // namespace holdfast::engines
