#include <common/gathering.hpp>

#include <common/poll_timeout.hpp>

#include <poll.h>

namespace holdfast::engines {

namespace {

thread_local gathering* current = nullptr;

}  // namespace

gathering::gathering() noexcept : outer_{std::exchange(current, this)} {}

gathering::~gathering() {
    current = outer_;
}

gathering* gathering::here() noexcept {
    return current;
}

void gathering::fetch_until(const std::function<bool()>& enough, clock::time_point deadline) {
    while (!unread_.empty() && !enough() && clock::now() < deadline) {
        fetch_what_comes(deadline);
    }
}

void gathering::fetch_what_comes(clock::time_point deadline) {
    std::vector<::pollfd> watched;
    watched.reserve(unread_.size());
    for (const auto& each : unread_) {
        watched.push_back({.fd = each->descriptor(), .events = POLLIN, .revents = 0});
    }
    if (::poll(watched.data(), watched.size(), poll_timeout(deadline, clock::now())) <= 0) {
        return;
    }
    for (std::size_t index = 0; index < watched.size(); ++index) {
        if (watched[index].revents == 0) {
            continue;
        }
        // A completion may ask again, and so add to the list.
        auto& answers = *unread_[index];
        if (!answers.fetch()) {
            unread_[index].reset();
        }
    }
    std::erase(unread_, nullptr);
}

void gathering::put_off() {
    for (const auto& each : unread_) {
        each->put_off();
    }
    unread_.clear();
}

}  // namespace holdfast::engines
