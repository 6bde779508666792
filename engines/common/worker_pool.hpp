#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <holdfast/clock.hpp>

namespace holdfast::engines {

/// Threads for the calls of those who must not block, for engines whose store can only be asked by
/// blocking.
///
/// Jobs start in the order in which they were submitted. Every job that was taken is called exactly
/// once, with what became of it, on a thread of the pool's or of the one who stops it; it is called no
/// later than at its deadline, even if all workers are stuck (unless no further thread can be had).
/// Threads are started when they are first needed.
///
/// Thread safety: all functions may be called from any thread. Jobs run with no lock held; they must
/// not stop the pool.
class worker_pool {
public:
    enum class verdict : std::uint8_t {
        run,
        expired,    ///< its deadline passed while it waited for a worker, or too many were waiting
        shut_down,  ///< the pool was stopped first
        no_thread,  ///< the pool has no thread, and cannot start one now
    };
    using job = std::function<void(verdict)>;

    static constexpr std::size_t longest_queue = 65536;

    explicit worker_pool(std::size_t threads);
    worker_pool(const worker_pool&) = delete;
    worker_pool& operator=(const worker_pool&) = delete;
    ~worker_pool();

    /// `run` when the pool took the job. Otherwise `work` is untouched, and the caller has to tell. A
    /// job is taken only if there is a thread for it.
    [[nodiscard]] verdict submit(clock::time_point deadline, job&& work);
    /// Refuses what is waiting, and returns when what is running has ended.
    void stop();

private:
    struct entry {
        clock::time_point deadline;
        job work;
    };

    void serve();
    void expire();
    [[nodiscard]] bool start_worker();
    void start_expirer();

    const std::size_t threads_;
    std::mutex mutex_;
    std::condition_variable work_arrived_;
    std::condition_variable queue_grew_;
    std::deque<entry> queue_;
    std::size_t idle_{};
    bool stopped_{};
    std::vector<std::jthread> workers_;
    std::jthread expirer_;
};

}  // namespace holdfast::engines
