#include "background_writer.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>

#include "messages.hpp"

namespace holdfast::cli {

namespace {

constexpr std::size_t most_waiting_lines = 1'000;
constexpr std::chrono::seconds patience_with_reader{2};

/// Blocks all signals, so that a thread started meanwhile never receives one. Then a write to a closed
/// pipe fails, a write from the background is allowed, and neither ends the program.
class signals_blocked {
public:
    signals_blocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    signals_blocked(const signals_blocked&) = delete;
    signals_blocked& operator=(const signals_blocked&) = delete;
    ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

}  // namespace

/// Shared with the thread, which may outlive its owner.
struct background_writer::state {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::string> lines;
    std::size_t dropped{};
    bool writing{};
    bool finishing{};

    [[nodiscard]] bool drained() const noexcept { return lines.empty() && dropped == 0 && !writing; }
};

background_writer::background_writer(int descriptor) : state_{std::make_shared<state>()} {
    const signals_blocked around_the_start;
    thread_ = std::thread{[descriptor, shared = state_] { work(descriptor, shared); }};
}

void background_writer::write(std::string line) {
    {
        const std::lock_guard guard{state_->mutex};
        if (state_->finishing) {
            return;
        }
        if (state_->lines.size() < most_waiting_lines) {
            state_->lines.push_back(std::move(line));
        } else {
            ++state_->dropped;
        }
    }
    state_->changed.notify_all();
}

void background_writer::finish() noexcept {
    if (!thread_.joinable()) {
        return;
    }
    std::unique_lock guard{state_->mutex};
    state_->finishing = true;
    state_->changed.notify_all();
    const bool written =
        state_->changed.wait_for(guard, patience_with_reader, [this] { return state_->drained(); });
    guard.unlock();
    if (written) {
        thread_.join();
    } else {
        thread_.detach();
    }
}

void background_writer::work(int descriptor, const std::shared_ptr<state>& shared) {
    std::unique_lock guard{shared->mutex};
    while (true) {
        shared->changed.wait(guard, [&] { return !shared->drained() || shared->finishing; });
        if (shared->drained()) {
            return;
        }
        std::string line;
        if (shared->lines.empty()) {
            line = fmt::format("holdfast: {} lines are missing here\n", shared->dropped);
            shared->dropped = 0;
        } else {
            line = std::move(shared->lines.front());
            shared->lines.pop_front();
        }
        shared->writing = true;
        guard.unlock();
        write_all(descriptor, line);
        guard.lock();
        shared->writing = false;
        shared->changed.notify_all();
    }
}

}  // namespace holdfast::cli
