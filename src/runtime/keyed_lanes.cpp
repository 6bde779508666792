#include <holdfast/detail/keyed_lanes.hpp>

#include <holdfast/error.hpp>
#include <runtime/fork_guard.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

namespace holdfast::detail {

namespace {

constexpr std::size_t most_threads = 16'384;

/// The lanes whose operation this thread is running.
thread_local const void* inside = nullptr;

[[nodiscard]] std::size_t threads_for(const keyed_executor_options& options) {
    const std::size_t wanted =
        options.threads != 0 ? options.threads : std::thread::hardware_concurrency();
    return std::max<std::size_t>(wanted, 1);
}

}  // namespace

void v0::raise_no_handler() {
    failure{errc::invalid_argument, "it needs a handler"}.raise("keyed_batcher");
}

class keyed_lanes::state {
public:
    state(const char* user, const keyed_executor_options& options, std::size_t most_at_once,
          runner run);
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() { join(); }

    [[nodiscard]] admission try_push(std::string_view key, work& what);
    [[nodiscard]] admission push(std::string_view key, work& what, std::stop_token stop);
    void join();
    std::size_t cancel();
    [[nodiscard]] std::size_t waiting() const;

private:
    struct lane {
        std::deque<work> waiting;
        bool running{};
    };
    [[nodiscard]] bool has_room(const std::string& key) const;
    [[nodiscard]] bool called_from_inside() const noexcept;
    void refuse_inside() const;
    void add(const std::string& key, work& what);
    void serve();
    [[nodiscard]] std::vector<work> take(lane& from);

    const char* user_;
    keyed_executor_options options_;
    std::size_t most_at_once_;
    runner run_;

    mutable std::mutex guard_;
    std::condition_variable_any work_;
    std::condition_variable_any room_;
    std::unordered_map<std::string, lane> lanes_;
    std::deque<std::string> ready_;
    std::size_t waiting_{};
    bool closed_{};
    std::once_flag joined_;
    std::vector<std::jthread> threads_;
};

keyed_lanes::keyed_lanes(const char* user, const keyed_executor_options& options,
                         std::size_t most_at_once, runner run)
    : state_{std::make_unique<state>(user, options, most_at_once, std::move(run))},
      user_{user},
      generation_{fork_generation()} {}

keyed_lanes::~keyed_lanes() {
    if (forked()) {
        static_cast<void>(state_.release());
    }
}

bool keyed_lanes::forked() const noexcept {
    return generation_ != fork_generation();
}

keyed_lanes::admission keyed_lanes::try_push(std::string_view key, work& job) {
    return forked() ? admission::forked : state_->try_push(key, job);
}

keyed_lanes::admission keyed_lanes::push(std::string_view key, work& job, std::stop_token stop) {
    return forked() ? admission::forked : state_->push(key, job, std::move(stop));
}

void keyed_lanes::close() {
    if (!forked()) {
        state_->join();
    }
}

std::size_t keyed_lanes::cancel() {
    return forked() ? 0 : state_->cancel();
}

std::size_t keyed_lanes::waiting() const {
    return forked() ? 0 : state_->waiting();
}

void keyed_lanes::raise_refusal(admission why) const {
    if (why == admission::closed) {
        failure{errc::shut_down, "it was closed"}.raise(user_);
    }
    if (why == admission::waits_for_itself) {
        failure{errc::busy, "there is no room, and an operation that waits for it may wait for itself"}
            .raise(user_);
    }
    if (why == admission::forked) {
        failure{errc::forked, "it belongs to the parent process; make a new one in the child"}.raise(
            user_);
    }
}

keyed_lanes::state::state(const char* user, const keyed_executor_options& options,
                          std::size_t most_at_once, runner run)
    : user_{user}, options_{options}, most_at_once_{most_at_once}, run_{std::move(run)} {
    for (const auto& [name, limit] :
         {std::pair{"most_per_key", options.most_per_key},
          std::pair{"most_in_all", options.most_in_all}, std::pair{"most_at_once", most_at_once}}) {
        if (limit == 0) {
            failure{errc::invalid_argument, std::string{name} + " must be at least 1"}.raise(user);
        }
    }
    const auto count = threads_for(options);
    if (count > most_threads) {
        failure{errc::invalid_argument, "threads: " + std::to_string(count) +
                                            " are too many; at most " + std::to_string(most_threads) +
                                            " are allowed"}
            .raise(user);
    }
    try {
        while (threads_.size() < count) {
            threads_.emplace_back([this] { serve(); });
        }
    } catch (const std::system_error& error) {
        const auto started = threads_.size();
        join();  // those that were started wait for work
        throw std::system_error{error.code(), std::string{user} + ": threads: only " +
                                                  std::to_string(started) + " of " +
                                                  std::to_string(count) + " could be started"};
    } catch (...) {
        join();
        throw;
    }
}

bool keyed_lanes::state::has_room(const std::string& key) const {
    if (waiting_ >= options_.most_in_all) {
        return false;
    }
    const auto found = lanes_.find(key);
    return found == lanes_.end() || found->second.waiting.size() < options_.most_per_key;
}

bool keyed_lanes::state::called_from_inside() const noexcept {
    return inside == this;
}

void keyed_lanes::state::add(const std::string& key, work& what) {
    auto& its = lanes_[key];
    its.waiting.push_back(std::move(what));
    ++waiting_;
    if (!its.running && its.waiting.size() == 1) {
        ready_.push_back(key);
        work_.notify_one();
    }
}

keyed_lanes::admission keyed_lanes::state::try_push(std::string_view key, work& what) {
    const std::string name{key};
    const std::lock_guard lock{guard_};
    if (closed_) {
        return admission::closed;
    }
    if (!has_room(name)) {
        return admission::full;
    }
    add(name, what);
    return admission::accepted;
}

keyed_lanes::admission keyed_lanes::state::push(std::string_view key, work& what,
                                                std::stop_token stop) {
    const std::string name{key};
    std::unique_lock lock{guard_};
    const auto admitted = [&] { return closed_ || has_room(name); };
    if (!admitted() && called_from_inside()) {
        return admission::waits_for_itself;
    }
    if (!room_.wait(lock, std::move(stop), admitted)) {
        return admission::stopped;
    }
    if (closed_) {
        return admission::closed;
    }
    add(name, what);
    return admission::accepted;
}

std::vector<keyed_lanes::work> keyed_lanes::state::take(lane& from) {
    std::vector<work> batch;
    while (!from.waiting.empty() && batch.size() < most_at_once_) {
        batch.push_back(std::move(from.waiting.front()));
        from.waiting.pop_front();
    }
    waiting_ -= batch.size();
    return batch;
}

void keyed_lanes::state::serve() {
    inside = this;
    std::unique_lock lock{guard_};
    while (true) {
        // Once closed, a lane that still runs may become ready again: its thread sees to that itself.
        work_.wait(lock, [this] { return !ready_.empty() || closed_; });
        if (ready_.empty()) {
            return;
        }
        const auto key = std::move(ready_.front());
        ready_.pop_front();
        auto& its = lanes_.at(key);
        its.running = true;
        auto batch = take(its);
        lock.unlock();
        room_.notify_all();
        run_(key, std::move(batch));
        lock.lock();
        its.running = false;
        if (its.waiting.empty()) {
            lanes_.erase(key);
        } else {
            ready_.push_back(key);
            work_.notify_one();
        }
    }
}

/// An operation that waits for the end of all operations waits for itself.
void keyed_lanes::state::refuse_inside() const {
    if (called_from_inside()) {
        std::fprintf(stderr, "holdfast: %s: an operation closes or cancels its own executor\n", user_);
        std::abort();
    }
}

void keyed_lanes::state::join() {
    refuse_inside();
    {
        const std::lock_guard lock{guard_};
        closed_ = true;
    }
    work_.notify_all();
    room_.notify_all();
    std::call_once(joined_, [this] { threads_.clear(); });
}

std::size_t keyed_lanes::state::cancel() {
    refuse_inside();
    std::vector<work> dropped;
    {
        const std::lock_guard lock{guard_};
        closed_ = true;
        ready_.clear();
        for (auto& [key, its] : lanes_) {
            std::move(its.waiting.begin(), its.waiting.end(), std::back_inserter(dropped));
            its.waiting.clear();
        }
        std::erase_if(lanes_, [](const auto& one) { return !one.second.running; });
        waiting_ = 0;
    }
    const auto why = std::make_exception_ptr(
        std::system_error{make_error_code(errc::cancelled), std::string{user_} + ": it had not begun"});
    for (auto& one : dropped) {
        one->drop(why);
    }
    join();
    return dropped.size();
}

std::size_t keyed_lanes::state::waiting() const {
    const std::lock_guard lock{guard_};
    return waiting_;
}

}  // namespace holdfast::detail
