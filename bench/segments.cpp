#include "bare_redis.hpp"
#include "measure.hpp"

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <memory>
#include <thread>

namespace bench {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t buyers_per_process = 16;
/// What a service does with the lock: it writes to a database and waits for the commit.
constexpr milliseconds commit{2};
constexpr milliseconds round_length{1500};

/// A stock that never runs out, whose writes take as long as a commit.
[[nodiscard]] holdfast::segment_store database() {
    return {.read = [](const holdfast::segment&) { return std::uint64_t{1'000'000'000}; },
            .write =
                [](const holdfast::segment&, std::uint64_t) {
                    std::this_thread::sleep_for(commit);  // not a guess: the work that is measured
                }};
}

/// Sales per second of two clients with 16 threads each.
[[nodiscard]] double rate(const redis_process& server, std::size_t segments) {
    const auto name = "stock in " + std::to_string(segments);
    holdfast::client clients[]{holdfast::client{server.address()}, holdfast::client{server.address()}};
    std::vector<std::unique_ptr<holdfast::segmented_stock>> stocks;
    for (auto& client : clients) {
        stocks.push_back(
            std::make_unique<holdfast::segmented_stock>(client, name, segments, database()));
    }
    std::atomic<std::size_t> sold{0};
    const auto took = time_of([&] {
        std::vector<std::jthread> buyers;
        for (std::size_t number = 0; number < 2 * buyers_per_process; ++number) {
            buyers.emplace_back([&, number](const std::stop_token& stop) {
                while (!stop.stop_requested()) {
                    sold += stocks[number % 2]->take(1) ? 1U : 0U;
                }
            });
        }
        std::this_thread::sleep_for(round_length);  // not a guess: the time over which it is measured
    });
    return static_cast<double>(sold) / (took.count() * 1e-9);
}

}  // namespace

std::vector<figure> segments() {
    constexpr int rounds = 3;
    const redis_process server;
    std::vector<nanoseconds> one_lock;
    std::vector<nanoseconds> five_locks;
    for (int round = 0; round < rounds; ++round) {
        one_lock.emplace_back(1e9 / rate(server, 1));
        five_locks.emplace_back(1e9 / rate(server, 5));
    }
    const auto single = median(std::move(one_lock));
    const auto segmented = median(std::move(five_locks));
    const auto per_second = [](nanoseconds each) { return text(1e9 / each.count(), 0) + "/s"; };
    return {
        {"segments: a stock in 5 segments against one, 2 processes' worth of 16 buyers, 2 ms of work",
         per_second(segmented) + " : " + per_second(single) + " = " + text(single / segmented, 1) +
             " ×",
         "≥ 4 ×", single / segmented >= 4}};
}

}  // namespace bench
