#include <algorithm>
#include <common/call_order.hpp>
#include <utility>

namespace holdfast::engines {

call_order::ticket call_order::enter(line which) {
    const std::lock_guard lock{mutex_};
    queues_[which].push_back(++last_number_);
    return {last_number_, which, {}};
}

call_order::ticket call_order::enter(std::vector<line> which) {
    std::sort(which.begin(), which.end());
    which.erase(std::unique(which.begin(), which.end()), which.end());
    const std::lock_guard lock{mutex_};
    ++last_number_;
    for (const line each : which) {
        queues_[each].push_back(last_number_);
    }
    return {last_number_, std::nullopt, std::move(which)};
}

bool call_order::wait(const ticket& place, clock::time_point deadline) {
    std::unique_lock lock{mutex_};
    if (is_first(place)) {
        return true;
    }
    sleeper& here = sleepers_[place.number];
    const bool first = here.its_turn.wait_until(lock, deadline, [&] { return is_first(place); });
    sleepers_.erase(place.number);
    return first;
}

void call_order::leave(const ticket& place) {
    const std::lock_guard lock{mutex_};
    if (place.only) {
        std::erase(queues_[*place.only], place.number);
        wake_front(*place.only);
    }
    for (const line each : place.several) {
        std::erase(queues_[each], place.number);
        wake_front(each);
    }
}

/// It may have to wait in other lines yet; whoever is in front of it there wakes it again.
void call_order::wake_front(line which) {
    if (queues_[which].empty()) {
        return;
    }
    if (const auto found = sleepers_.find(queues_[which].front()); found != sleepers_.end()) {
        found->second.its_turn.notify_one();
    }
}

bool call_order::is_first(const ticket& place) const {
    const auto leads = [&](line each) { return queues_[each].front() == place.number; };
    return (!place.only || leads(*place.only)) &&
           std::all_of(place.several.begin(), place.several.end(), leads);
}

}  // namespace holdfast::engines
