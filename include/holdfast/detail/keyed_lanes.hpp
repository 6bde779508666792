#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

namespace holdfast {

struct keyed_executor_options {
    /// Zero: as many as the machine has processors.
    std::size_t threads{};
    /// How many operations of one key may wait to be begun.
    std::size_t most_per_key{1024};
    /// How many of all keys together.
    std::size_t most_in_all{65536};
};

namespace detail {

/// One operation that waits for its turn.
class keyed_work {
public:
    keyed_work() = default;
    keyed_work(const keyed_work&) = delete;
    keyed_work& operator=(const keyed_work&) = delete;
    virtual ~keyed_work() = default;
    /// It will never be begun.
    virtual void drop(const std::exception_ptr& why) noexcept = 0;
};

/// The lanes of a `keyed_executor`: what waits for each key, and the threads that work it off.
///
///     lane   none ──push──▶ ready ──a thread is free──▶ running ──nothing waits──▶ none
///                             ▲                            │
///                             └──────── more waits ────────┘
///
/// A lane that was served goes to the back of the ready ones, so a busy key does not starve the
/// others. A lane with nothing in it is forgotten: memory is bounded by what waits.
class keyed_lanes {
public:
    using work = std::unique_ptr<keyed_work>;
    /// Does what waits, in order. Must not throw.
    using runner = std::function<void(const std::string& key, std::vector<work> batch)>;
    enum class admission : unsigned char { accepted, full, stopped, closed, waits_for_itself };

    /// At most `most_at_once` operations of a key are passed to one call of `run`.
    keyed_lanes(const keyed_executor_options& options, std::size_t most_at_once, runner run);
    keyed_lanes(const keyed_lanes&) = delete;
    keyed_lanes& operator=(const keyed_lanes&) = delete;
    /// `close`.
    ~keyed_lanes();

    [[nodiscard]] admission try_push(std::string_view key, work& what);
    /// Waits for room.
    [[nodiscard]] admission push(std::string_view key, work& what, std::stop_token stop);

    void close();
    std::size_t cancel();
    [[nodiscard]] std::size_t waiting() const;

private:
    struct lane {
        std::deque<work> waiting;
        bool running{};
    };
    [[nodiscard]] bool has_room(const std::string& key) const;
    [[nodiscard]] bool called_from_inside() const noexcept;
    void add(const std::string& key, work& what);
    void serve();
    [[nodiscard]] std::vector<work> take(lane& from);
    void join();

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

/// Throws what an admission other than `accepted`, `full` and `stopped` means.
void raise_refusal(keyed_lanes::admission why);

}  // namespace detail
}  // namespace holdfast
