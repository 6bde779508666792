#include <core/waiters.hpp>

#include <algorithm>

namespace holdfast::core {

waiter& waiters::add(waiter_id id, const claim& request, place& site, clock::time_point now) {
    if (!latest_terms_ || *latest_terms_ != request.terms) {
        latest_terms_ = std::make_shared<const terms>(request.terms);
    }
    auto& call = waiters_.try_emplace(id, id, request, latest_terms_, site, now).first->second;
    if (request.deadline) {
        set_deadline(call, *request.deadline);
    }
    return call;
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

void waiters::fail(const waiter& call, const failure& reason, clock::time_point now) {
    out_.tell(event_kind::not_acquired, call.request.name, now - call.since, reason);
    out_.add(finish_acquire{call.id, reason, {}, {}, {}});
    remove(call.id);
}

void waiters::set_deadline(waiter& call, clock::time_point deadline) {
    deadlines_.arm(call.deadline, deadline);
}

waiter* waiters::take_due(clock::time_point now) {
    const auto* const due = deadlines_.pop_due(now);
    return due == nullptr ? nullptr : find(due->id);
}

std::vector<waiter_id> waiters::all() const {
    std::vector<waiter_id> ids;
    for (const auto& [id, call] : waiters_) {
        ids.push_back(id);
    }
    std::sort(ids.begin(), ids.end());
    return ids;
}

}  // namespace holdfast::core
