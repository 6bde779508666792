#include "cancellation.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace holdfast::cli {

cancellation_watch::cancellation_watch(const signal_source& signals)
    : signals_{signals}, finish_{checked(eventfd(0, EFD_CLOEXEC), "eventfd")}, listener_{[this] {
          listen();
      }} {}

cancellation_watch::~cancellation_watch() {
    finish();
}

int cancellation_watch::finish() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto length = ::write(finish_.get(), &one, sizeof one);
    if (listener_.joinable()) {
        listener_.join();
    }
    return signal_;
}

void cancellation_watch::listen() {
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

void cancellation_watch::act_on(int signal) {
    if (signal == SIGTSTP) {
        stop_here();
    }
    if (ends_waiting(signal)) {
        signal_ = signal;
        stop_.request_stop();
    }
}

}  // namespace holdfast::cli
