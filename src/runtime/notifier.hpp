#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include <holdfast/observer.hpp>
#include <runtime/callback_thread.hpp>
#include <runtime/hold.hpp>

namespace holdfast::detail {

/// Runs other people's code: loss callbacks on one thread and, if there is an observer, its callbacks
/// on another. A slow observer delays no loss, and its end waits for neither for long: see
/// `callback_thread`.
class notifier {
public:
    static constexpr std::size_t most_events = 4096;

    /// `dropped` counts the events that the observer is not told of.
    explicit notifier(std::shared_ptr<observer> events, std::atomic<std::uint64_t>* dropped = nullptr);

    /// Losses are never dropped: there is at most one per hold.
    void tell_loss(std::shared_ptr<hold> whose);
    void tell_observer(event what);

private:
    std::shared_ptr<observer> events_;
    callback_thread losses_;
    std::optional<callback_thread> observing_;
};

}  // namespace holdfast::detail
