#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <holdfast/export.hpp>

namespace holdfast::engines {

/// Lets callbacks into a client through until it is closed, and closes only when none is running.
///
/// Thread safety: all functions may be called from any thread. A callback may itself close the gate:
/// it does not wait for itself.
class HOLDFAST_EXPORT callback_gate {
public:
    /// Runs `callback` unless the gate is closed.
    void pass(const std::function<void()>& callback);
    /// Afterwards no callback is running, and none will.
    void close();

private:
    std::mutex mutex_;
    std::condition_variable left_;
    std::vector<std::thread::id> inside_;
    bool closed_{};
};

}  // namespace holdfast::engines
