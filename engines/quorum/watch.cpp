#include <quorum/watch.hpp>

#include <core/quorum.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace holdfast::engines::quorums {

namespace {

/// What the members' hints share. It outlives the subscription: a hint may come late.
class hint_counter {
public:
    hint_counter(std::size_t members, std::function<void()> hint)
        : hinted_(members), hint_{std::move(hint)} {}

    void hear(std::size_t member) {
        {
            const std::lock_guard lock{guard_};
            hinted_[member] = true;
            const bool active = majority_active();
            const bool flows_again = active && !was_active_;
            was_active_ = active;
            const auto count =
                static_cast<std::size_t>(std::count(hinted_.begin(), hinted_.end(), true));
            if (ended_ || (count < core::majority_of(hinted_.size()) && !flows_again)) {
                return;
            }
            hinted_.assign(hinted_.size(), false);
        }
        hint_();
    }

    void begin(const std::vector<std::unique_ptr<subscription>>& parts) {
        const std::lock_guard lock{guard_};
        for (const auto& each : parts) {
            parts_.push_back(each.get());
        }
        was_active_ = majority_active();
    }

    void end() {
        const std::lock_guard lock{guard_};
        ended_ = true;
        parts_.clear();
    }

    [[nodiscard]] bool active() {
        const std::lock_guard lock{guard_};
        const bool active = majority_active();
        // Somebody who saw it inactive is waiting to be told.
        was_active_ = was_active_ && active;
        return active;
    }

private:
    [[nodiscard]] bool majority_active() const {
        const auto count = static_cast<std::size_t>(std::count_if(
            parts_.begin(), parts_.end(), [](const subscription* each) { return each->active(); }));
        return count >= core::majority_of(hinted_.size());
    }

    std::mutex guard_;
    std::vector<bool> hinted_;
    std::vector<const subscription*> parts_;
    const std::function<void()> hint_;
    bool was_active_{};
    bool ended_{};
};

class quorum_subscription final : public subscription {
public:
    quorum_subscription(std::shared_ptr<hint_counter> hints,
                        std::vector<std::unique_ptr<subscription>> parts)
        : hints_{std::move(hints)}, parts_{std::move(parts)} {
        hints_->begin(parts_);
    }
    ~quorum_subscription() override { hints_->end(); }
    [[nodiscard]] bool active() const noexcept override { return hints_->active(); }

private:
    std::shared_ptr<hint_counter> hints_;
    std::vector<std::unique_ptr<subscription>> parts_;
};

}  // namespace

std::unique_ptr<subscription> watch_all(const std::vector<engine*>& members, const std::string& name,
                                        lock_kind kind, std::function<void()> hint) {
    auto hints = std::make_shared<hint_counter>(members.size(), std::move(hint));
    std::vector<std::unique_ptr<subscription>> parts;
    for (std::size_t member = 0; member < members.size(); ++member) {
        parts.push_back(members[member]->offers().watching->watch(
            name, kind, [hints, member] { hints->hear(member); }));
    }
    return std::make_unique<quorum_subscription>(std::move(hints), std::move(parts));
}

}  // namespace holdfast::engines::quorums
