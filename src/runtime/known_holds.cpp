#include <runtime/known_holds.hpp>

#include <runtime/joint_hold.hpp>

namespace holdfast::detail {

void known_holds::extend(core::hold_id id, clock::time_point valid_until) {
    if (const auto found = holds_.find(id); found != holds_.end()) {
        found->second.itself->set_validity(valid_until);
    }
}

std::weak_ptr<hold> known_holds::lose(core::hold_id id, const failure& why) {
    const auto found = holds_.find(id);
    if (found == holds_.end()) {
        return {};
    }
    found->second.itself->set_loss(why.code, why.detail);
    return found->second.owned;
}

void known_holds::end(core::hold_id id, release_outcome outcome, const failure& why) {
    if (why.code == errc::revoked) {
        static_cast<void>(lose(id, why));
    }
    holds_.erase(id);
    if (const auto together = tallies_.extract(id); !together.empty()) {
        together.mapped().in->put(together.mapped().index, outcome);
    }
}

}  // namespace holdfast::detail
