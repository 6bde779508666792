#include <redis/turns.hpp>

namespace holdfast::engines::redis {

void turns::watch(const std::string& key) {
    const std::lock_guard lock{guard_};
    watched_[key] = {};
}

void turns::forget(const std::string& key) {
    const std::lock_guard lock{guard_};
    watched_.erase(key);
}

void turns::heard(const std::string& key, std::string_view message) {
    if (message.empty() || message.find_first_not_of("0123456789") != std::string_view::npos) {
        return;
    }
    const std::lock_guard lock{guard_};
    const auto found = watched_.find(key);
    if (found == watched_.end()) {
        return;
    }
    if (message.size() > 1 && message.front() == '0') {
        found->second = {static_cast<int>(message.size()), false};
    } else {
        found->second.over = true;
    }
}

void turns::refused(const std::string& key, int number) {
    const std::lock_guard lock{guard_};
    const auto found = watched_.find(key);
    // Of one that is known it may have been heard meanwhile that it is over.
    if (found != watched_.end() && found->second.number != number) {
        found->second = {number, false};
    }
}

int turns::claim(const std::string& key) const {
    const std::lock_guard lock{guard_};
    const auto found = watched_.find(key);
    return found != watched_.end() && found->second.over ? found->second.number : 0;
}

}  // namespace holdfast::engines::redis
