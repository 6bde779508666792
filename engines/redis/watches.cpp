#include <redis/watches.hpp>

#include <utility>

namespace holdfast::engines::redis {

void watches::close() {
    {
        const std::lock_guard lock{guard_};
        closed_ = true;
        channels_.clear();
    }
    gate_.close();
}

std::unique_ptr<watches::listening> watches::listen(channel_place where, listener what) {
    std::uint64_t number{};
    {
        const std::lock_guard lock{guard_};
        number = ++last_number_;
        if (!closed_) {
            auto& place = channels_[where.channel];
            const bool first = place.listeners.empty();
            place.where = where;
            place.listeners.emplace(number, std::make_shared<listener>(std::move(what)));
            if (first) {
                // Under the lock, so that a subscription and the end of one cannot overtake each other.
                router_->subscribe(where);
            }
        }
    }
    return std::make_unique<listening>(weak_from_this(), std::move(where), number);
}

void watches::leave(const std::string& channel, std::uint64_t number) {
    const std::lock_guard lock{guard_};
    const auto found = channels_.find(channel);
    if (found == channels_.end()) {
        return;
    }
    found->second.listeners.erase(number);
    if (found->second.listeners.empty()) {
        router_->unsubscribe(found->second.where);
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
            told.push_back(one);
        }
    }
    for (const auto& one : told) {
        gate_.pass([&] { (*one)(message); });
    }
}

watches::listening::~listening() {
    if (const auto all = all_.lock()) {
        all->leave(where_.channel, number_);
    }
}

bool watches::listening::active() const noexcept {
    const auto all = all_.lock();
    if (!all) {
        return false;
    }
    const std::lock_guard lock{all->guard_};
    return !all->closed_ && all->router_->subscribed(where_);
}

}  // namespace holdfast::engines::redis
