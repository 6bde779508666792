#pragma once

#include <runtime/safety_recheck.hpp>

#include <chrono>

namespace holdfast::testing {

/// While it lives, clients are made that never ask the store again by themselves: a waiter that is not
/// told waits until the test gives up.
class no_safety_net {
public:
    no_safety_net() { detail::safety_recheck = std::chrono::hours{1}; }
    no_safety_net(const no_safety_net&) = delete;
    no_safety_net& operator=(const no_safety_net&) = delete;
    ~no_safety_net() { detail::safety_recheck = before_; }

private:
    std::chrono::milliseconds before_{detail::safety_recheck.load()};
};

}  // namespace holdfast::testing
