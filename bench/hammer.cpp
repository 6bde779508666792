#include "hammer.hpp"

#include <atomic>
#include <latch>
#include <mutex>
#include <thread>

namespace bench {

namespace {

/// The system takes a while to share out many new threads among the processors: until then they are
/// half as fast.
constexpr std::chrono::milliseconds warm_up{200};

}  // namespace

nanoseconds hammer(const std::function<holdfast::mutex&(std::size_t thread)>& mutex_of,
                   std::chrono::milliseconds length) {
    std::atomic<bool> stop{false};
    std::atomic<std::size_t> holds{0};
    std::latch ready{static_cast<std::ptrdiff_t>(hammer_threads) + 1};
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < hammer_threads; ++i) {
        workers.emplace_back([&, i] {
            auto& mutex = mutex_of(i);
            ready.arrive_and_wait();
            while (!stop.load(std::memory_order_relaxed)) {
                const std::scoped_lock guard{mutex};
                holds.fetch_add(1, std::memory_order_relaxed);
            }
        });
    }
    ready.arrive_and_wait();
    std::this_thread::sleep_for(warm_up);  // not a guess: what is not measured
    const auto before = holds.load();
    const auto took = time_of([&] { std::this_thread::sleep_for(length); });
    const auto after = holds.load();
    stop.store(true);
    return took / static_cast<double>(after - before);
}

}  // namespace bench
