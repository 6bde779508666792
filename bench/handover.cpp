#include "hammer.hpp"

#include <holdfast/holdfast.hpp>

#include <memory>

namespace bench {

namespace {

using std::chrono::milliseconds;

/// Every thread has a mutex and a client of its own, so there is no local queue between them.
struct contenders {
    std::vector<std::unique_ptr<holdfast::client>> clients;
    std::vector<std::unique_ptr<holdfast::mutex>> mutexes;

    explicit contenders(const std::string& store) {
        for (std::size_t i = 0; i < hammer_threads; ++i) {
            clients.push_back(std::make_unique<holdfast::client>(store));
            mutexes.push_back(std::make_unique<holdfast::mutex>(*clients.back(), "bench"));
        }
    }
};

}  // namespace

std::vector<figure> handover() {
    constexpr int rounds = 5;
    constexpr milliseconds length{400};
    const temporary_directory directory;
    const auto store = "local:" + (directory.path() / "store").string();
    holdfast::client with{store};
    holdfast::client without{store, {.handover_count = 0}};
    holdfast::mutex passed_on{with, "with"};
    holdfast::mutex given_back{without, "without"};
    contenders separate{store};
    std::vector<nanoseconds> handed;
    std::vector<nanoseconds> queued;
    std::vector<nanoseconds> alone;
    for (int round = 0; round < rounds; ++round) {
        handed.push_back(hammer([&](std::size_t) -> holdfast::mutex& { return passed_on; }, length));
        queued.push_back(hammer([&](std::size_t) -> holdfast::mutex& { return given_back; }, length));
        alone.push_back(
            hammer([&](std::size_t i) -> holdfast::mutex& { return *separate.mutexes[i]; }, length));
    }
    const auto ours = median(std::move(handed));
    const auto through_store = median(std::move(queued));
    const auto each_alone = median(std::move(alone));
    return {{"64 threads, one lock: time per hold, handed over within the process", microseconds(ours),
             "", true},
            {"… against the same without hand-over, every hold through the store",
             microseconds(through_store) + " = " + text(through_store / ours, 1) + " × slower",
             "≥ 10 ×", through_store / ours >= 10},
            {"… against every thread contending at the store by itself",
             microseconds(each_alone) + " = " + text(each_alone / ours, 1) + " × slower", "", true}};
}

}  // namespace bench
