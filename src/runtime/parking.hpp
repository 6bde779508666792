#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast::detail {

/// Where one thread sleeps until another wakes it. A wake-up that comes first is not lost. Costs a
/// system call only when somebody really sleeps: a lock handed from thread to thread passes through
/// here each time.
class parking_spot {
public:
    /// Returns after an `unpark`, possibly one from before.
    void park() noexcept;
    void unpark() noexcept;

private:
    enum : std::uint32_t { empty, woken, asleep };
    std::atomic<std::uint32_t> state_{empty};
};

}  // namespace holdfast::detail
