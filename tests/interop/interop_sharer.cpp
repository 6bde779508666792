#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/holdfast.hpp>

/// interop_sharer STORE OBJECT NAME THREADS HOLD_MS FOR_MS
///
/// OBJECT is `plain`, `fair`, `write` or the number of a semaphore's permits. Says that it is ready. At
/// the next line of its standard input its threads begin to take the object again and again, each time
/// for HOLD_MS. After FOR_MS it says how often they had it, and the longest wait in milliseconds.
namespace {

namespace hf = holdfast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct tally {
    long times{};
    milliseconds longest{};
};

template <class Lock>
[[nodiscard]] tally share(Lock lock, milliseconds hold, steady_clock::time_point end) {
    tally seen;
    while (steady_clock::now() < end) {
        const auto asked = steady_clock::now();
        const auto held = lock.acquire();
        seen.longest = std::max(seen.longest,
                                std::chrono::duration_cast<milliseconds>(steady_clock::now() - asked));
        std::this_thread::sleep_for(hold);  // not a guess: the work the lock is held for
        ++seen.times;
    }
    return seen;
}

[[nodiscard]] tally share(hf::client& store, const std::string& object, const std::string& name,
                          milliseconds hold, steady_clock::time_point end) {
    if (object == "plain") {
        return share(hf::mutex{store, name}, hold, end);
    }
    if (object == "fair") {
        return share(hf::fair_mutex{store, name}, hold, end);
    }
    if (object == "write") {
        return share(hf::shared_mutex{store, name}, hold, end);
    }
    const auto permits = static_cast<std::uint32_t>(std::stoul(object));
    return share(hf::semaphore{store, name, permits}, hold, end);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 7) {
        std::cerr << "usage: interop_sharer STORE OBJECT NAME THREADS HOLD_MS FOR_MS\n";
        return EXIT_FAILURE;
    }
    try {
        hf::client store{arguments[1]};
        const std::string object{arguments[2]};
        const std::string name{arguments[3]};
        const milliseconds hold{std::stoll(arguments[5])};
        std::vector<tally> seen(std::stoul(arguments[4]));
        std::cout << "ready" << std::endl;
        std::string line;
        std::getline(std::cin, line);
        const auto end = steady_clock::now() + milliseconds{std::stoll(arguments[6])};
        {
            std::vector<std::jthread> threads;
            for (auto& mine : seen) {
                threads.emplace_back([&] { mine = share(store, object, name, hold, end); });
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
