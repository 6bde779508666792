#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace holdfast::testing {

/// Counts events that other threads report, such as the hints of `engine::watch`, and waits for them.
///
/// Thread safety: all functions may be called from any thread. A callback may outlive its counter.
class event_counter {
public:
    event_counter();

    /// Each call of it is one event.
    [[nodiscard]] std::function<void()> callback() const;
    [[nodiscard]] std::size_t count() const;
    /// False when fewer than `wanted` events have been seen by then.
    [[nodiscard]] bool wait_for(std::size_t wanted, std::chrono::milliseconds limit) const;

private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace holdfast::testing
