#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/holdfast.hpp>

/// interop_sharer STORE NAME THREADS HOLD_MS FOR_MS
///
/// Says that it is ready. At the next line of its standard input its threads begin to take the mutex
/// again and again, each time for HOLD_MS. After FOR_MS it says how often they had it, and the longest
/// wait in milliseconds.
namespace {

namespace hf = holdfast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct tally {
    long times{};
    milliseconds longest{};
};

[[nodiscard]] tally share(hf::client& store, const std::string& name, milliseconds hold,
                          steady_clock::time_point end) {
    hf::mutex lock{store, name};
    tally seen;
    while (steady_clock::now() < end) {
        const auto asked = steady_clock::now();
        const std::lock_guard held{lock};
        seen.longest = std::max(seen.longest,
                                std::chrono::duration_cast<milliseconds>(steady_clock::now() - asked));
        std::this_thread::sleep_for(hold);  // not a guess: the work the lock is held for
        ++seen.times;
    }
    return seen;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 6) {
        std::cerr << "usage: interop_sharer STORE NAME THREADS HOLD_MS FOR_MS\n";
        return EXIT_FAILURE;
    }
    try {
        hf::client store{arguments[1]};
        const std::string name{arguments[2]};
        const milliseconds hold{std::stoll(arguments[4])};
        std::vector<tally> seen(std::stoul(arguments[3]));
        std::cout << "ready" << std::endl;
        std::string line;
        std::getline(std::cin, line);
        const auto end = steady_clock::now() + milliseconds{std::stoll(arguments[5])};
        {
            std::vector<std::jthread> threads;
            for (auto& mine : seen) {
                threads.emplace_back([&] { mine = share(store, name, hold, end); });
            }
        }
        tally all;
        for (const auto& one : seen) {
            all.times += one.times;
            all.longest = std::max(all.longest, one.longest);
        }
        std::cout << all.times << ' ' << all.longest.count() << std::endl;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
