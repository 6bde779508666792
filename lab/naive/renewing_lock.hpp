#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "hook.hpp"

namespace naive {

/// The process's timers. They know nothing of the threads that started them.
using timers = std::vector<std::jthread>;

/// Version 7: a timer renews the lock for as long as it is there.
/// The flaw: it asks whether the *lock* is there, never whether its *owner* is. An owner that ends
/// without `unlock` has its lock renewed for as long as the process lives.
class renewing_lock {
public:
    renewing_lock(std::uint16_t port, std::string name, std::string owner)
        : port_{port}, name_{std::move(name)}, owner_{std::move(owner)}, store_{port} {}
    bool try_lock(std::chrono::milliseconds ttl, timers& of_the_process);
    void unlock();

private:
    std::uint16_t port_;
    std::string name_;
    std::string owner_;
    redis_client store_;
};

}  // namespace naive
