#pragma once

#include <functional>

#include "measure.hpp"

namespace bench {

/// One process's way to a lock that two processes want.
struct contender {
    std::function<void()> lock;
    std::function<void()> unlock;
};

/// Two processes hand a lock to and fro: the times from just before an `unlock` until the other's
/// `lock`, which was waiting for it, has returned. `make` runs in each of the processes.
[[nodiscard]] std::vector<nanoseconds> to_and_fro(const std::function<contender(int process)>& make);

}  // namespace bench
