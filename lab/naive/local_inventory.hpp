#pragma once

#include <mutex>

#include "hook.hpp"

namespace naive {

/// Version 0: the lock is in the process.
/// The flaw: the stock is not. The same service in another process has another mutex, and both sell
/// what both have read.
class local_inventory {
public:
    explicit local_inventory(redis_client& store) : store_{store} {}

    /// Whether there was something left to sell.
    bool sell_one(const hook& after_reading);

private:
    redis_client& store_;
    std::mutex turn_;
};

}  // namespace naive
