#pragma once

#include <cstdint>

#include <threading/primitives.hpp>

namespace holdfast::detail {

/// What wakes a thread that sleeps in poll().
class doorbell {
public:
    doorbell();
    doorbell(const doorbell&) = delete;
    doorbell& operator=(const doorbell&) = delete;
    ~doorbell();

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    void ring() const noexcept;
    void silence() const noexcept;

private:
    int descriptor_;
};

/// Where one thread sleeps until another wakes it. A wake-up that comes first is not lost. Costs a
/// system call only when somebody really sleeps: a lock handed from thread to thread passes through
/// here each time.
class parking_spot {
public:
    /// Returns after an `unpark`, possibly one from before.
    void park() noexcept;
    void unpark() noexcept;

    /// Whether `park` would return at once.
    [[nodiscard]] bool unparked() const noexcept {
        return state_.load(std::memory_order_acquire) == woken;
    }
    /// Sleeps until `unparked`, or until `descriptor` can be read or is broken: then it says true.
    /// The bell must outlive everybody who may call `unpark`.
    [[nodiscard]] bool park_at(int descriptor, const doorbell& bell) noexcept;

private:
    enum : std::uint32_t { empty, woken, asleep, at_descriptor };
    threading::atomic<std::uint32_t> state_{empty};
    threading::atomic<const doorbell*> bell_{};
};

}  // namespace holdfast::detail
