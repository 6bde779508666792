#pragma once

#include <array>
#include <functional>
#include <vector>

#include "measure.hpp"

namespace bench {

/// One process's way to a lock that two processes want.
struct contender {
    std::function<void()> lock;
    std::function<void()> unlock;
};

inline constexpr std::size_t kinds_of_lock = 4;
using contenders = std::array<contender, kinds_of_lock>;

/// Two processes hand locks to and fro: for each kind the times from just before an `unlock` until the
/// other's `lock`, which was waiting for it, has returned. All kinds take turns, because how fast a
/// machine wakes threads changes from second to second. `make` runs in each of the processes.
[[nodiscard]] std::vector<std::vector<nanoseconds>> to_and_fro(
    const std::function<contenders(int process)>& make);

}  // namespace bench
