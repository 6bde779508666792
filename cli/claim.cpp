#include "claim.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
#include <thread>

namespace holdfast::cli {

namespace {

/// Listens for signals on a thread of its own while the main thread waits for the lock.
class cancellation_watch {
public:
    explicit cancellation_watch(const signal_source& signals)
        : signals_{signals}, finish_{checked(eventfd(0, EFD_CLOEXEC), "eventfd")}, listener_{[this] {
              listen();
          }} {}
    cancellation_watch(const cancellation_watch&) = delete;
    cancellation_watch& operator=(const cancellation_watch&) = delete;
    ~cancellation_watch() { finish(); }

    [[nodiscard]] std::stop_token token() const noexcept { return stop_.get_token(); }
    /// Stops listening; signals that come later are left for the next listener.
    int finish() {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto length = ::write(finish_.get(), &one, sizeof one);
        if (listener_.joinable()) {
            listener_.join();
        }
        return signal_;
    }

private:
    void listen() {
        std::array<pollfd, 2> sources{{{finish_.get(), POLLIN, 0}, {signals_.readable(), POLLIN, 0}}};
        while (signal_ == 0) {
            ::poll(sources.data(), sources.size(), -1);
            if ((sources[0].revents & POLLIN) != 0) {
                return;
            }
            if (const auto signal = signals_.next()) {
                act_on(*signal);
            }
        }
    }

    void act_on(int signal) {
        if (signal == SIGTSTP) {
            stop_here();
        }
        if (ends_waiting(signal)) {
            signal_ = signal;
            stop_.request_stop();
        }
    }

    const signal_source& signals_;
    descriptor finish_;
    std::stop_source stop_;
    std::atomic<int> signal_{0};
    std::jthread listener_;
};

using std::chrono::milliseconds;

[[nodiscard]] std::optional<lease> take_exclusive(client& store, const run_arguments& wanted,
                                                  std::stop_token stop) {
    mutex lock{store, wanted.name, terms_of(wanted)};
    if (!wanted.wait) {
        return lock.acquire(std::move(stop));
    }
    return *wanted.wait == milliseconds{0} ? lock.try_acquire()
                                           : lock.try_acquire_for(*wanted.wait, std::move(stop));
}

[[nodiscard]] std::optional<lease> take_shared(client& store, const run_arguments& wanted,
                                               std::stop_token stop) {
    shared_mutex lock{store, wanted.name, terms_of(wanted)};
    if (!wanted.wait) {
        return lock.acquire_shared(std::move(stop));
    }
    return *wanted.wait == milliseconds{0} ? lock.try_acquire_shared()
                                           : lock.try_acquire_shared_for(*wanted.wait, std::move(stop));
}

[[nodiscard]] std::optional<lease> take_permit(client& store, const run_arguments& wanted,
                                               std::stop_token stop) {
    semaphore lock{store, wanted.name, *wanted.permits, terms_of(wanted)};
    if (!wanted.wait) {
        return lock.acquire(std::move(stop));
    }
    return *wanted.wait == milliseconds{0} ? lock.try_acquire()
                                           : lock.try_acquire_for(*wanted.wait, 1, std::move(stop));
}

}  // namespace

lease_options terms_of(const run_arguments& wanted) {
    lease_options options;
    options.ttl = wanted.ttl;
    options.max_hold = wanted.max_hold;
    return options;
}

claim_result claim(client& store, const run_arguments& wanted, const signal_source& signals) {
    cancellation_watch watch{signals};
    claim_result result;
    if (wanted.permits) {
        result.held = take_permit(store, wanted, watch.token());
    } else if (wanted.shared) {
        result.held = take_shared(store, wanted, watch.token());
    } else {
        result.held = take_exclusive(store, wanted, watch.token());
    }
    result.cancelled_by = watch.finish();
    if (result.cancelled_by != 0) {
        result.held.reset();  // gives it back, should it have been granted at the last moment
    }
    return result;
}

}  // namespace holdfast::cli
