#include <holdfast/testing/sim/campaign.hpp>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

namespace holdfast::testing::sim {

namespace {

struct progress {
    std::atomic<std::uint64_t> next{0};
    std::atomic<std::uint64_t> failed{std::numeric_limits<std::uint64_t>::max()};
    std::atomic<std::uint64_t> schedules{0};
    std::atomic<std::uint64_t> events{0};
    std::atomic<std::uint64_t> grants{0};
};

/// Everything before the first failure is run, whoever runs it, so the answer does not depend on the
/// number of workers.
void work(const campaign& what, progress& all) {
    while (true) {
        const auto index = all.next.fetch_add(1);
        if (index >= what.schedules || index > all.failed.load()) {
            return;
        }
        const auto outcome = run(make_plan(what.first_seed + index));
        all.schedules.fetch_add(1);
        all.events.fetch_add(outcome.events);
        all.grants.fetch_add(outcome.grants);
        if (!outcome.ok()) {
            auto earliest = all.failed.load();
            while (index < earliest && !all.failed.compare_exchange_weak(earliest, index)) {
            }
        }
    }
}

}  // namespace

campaign_result run(const campaign& what) {
    progress all;
    {
        std::vector<std::jthread> workers;
        for (std::uint32_t i = 0; i < std::max<std::uint32_t>(what.workers, 1); ++i) {
            workers.emplace_back([&] { work(what, all); });
        }
    }
    campaign_result outcome{all.schedules, all.events, all.grants, std::nullopt};
    if (all.failed.load() < what.schedules) {
        outcome.failing_seed = what.first_seed + all.failed.load();
    }
    return outcome;
}

}  // namespace holdfast::testing::sim
