#include <holdfast/detail/deadline.hpp>
#include <runtime/session_call.hpp>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

/// How a session ends.
namespace holdfast::detail {

session::~session() {
    if (!forked() && begin_closing()) {
        close_engine();
    }
}

std::vector<unreleased> session::shut_down(std::chrono::milliseconds timeout) {
    std::vector<unreleased> left;
    if (forked() || closed_.load()) {
        return left;
    }
    const auto deadline = deadline_after(timeout);
    closing_.request_stop();
    drive([](core::lock_table& table, clock::time_point now) { table.shut_down(now); });
    const auto pending = [&] {
        const std::lock_guard lock{guard_};
        const auto count = table_.count();
        return count.releases + count.contests > 0;
    };
    // Rarely more than a round: the answers come on other threads, or have come already.
    for (auto pause = std::chrono::microseconds{50}; pending() && clock::now() < deadline;
         pause = std::min(pause * 2, std::chrono::microseconds{5000})) {
        std::this_thread::sleep_for(pause);
    }
    {
        const std::lock_guard lock{guard_};
        for (auto& one : table_.unreleased()) {
            left.push_back({std::move(one.name), one.token, std::move(one.error)});
        }
    }
    // Nobody drives the core any more when the session is closed. No new caller can come: every hold
    // was lost when the shutdown began.
    drive([](core::lock_table& table, clock::time_point now) { table.finish_release_calls(now); });
    close(deadline);
    return left;
}

bool session::begin_closing() noexcept {
    const std::lock_guard lock{guard_};  // whoever is collecting has finished with timer and notifier
    return !closed_.exchange(true);
}

void session::close(clock::time_point deadline) {
    if (!begin_closing()) {
        return;
    }
    // Enough for threads that only pass through.
    constexpr std::chrono::milliseconds moment{100};
    const auto until = std::max<clock::time_point>(deadline, clock::now() + moment);
    for (auto pause = std::chrono::microseconds{50}; engine_users_.load() != 0 && clock::now() < until;
         pause = std::min(pause * 2, std::chrono::microseconds{5000})) {
        std::this_thread::sleep_for(pause);
    }
    if (engine_users_.load() == 0) {
        close_engine();
        return;
    }
    // A caller's thread is inside the engine, with a request that the store does not answer. It leaves
    // when its request times out.
    try {
        std::thread{[self = shared_from_this()] { self->close_engine(); }}.detach();
    } catch (const std::system_error&) {
        close_engine();  // no thread to be had that could wait for us
    }
}

void session::close_engine() noexcept {
    for (auto users = engine_users_.load(); users != 0; users = engine_users_.load()) {
        engine_users_.wait(users);
    }
    timer_.reset();
    {
        const std::lock_guard lock{watch_guard_};
        watches_.clear();
    }
    engine_.reset();
    notifier_.reset();
}

}  // namespace holdfast::detail
