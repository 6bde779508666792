#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>

#include <holdfast/clock.hpp>
#include <holdfast/owner.hpp>

namespace holdfast::engines::redis {

/// Owners with a request in the confirmed lane that was not answered: it may still take effect. Their
/// next requests go the same way; in the other lane they would overtake it.
///
/// Thread safety: all functions may be called from any thread. Costs nothing while there are none.
class unsettled_owners {
public:
    /// `until`: nobody sends anything for this owner after that.
    void add(const owner_id& owner, clock::time_point until) {
        const auto now = clock::now();
        const std::lock_guard lock{guard_};
        std::erase_if(all_, [&](const auto& each) { return each.second <= now; });
        all_[owner] = until;
        count_ = all_.size();
    }
    /// The store has answered a later request of the same lane: the earlier ones are over.
    void remove(const owner_id& owner) {
        if (count_.load() > 0) {
            const std::lock_guard lock{guard_};
            all_.erase(owner);
            count_ = all_.size();
        }
    }
    [[nodiscard]] bool contains(const owner_id& owner) const {
        if (count_.load() == 0) {
            return false;
        }
        const std::lock_guard lock{guard_};
        return all_.contains(owner);
    }

private:
    mutable std::mutex guard_;
    std::map<owner_id, clock::time_point> all_;
    std::atomic<std::size_t> count_{0};
};

}  // namespace holdfast::engines::redis
