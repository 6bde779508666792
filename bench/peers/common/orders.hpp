#pragma once

#include <time.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

/// The C++ drivers' half of the protocol in ../README.md.
namespace peers {

[[nodiscard]] inline std::int64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// One line of standard input.
class order {
public:
    explicit order(const std::string& line) {
        std::istringstream words{line};
        for (std::string word; words >> word;) {
            const auto equals = word.find('=');
            values_[word.substr(0, equals)] = word.substr(equals + 1);
        }
    }
    [[nodiscard]] const std::string& text(const std::string& key) const { return values_.at(key); }
    [[nodiscard]] std::int64_t number(const std::string& key) const { return std::stoll(text(key)); }
    /// The name of a task's lock.
    [[nodiscard]] std::string name(std::int64_t task) const {
        return text("mode") == "one" ? text("name") : text("name") + ':' + std::to_string(task);
    }

private:
    std::unordered_map<std::string, std::string> values_;
};

/// When a pair asked, had the lock, began to release it, and was done.
struct pair_times {
    std::int64_t asked, got, released, done;
};

/// What pairs there were, by task.
using all_times = std::vector<std::vector<pair_times>>;

/// Answers orders until standard input ends. `run` performs one.
inline void answer_orders(const std::string& name_and_version,
                          const std::function<all_times(const order&)>& run) {
    std::cout << "ready " << name_and_version << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        const order next{line};
        const auto times = run(next);
        std::ofstream out{next.text("out")};
        for (std::size_t task = 0; task < times.size(); ++task) {
            for (const auto& pair : times[task]) {
                out << task << ' ' << pair.asked << ' ' << pair.got << ' ' << pair.released << ' '
                    << pair.done << '\n';
            }
        }
        out.close();
        std::cout << "done" << std::endl;
    }
}

/// Runs an order with one thread for each task. `lock_of(task)` makes the task's lock: something with
/// `lock` and `unlock`.
template <class LockOf>
[[nodiscard]] all_times run_threads(const order& next, const LockOf& lock_of) {
    const auto tasks = next.number("tasks");
    const auto hold = std::chrono::microseconds{next.number("hold_us")};
    const auto most = next.number("pairs");
    const auto begin = now() + next.number("warm_ms") * 1'000'000;
    const auto end = begin + next.number("ms") * 1'000'000;
    all_times times(static_cast<std::size_t>(tasks));
    std::vector<std::jthread> threads;
    for (std::int64_t task = 0; task < tasks; ++task) {
        threads.emplace_back([&, task] {
            auto lock = lock_of(task);
            auto& mine = times[static_cast<std::size_t>(task)];
            for (std::int64_t taken = 0; most == 0 || taken < most; ++taken) {
                pair_times pair{now(), 0, 0, 0};
                if (pair.asked >= end) {
                    return;
                }
                lock->lock();
                pair.got = now();
                if (hold.count() > 0) {
                    std::this_thread::sleep_for(hold);
                }
                pair.released = now();
                lock->unlock();
                pair.done = now();
                if (begin <= pair.asked && pair.done <= end) {
                    mine.push_back(pair);
                }
            }
        });
    }
    threads.clear();
    return times;
}

}  // namespace peers
