#include <redis/watches.hpp>

#include <utility>

namespace holdfast::engines::redis {

void watches::close() {
    {
        const std::lock_guard lock{guard_};
        closed_ = true;
        channels_.clear();
        listeners_.store(0);
    }
    gate_.close();
}

std::unique_ptr<watches::listening> watches::listen(channel_place place, beginning first_news,
                                                    listener callback) {
    std::uint64_t number{};
    {
        const std::lock_guard lock{guard_};
        number = ++last_number_;
        if (!closed_) {
            if (!channels_.contains(place.channel)) {
                // Under the lock, so that a subscription and the end of one cannot overtake each other.
                // It may throw, so nothing is noted before: the next listener subscribes.
                router_->subscribe(place);
            }
            auto& known = channels_[place.channel];
            known.place = place;
            known.listeners.emplace(number, ear{std::make_shared<listener>(std::move(callback)),
                                                first_news == beginning::told});
            listeners_.fetch_add(1);
        }
    }
    return std::make_unique<listening>(weak_from_this(), std::move(place), number);
}

void watches::leave(const std::string& channel, std::uint64_t number) {
    const std::lock_guard lock{guard_};
    const auto found = channels_.find(channel);
    if (found == channels_.end()) {
        return;
    }
    listeners_.fetch_sub(found->second.listeners.erase(number));
    if (found->second.listeners.empty()) {
        router_->unsubscribe(found->second.place);
        channels_.erase(found);
    }
}

std::uint32_t watches::own_subscriptions(const std::string& channel) const {
    const std::lock_guard lock{guard_};
    return channels_.contains(channel) ? 1 : 0;
}

void watches::heard(const std::string& channel, std::string_view message) {
    std::vector<std::shared_ptr<listener>> told;
    {
        const std::lock_guard lock{guard_};
        const auto found = channels_.find(channel);
        if (found == channels_.end()) {
            return;
        }
        for (const auto& [number, one] : found->second.listeners) {
            told.push_back(one.callback);
        }
    }
    tell(told, message);
}

void watches::flows(const std::string& channel) {
    std::vector<std::shared_ptr<listener>> told;
    {
        const std::lock_guard lock{guard_};
        const auto found = channels_.find(channel);
        if (found == channels_.end()) {
            return;
        }
        const bool again = std::exchange(found->second.began, true);
        for (const auto& [number, one] : found->second.listeners) {
            if (again || one.awaits_beginning) {
                told.push_back(one.callback);
            }
        }
    }
    tell(told, {});
}

void watches::tell(const std::vector<std::shared_ptr<listener>>& told, std::string_view message) {
    for (const auto& one : told) {
        gate_.pass([&] { (*one)(message); });
    }
}

bool watches::look(const channel_place& place, std::uint64_t number) {
    const std::lock_guard lock{guard_};
    if (closed_) {
        return false;
    }
    const bool flows = router_->subscribed(place);
    if (const auto found = channels_.find(place.channel); !flows && found != channels_.end()) {
        found->second.listeners.at(number).awaits_beginning = true;
    }
    return flows;
}

watches::listening::~listening() {
    if (const auto all = all_.lock()) {
        all->leave(place_.channel, number_);
    }
}

bool watches::listening::active() const noexcept {
    const auto all = all_.lock();
    return all && all->look(place_, number_);
}

}  // namespace holdfast::engines::redis
