#include <algorithm>
#include <common/quiet_thread.hpp>
#include <common/worker_pool.hpp>
#include <iterator>
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
    queue_.push_back({deadline, std::move(work)});
    start_threads();
    return verdict::run;
}

void worker_pool::start_threads() {
    if (idle_ >= queue_.size()) {
        work_arrived_.notify_one();
        return;
    }
    if (workers_.size() < threads_) {
        workers_.push_back(quiet_thread([this] { serve(); }));
        return;
    }
    work_arrived_.notify_one();
    if (!expirer_.joinable()) {
        expirer_ = quiet_thread([this] { expire(); });
    }
    queue_grew_.notify_one();
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
