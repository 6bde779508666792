#include <core/joint_acquisition.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace holdfast::core {

std::vector<std::size_t> joint_order(const std::vector<joint_place>& all) {
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t left, std::size_t right) { return all[left] < all[right]; });
    order.erase(
        std::unique(order.begin(), order.end(),
                    [&](std::size_t left, std::size_t right) { return all[left] == all[right]; }),
        order.end());
    return order;
}

joint_acquisition::joint_acquisition(std::size_t count, const patience& how_long,
                                     std::function<std::size_t(std::size_t first)> together)
    : how_long_{how_long}, together_{std::move(together)}, held_(count) {}

clock::time_point joint_acquisition::answer_by(clock::time_point now) const noexcept {
    return how_long_.deadline ? std::max<clock::time_point>(*how_long_.deadline, now + last_moment)
                              : clock::time_point::max();
}

joint_acquisition::move joint_acquisition::next(clock::time_point now) {
    if (state_ == state::going_on && taken_ < held_.size() && cancelled_) {
        end();
    }
    if (auto back = held_from(state_ == state::going_on ? taken_ : 0); !back.empty()) {
        return give_back(std::move(back));
    }
    if (state_ == state::ending) {
        return {move::kind::end, {trouble_with_}, trouble_};
    }
    if (state_ == state::starting_over) {
        state_ = state::going_on;
        taken_ = alone_until_ = 0;
        return next(now);
    }
    return taken_ == held_.size() ? move{move::kind::check, {}, {}} : ask(now);
}

joint_acquisition::move joint_acquisition::ask(clock::time_point now) {
    const auto together = taken_ < alone_until_ ? 1 : together_(taken_);
    if (taken_ > 0 && time_is_up(now)) {
        end();
        return next(now);
    }
    asked_.resize(together);
    std::iota(asked_.begin(), asked_.end(), taken_);
    return {together > 1 ? move::kind::ask_together : move::kind::wait_for, asked_, {}};
}

void joint_acquisition::on_answered(const failure& reason, std::size_t busy) {
    if (!reason) {
        taken_ += asked_.size();
        return;
    }
    const bool in_the_way = reason.code == errc::busy;
    if (reason.code == errc::cancelled || (in_the_way && (!how_long_.wait || asked_.size() == 1))) {
        end();
        return;
    }
    const bool may_pass =
        reason.code == errc::store_unavailable || reason.code == errc::outcome_unknown;
    if (!in_the_way && (asked_.size() == 1 || !how_long_.wait || !may_pass)) {
        end(reason, taken_);
        return;
    }
    // A store that does not answer is waited for as by everybody.
    alone_until_ = taken_ + (in_the_way ? busy : 0) + 1;
}

void joint_acquisition::on_lost(std::size_t index, failure reason, clock::time_point now) {
    if (!how_long_.wait || time_is_up(now)) {
        end(std::move(reason), index);
    } else {
        // A lease without renewal, or one that was revoked, ended while the last was waited for.
        state_ = state::starting_over;
    }
}

void joint_acquisition::end(failure reason, std::size_t index) {
    state_ = state::ending;
    trouble_ = std::move(reason);
    trouble_with_ = index;
}

std::vector<std::size_t> joint_acquisition::held_from(std::size_t first) const {
    std::vector<std::size_t> result;
    for (auto index = first; index < held_.size(); ++index) {
        if (held_[index]) {
            result.push_back(index);
        }
    }
    return result;
}

joint_acquisition::move joint_acquisition::give_back(std::vector<std::size_t> indices) {
    asked_ = indices;
    return {move::kind::give_back, std::move(indices), {}};
}

void joint_acquisition::on_given_back() {
    for (const auto one : asked_) {
        held_[one] = false;
    }
}

}  // namespace holdfast::core
