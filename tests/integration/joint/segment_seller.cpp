#include <atomic>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/holdfast.hpp>
#include <support/redis_client.hpp>

/// A process that sells from a stock in segments, whose units are counted in the same Redis.
///
///     segment_seller PORT SEGMENTS REQUESTS THREADS
///
/// Serves so many requests for one unit each, and writes "sold N refused N".
namespace {

using holdfast::testing_support::redis_client;

std::string key_of(const holdfast::segment& which) {
    return "units:" + std::to_string(which.index);
}

/// Read and write are two commands: without the lock, units would be sold twice.
holdfast::segment_store units_in(std::uint16_t port) {
    const auto mine = [port]() -> redis_client& {
        thread_local redis_client connection{port};
        return connection;
    };
    return {.read =
                [mine](const holdfast::segment& of) {
                    return std::stoull(mine().command({"GET", key_of(of)}).text);
                },
            .write =
                [mine](const holdfast::segment& of, std::uint64_t units) {
                    mine().command({"SET", key_of(of), std::to_string(units)});
                }};
}

int sell(std::uint16_t port, std::size_t segments, int requests, int threads) {
    holdfast::client client{"redis://127.0.0.1:" + std::to_string(port)};
    holdfast::segmented_stock stock{client, "sale", segments, units_in(port)};
    std::atomic<int> next{0};
    std::atomic<int> sold{0};
    std::atomic<int> refused{0};
    {
        std::vector<std::jthread> buyers;
        for (int number = 0; number < threads; ++number) {
            buyers.emplace_back([&] {
                while (next.fetch_add(1) < requests) {
                    (stock.take(1) ? sold : refused).fetch_add(1);
                }
            });
        }
    }
    std::cout << "sold " << sold << " refused " << refused << '\n';
    return 0;
}

}  // namespace

int main(int count, char** words) {
    try {
        if (count == 5) {
            return sell(static_cast<std::uint16_t>(std::stoi(words[1])), std::stoul(words[2]),
                        std::stoi(words[3]), std::stoi(words[4]));
        }
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    std::cerr << "segment_seller: see the comment at the top of its source\n";
    return 2;
}
