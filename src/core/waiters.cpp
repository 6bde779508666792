#include <core/waiters.hpp>

#include <algorithm>

namespace holdfast::core {

waiter& waiters::add(waiter_id id, const claim& request, place& where, clock::time_point now) {
    if (!latest_terms_ || *latest_terms_ != request.terms) {
        latest_terms_ = std::make_shared<const terms>(request.terms);
    }
    auto& who = waiters_.try_emplace(id, id, request, latest_terms_, where, now).first->second;
    if (request.deadline) {
        set_deadline(who, *request.deadline);
    }
    return who;
}

waiter* waiters::find(waiter_id id) {
    const auto found = waiters_.find(id);
    return found == waiters_.end() ? nullptr : &found->second;
}

clock::time_point waiters::remove(waiter_id id) {
    auto node = waiters_.extract(id);
    deadlines_.disarm(node.mapped().deadline);
    return node.mapped().since;
}

void waiters::fail(const waiter& who, const failure& reason, clock::time_point now) {
    out_.tell(event_kind::not_acquired, who.request.name, now - who.since, reason);
    out_.add(finish_acquire{who.id, reason, {}, {}, {}});
    remove(who.id);
}

void waiters::set_deadline(waiter& who, clock::time_point deadline) {
    deadlines_.arm(who.deadline, deadline);
}

waiter* waiters::take_due(clock::time_point now) {
    const auto* const due = deadlines_.pop_due(now);
    return due == nullptr ? nullptr : find(due->id);
}

std::vector<waiter_id> waiters::all() const {
    std::vector<waiter_id> ids;
    for (const auto& [id, who] : waiters_) {
        ids.push_back(id);
    }
    std::sort(ids.begin(), ids.end());
    return ids;
}

}  // namespace holdfast::core
