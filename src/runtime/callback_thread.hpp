#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include <threading/primitives.hpp>

namespace holdfast::detail {

/// A thread that runs other people's callbacks, one after the other, with no lock held.
///
/// Its end waits until everything posted has run, for `patience` at most. A callback that takes longer
/// is left behind with its thread, and so is one that ends this object itself. What is queued behind it
/// then is dropped and counted or, if there is no limit to the queue, still run when that callback
/// returns.
///
/// Thread safety: all functions may be called from any thread; a callback may itself end the object.
class callback_thread {
public:
    static constexpr std::chrono::milliseconds patience{500};
    static constexpr std::size_t unlimited = 0;

    /// Beyond `most` waiting callbacks new ones are dropped. `dropped` counts all that are.
    explicit callback_thread(std::size_t most = unlimited,
                             std::atomic<std::uint64_t>* dropped = nullptr);
    callback_thread(const callback_thread&) = delete;
    callback_thread& operator=(const callback_thread&) = delete;
    ~callback_thread();

    void post(std::function<void()> callback);

private:
    struct shared_state {
        threading::mutex guard;
        threading::condition_variable changed;
        threading::condition_variable ended;
        std::deque<std::function<void()>> queue;
        bool closing{};
        bool over{};
    };

    static void run(const std::shared_ptr<shared_state>& state);
    void count_dropped(std::size_t more);

    const std::size_t most_;
    std::atomic<std::uint64_t>* const dropped_;
    // Shared with the thread, which may outlive us.
    std::shared_ptr<shared_state> state_;
    threading::thread thread_;
};

}  // namespace holdfast::detail
