#include <core/asking_turns.hpp>

#include <algorithm>

namespace holdfast::core {

void asking_turns::add_newcomer(waiter_id id, const claim& request) {
    newcomers_.push_back({id, request.mode, request.permits, request.limit});
}

void asking_turns::remove_newcomer(waiter_id id) {
    std::erase_if(newcomers_, [&](const newcomer& each) { return each.id == id; });
}

std::vector<waiter_id> asking_turns::newcomers() const {
    std::vector<waiter_id> ids;
    for (const auto& each : newcomers_) {
        ids.push_back(each.id);
    }
    return ids;
}

void asking_turns::add(contest& contender) {
    contests_.push_back(&contender);
}

void asking_turns::remove(const contest& contender) {
    std::erase(contests_, &contender);
}

void asking_turns::widen(claim_mode mode) noexcept {
    window_ = mode == claim_mode::shared || window_ > unlimited / 2 ? unlimited : 2 * window_;
}

std::optional<waiter_id> asking_turns::take_next(std::uint32_t most_asking) {
    const auto next = std::find_if(newcomers_.begin(), newcomers_.end(),
                                   [this](const newcomer& each) { return !is_refused(each); });
    if (next == newcomers_.end() || !window_open(most_asking)) {
        return std::nullopt;
    }
    const auto id = next->id;
    newcomers_.erase(next);
    return id;
}

std::optional<waiter_id> asking_turns::take_smaller(std::uint32_t permits, std::uint32_t most_asking) {
    const auto next = std::find_if(newcomers_.begin(), newcomers_.end(), [&](const newcomer& each) {
        return each.permits < permits && !is_refused(each);
    });
    if (next == newcomers_.end() || count_asking() >= most_asking) {
        return std::nullopt;
    }
    const auto id = next->id;
    newcomers_.erase(next);
    return id;
}

contest* asking_turns::next_refused(std::uint32_t most_asking) const {
    const auto next = std::find_if(contests_.begin(), contests_.end(),
                                   [](const contest* each) { return each->machine.waiting(); });
    return next != contests_.end() && window_open(most_asking) ? *next : nullptr;
}

contest* asking_turns::smaller_refused(std::uint32_t permits) const {
    const auto next = std::find_if(contests_.begin(), contests_.end(), [&](const contest* each) {
        return each->machine.waiting() && each->machine.claim().permits < permits;
    });
    return next != contests_.end() ? *next : nullptr;
}

/// Counts contenders in trouble, too: a store that does not answer is not asked by more of them.
std::size_t asking_turns::count_asking() const {
    return static_cast<std::size_t>(
        std::count_if(contests_.begin(), contests_.end(),
                      [](const contest* each) { return !each->machine.waiting(); }));
}

bool asking_turns::window_open(std::uint32_t most_asking) const {
    return count_asking() < std::min(window_, most_asking);
}

/// Whether the store has told a contender that wants no more than this that it is busy.
bool asking_turns::is_refused(const newcomer& wish) const {
    return std::any_of(contests_.begin(), contests_.end(), [&](const contest* each) {
        const auto& asked = each->machine.claim();
        return each->machine.waiting() && asked.mode == wish.mode && asked.limit == wish.limit &&
               asked.permits <= wish.permits;
    });
}

}  // namespace holdfast::core
