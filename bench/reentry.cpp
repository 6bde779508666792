#include "measure.hpp"

#include <holdfast/holdfast.hpp>

namespace bench {

std::vector<figure> reentry() {
    constexpr std::size_t operations = 100'000;
    const temporary_directory directory;
    holdfast::client client{"local:" + (directory.path() / "store").string()};
    holdfast::recursive_mutex mutex{client, "bench"};
    mutex.lock();
    const auto before = client.requests();
    std::vector<nanoseconds> times;
    for (int round = 0; round < 31; ++round) {
        times.push_back(processor_time_of([&] {
                            for (std::size_t i = 0; i < operations; ++i) {
                                mutex.lock();
                                mutex.unlock();
                            }
                        }) /
                        static_cast<double>(operations));
    }
    const auto requests = client.requests() - before;
    mutex.unlock();
    const auto each = median(std::move(times));
    return {
        {"recursive_mutex: re-entrant lock + unlock, processor time", text(each.count(), 0) + " ns",
         "≤ 100 ns", each.count() <= 100},
        {"recursive_mutex: store requests during " + std::to_string(31 * operations) + " re-entries",
         std::to_string(requests), "0", requests == 0}};
}

}  // namespace bench
