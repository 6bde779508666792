#pragma once

#include <atomic>
#include <cstdint>

#include <holdfast/clock.hpp>

namespace holdfast::engines::local {

/// How one waits for a file that another process has locked: it writes for some microseconds, as a
/// rule.
///
/// Thread safety: one thread at a time.
class lock_wait {
public:
    /// No longer than until `deadline`, or until `stopping` is set.
    lock_wait(clock::time_point deadline, const std::atomic<bool>& stopping);

    void set_deadline(clock::time_point deadline) noexcept { deadline_ = deadline; }
    [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }
    /// A little longer with each attempt, from 0. False when it is time to give up.
    [[nodiscard]] bool before_attempt(int attempt) noexcept;

private:
    clock::time_point deadline_;
    const std::atomic<bool>& stopping_;
    std::uint64_t jitter_;
};

}  // namespace holdfast::engines::local
