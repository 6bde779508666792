#pragma once

#include <string>

#include "hook.hpp"

namespace naive {

/// Waits for a message instead of asking again and again.
/// The flaw: it subscribes after it has asked. A release in between is told to nobody, and the waiter
/// sleeps beside a free lock.
class notified_lock {
public:
    notified_lock(redis_client& store, std::string name) : store_{store}, name_{std::move(name)} {}
    bool try_lock();
    void lock(const hook& between);
    void unlock();

private:
    redis_client& store_;
    std::string name_;
};

}  // namespace naive
