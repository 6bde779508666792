#include <algorithm>
#include <common/quiet_thread.hpp>
#include <common/worker_pool.hpp>
#include <iterator>
#include <system_error>
#include <utility>

namespace holdfast::engines {

worker_pool::worker_pool(std::size_t threads) : threads_{threads} {}

worker_pool::~worker_pool() {
    stop();
}

worker_pool::verdict worker_pool::submit(clock::time_point deadline, job&& work) {
    const std::lock_guard lock{mutex_};
    if (stopped_) {
        return verdict::shut_down;
    }
    if (queue_.size() >= longest_queue) {
        return verdict::expired;
    }
    const bool all_busy = idle_ <= queue_.size();
    const bool started = all_busy && workers_.size() < threads_ && start_worker();
    if (workers_.empty()) {
        return verdict::no_thread;
    }
    queue_.push_back({deadline, std::move(work)});
    work_arrived_.notify_one();
    if (all_busy && !started) {
        start_expirer();
        queue_grew_.notify_one();
    }
    return verdict::run;
}

bool worker_pool::start_worker() {
    try {
        workers_.push_back(quiet_thread([this] { serve(); }));
        return true;
    } catch (const std::system_error&) {
        return false;
    }
}

void worker_pool::start_expirer() {
    if (expirer_.joinable()) {
        return;
    }
    try {
        expirer_ = quiet_thread([this] { expire(); });
    } catch (const std::system_error&) {
        // The next job tries again.
    }
}

void worker_pool::serve() {
    std::unique_lock lock{mutex_};
    while (!stopped_) {
        if (queue_.empty()) {
            ++idle_;
            work_arrived_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
            --idle_;
            continue;
        }
        entry next = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        next.work(next.deadline <= clock::now() ? verdict::expired : verdict::run);
        next.work = nullptr;
        lock.lock();
    }
}

void worker_pool::expire() {
    std::unique_lock lock{mutex_};
    while (!stopped_) {
        if (queue_.empty()) {
            queue_grew_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
            continue;
        }
        const auto first =
            std::min_element(queue_.begin(), queue_.end(),
                             [](const entry& a, const entry& b) { return a.deadline < b.deadline; });
        if (first->deadline > clock::now()) {
            const auto until = first->deadline;
            queue_grew_.wait_until(lock, until);
            continue;
        }
        job late = std::move(first->work);
        queue_.erase(first);
        lock.unlock();
        late(verdict::expired);
        late = nullptr;
        lock.lock();
    }
}

void worker_pool::stop() {
    std::deque<entry> refused;
    std::vector<std::jthread> workers;
    std::jthread expirer;
    {
        const std::lock_guard lock{mutex_};
        stopped_ = true;
        refused.swap(queue_);
        workers.swap(workers_);
        expirer.swap(expirer_);
    }
    work_arrived_.notify_all();
    queue_grew_.notify_all();
    for (entry& each : refused) {
        each.work(verdict::shut_down);
    }
    for (std::jthread& each : workers) {
        each.join();
    }
    if (expirer.joinable()) {
        expirer.join();
    }
}

}  // namespace holdfast::engines
