#include "opening.hpp"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace holdfast::cli {

namespace {

/// What the two threads share. The attempt may outlive the one that waits for it.
struct attempt {
    std::mutex guard;
    std::condition_variable_any over;
    bool ended{};
    std::unique_ptr<client> store;
    std::exception_ptr error;
};

}  // namespace

opening_result open_until(std::function<std::unique_ptr<client>()> open, clock::time_point deadline,
                          const std::stop_token& stop) {
    const auto state = std::make_shared<attempt>();
    std::thread worker{[state, open = std::move(open)] {
        std::unique_ptr<client> store;
        std::exception_ptr error;
        try {
            store = open();
        } catch (...) {
            error = std::current_exception();
        }
        const std::lock_guard lock{state->guard};
        state->store = std::move(store);
        state->error = std::move(error);
        state->ended = true;
        state->over.notify_all();
    }};
    std::unique_lock lock{state->guard};
    const auto ended = [&] { return state->ended; };
    if (deadline == clock::time_point::max()) {
        state->over.wait(lock, stop, ended);
    } else {
        state->over.wait_until(lock, stop, deadline, ended);
    }
    if (!state->ended) {
        worker.detach();
        return {nullptr, true};
    }
    lock.unlock();
    worker.join();
    if (state->error) {
        std::rethrow_exception(state->error);
    }
    return {std::move(state->store), false};
}

}  // namespace holdfast::cli
