#include "redlock.hpp"

#include <stdexcept>

#include "owned_locks.hpp"

namespace naive {

std::optional<std::chrono::milliseconds> redlock::try_lock(std::chrono::milliseconds ttl) {
    const auto begin = std::chrono::steady_clock::now();
    std::size_t count = 0;
    votes_.clear();
    for (std::size_t index = 0; index < ports_.size(); ++index) {
        try {
            redis_client member{ports_[index]};
            if (script_lock{member, name_, owner_}.try_lock(ttl)) {
                ++count;
                votes_ += (votes_.empty() ? "" : ", ") + std::to_string(index + 1);
            }
        } catch (const std::runtime_error&) {
            // A server that is down has no vote.
        }
    }
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    if (count <= ports_.size() / 2 || took >= ttl) {
        unlock();
        return std::nullopt;
    }
    return ttl - took;
}

void redlock::unlock() {
    for (const auto port : ports_) {
        try {
            redis_client member{port};
            script_lock{member, name_, owner_}.unlock();
        } catch (const std::runtime_error&) {
            // The lock ends there with its ttl.
        }
    }
}

}  // namespace naive
