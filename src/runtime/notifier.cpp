#include <runtime/notifier.hpp>

#include <utility>

namespace holdfast::detail {

notifier::notifier(std::shared_ptr<observer> events, std::atomic<std::uint64_t>* dropped)
    : events_{std::move(events)} {
    if (events_) {
        observing_.emplace(most_events, dropped);
    }
}

void notifier::tell_loss(std::shared_ptr<hold> whose) {
    losses_.post([whose = std::move(whose)] { whose->tell_loss(); });
}

void notifier::tell_observer(event what) {
    if (observing_) {
        observing_->post([events = events_, what = std::move(what)] { events->on_event(what); });
    }
}

}  // namespace holdfast::detail
