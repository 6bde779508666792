#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <variant>

#include <holdfast/observer.hpp>
#include <runtime/hold.hpp>

namespace holdfast::detail {

/// The thread that runs other people's code: loss callbacks and observers. It holds no lock while it
/// does, and nothing of ours waits for it.
class notifier {
public:
    static constexpr std::size_t most_events = 4096;

    explicit notifier(std::shared_ptr<observer> events);
    notifier(const notifier&) = delete;
    notifier& operator=(const notifier&) = delete;
    /// Delivers what is queued, then ends the thread.
    ~notifier();

    void tell_loss(std::shared_ptr<hold> whose);
    void tell_observer(event what);

private:
    using message = std::variant<std::shared_ptr<hold>, event>;

    struct shared_state {
        std::mutex guard;
        std::condition_variable changed;
        std::deque<message> queue;
        std::uint64_t dropped{};
        bool closing{};
        std::shared_ptr<observer> events;
    };

    static void run(const std::shared_ptr<shared_state>& state);
    void post(message what);

    // Shared with the thread, so that a callback may destroy the client it comes from.
    std::shared_ptr<shared_state> state_;
    std::thread thread_;
};

}  // namespace holdfast::detail
