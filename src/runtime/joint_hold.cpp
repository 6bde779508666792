#include <runtime/joint_hold.hpp>

#include <runtime/session.hpp>

#include <utility>

namespace holdfast::detail {

joint_hold::joint_hold(std::vector<std::shared_ptr<hold>> members, clock::duration release_timeout)
    : members_{std::move(members)}, release_timeout_{release_timeout} {
    forwarded_.reserve(members_.size());
    for (const auto& one : members_) {
        forwarded_.push_back(
            std::make_unique<std::stop_callback<pass_on>>(one->lost(), pass_on{stop_}));
    }
}

joint_hold::~joint_hold() {
    forwarded_.clear();
    if (!members_.empty() && !members_.front()->given_back()) {
        members_.clear();
        stop_.request_stop();
    }
}

const hold* joint_hold::lost_member() const noexcept {
    for (const auto& one : members_) {
        if (one->loss() != errc{}) {
            return one.get();
        }
    }
    return nullptr;
}

std::stop_token joint_hold::lost() const noexcept {
    const auto* const gone = stop_.stop_requested() ? nullptr : lost_member();
    // One that is over by the clock answers with a token that is triggered already.
    return gone != nullptr ? gone->lost() : stop_.get_token();
}

void release_tally::put(std::size_t index, release_outcome outcome) {
    const std::lock_guard lock{guard_};
    outcomes_.at(index) = outcome;
    if (--missing_ == 0) {
        changed_.notify_all();
    }
}

std::vector<release_outcome> release_tally::wait(clock::time_point deadline) {
    std::unique_lock lock{guard_};
    const auto until = std::chrono::steady_clock::now() + (deadline - clock::now());
    changed_.wait_until(lock, until, [this] { return missing_ == 0; });
    std::vector<release_outcome> result;
    result.reserve(outcomes_.size());
    for (const auto& one : outcomes_) {
        result.push_back(one.value_or(release_outcome::unknown));
    }
    return result;
}

std::vector<release_outcome> release_together(const std::vector<std::shared_ptr<hold>>& which,
                                              clock::time_point deadline) noexcept {
    const auto answers = std::make_shared<release_tally>(which.size());
    // Members of one session are neighbours.
    for (std::size_t from = 0, to = 0; from < which.size(); from = to) {
        const auto& where = which[from]->from();
        while (to < which.size() && which[to]->from() == where) {
            ++to;
        }
        where->release_together(which, from, to, answers);
    }
    return answers->wait(deadline);
}

}  // namespace holdfast::detail
