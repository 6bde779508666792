#include <core/local_queue.hpp>

#include <algorithm>

namespace holdfast::core {

bool local_queue::remove(waiter_id id) {
    const auto found = std::find(waiting_.begin(), waiting_.end(), id);
    if (found == waiting_.end()) {
        return false;
    }
    if (found == waiting_.begin()) {
        overtaken_ = 0;
    }
    waiting_.erase(found);
    return true;
}

waiter_id local_queue::pop() {
    const auto id = waiting_.front();
    waiting_.erase(waiting_.begin());
    overtaken_ = 0;
    return id;
}

std::uint32_t local_queue::tokens_wanted(const handover_limits& limits) const noexcept {
    const auto others = waiting_.empty() ? 0 : waiting_.size() - 1;
    // Twice as many as wait now: those who were served will be back.
    return 1 + static_cast<std::uint32_t>(std::min<std::size_t>(others * 2, limits.count));
}

void local_queue::begin(fencing_token first, std::uint32_t count, clock::time_point now) {
    first_ = first;
    reserved_ = count;
    used_ = 0;
    since_ = now;
}

fencing_token local_queue::next_token() {
    return {first_.value + used_++};
}

std::optional<waiter_id> local_queue::soon_after_hand_over() const noexcept {
    if (!brief_ || waiting_.empty()) {
        return std::nullopt;
    }
    return waiting_.front();
}

bool local_queue::soon_on_arrival() const noexcept {
    return brief_ && waiting_.size() == 1;
}

bool local_queue::may_hand_over(const handover_limits& limits, clock::time_point now) const noexcept {
    return !waiting_.empty() && token_left() && used_ <= limits.count && now - since_ < limits.time;
}

}  // namespace holdfast::core
