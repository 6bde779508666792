#include "time_limit.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "duration.hpp"
#include "exit_code.hpp"

namespace holdfast::cli {

time_limit::time_limit(std::optional<std::chrono::milliseconds> timeout, request kind,
                       output_format format)
    : time_limit{timeout, kind, [format](const problem& reason) { print_problem(reason, format); }} {}

time_limit::time_limit(std::optional<std::chrono::milliseconds> timeout, request kind, reporter report)
    : kind_{kind}, report_{std::move(report)} {
    if (timeout) {
        watcher_ =
            std::jthread{[this, limit = *timeout](const std::stop_token& stop) { watch(stop, limit); }};
    }
}

problem time_limit::reason_of(std::chrono::milliseconds timeout, request kind) {
    return {exit_code::unavailable,
            fmt::format("the store did not answer within --timeout {}; {}", format_duration(timeout),
                        kind == request::looks ? "nothing was changed"
                                               : "what was asked for may have happened or not")};
}

void time_limit::finish() {
    if (watcher_.joinable()) {
        watcher_.request_stop();
        watcher_.join();  // does not return if the time was over first: the program ends
    }
}

void time_limit::watch(const std::stop_token& stop, std::chrono::milliseconds timeout) {
    std::unique_lock lock{guard_};
    changed_.wait_for(lock, stop, timeout, [] { return false; });
    if (stop.stop_requested()) {
        return;
    }
    const auto reason = reason_of(timeout, kind_);
    report_(reason);
    ::_exit(to_status(reason.code));
}

}  // namespace holdfast::cli
