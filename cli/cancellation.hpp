#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

#include "descriptor.hpp"
#include "signals.hpp"

namespace holdfast::cli {

/// Listens for signals on a thread of its own while the main thread waits for the lock. HUP, INT, QUIT
/// and TERM end the wait, TSTP stops the process as usual.
///
/// Thread safety: one thread only, the one that made it.
class cancellation_watch {
public:
    explicit cancellation_watch(const signal_source& signals);
    cancellation_watch(const cancellation_watch&) = delete;
    cancellation_watch& operator=(const cancellation_watch&) = delete;
    ~cancellation_watch();

    [[nodiscard]] std::stop_token token() const noexcept { return stop_.get_token(); }
    /// Stops listening; signals that come later are left for the next listener. Returns the signal that
    /// ended the wait; zero: none did.
    int finish();

private:
    void listen();
    void act_on(int signal);

    const signal_source& signals_;
    descriptor finish_;
    std::stop_source stop_;
    std::atomic<int> signal_{0};
    std::jthread listener_;
};

}  // namespace holdfast::cli
