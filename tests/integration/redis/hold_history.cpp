#include <algorithm>
#include <csignal>
#include <integration/redis/hold_history.hpp>
#include <map>
#include <sstream>
#include <utility>

namespace holdfast::testing {

namespace {

std::string text_of(const hold_entry& hold) {
    const auto milliseconds = [](clock::time_point when) {
        return std::to_string(when.time_since_epoch() / std::chrono::milliseconds{1});
    };
    return hold.name + " token " + std::to_string(hold.token) + " from " + milliseconds(hold.from) +
           " to " + milliseconds(hold.until);
}

bool began_earlier(const hold_entry& left, const hold_entry& right) {
    return left.from < right.from;
}

/// The holds of each name, in the order in which they began.
std::map<std::string, std::vector<hold_entry>> by_name(const std::vector<hold_entry>& holds) {
    std::map<std::string, std::vector<hold_entry>> sorted;
    for (const auto& one : holds) {
        sorted[one.name].push_back(one);
    }
    for (auto& [name, all] : sorted) {
        std::sort(all.begin(), all.end(), began_earlier);
    }
    return sorted;
}

/// Pairs each hold with the one before it that is the largest by `smaller`, and keeps what is wrong.
template <class Smaller, class Wrong>
std::vector<irregularity> compare(const std::vector<hold_entry>& holds, Smaller smaller, Wrong wrong) {
    std::vector<irregularity> found;
    for (const auto& [name, all] : by_name(holds)) {
        for (std::size_t index = 1, largest = 0; index < all.size(); ++index) {
            if (wrong(all[largest], all[index])) {
                found.push_back({all[largest], all[index]});
            }
            if (smaller(all[largest], all[index])) {
                largest = index;
            }
        }
    }
    return found;
}

}  // namespace

std::string irregularity::text() const {
    return text_of(first) + "; " + text_of(second);
}

void hold_history::read(const std::string& text) {
    std::istringstream lines{text.substr(0, text.rfind('\n') + 1)};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words{line};
        hold_entry hold;
        words >> hold.name;
        if (hold.name == "late") {
            std::chrono::nanoseconds::rep by{};
            words >> by;
            worst_delay_ = std::max(worst_delay_, std::chrono::nanoseconds{by});
            continue;
        }
        clock::rep from{};
        clock::rep until{};
        if (words >> hold.token >> from >> until) {
            hold.from = clock::time_point{clock::duration{from}};
            hold.until = clock::time_point{clock::duration{until}};
            holds_.push_back(std::move(hold));
        }
    }
}

void hold_history::add(const hold_history& other) {
    holds_.insert(holds_.end(), other.holds_.begin(), other.holds_.end());
    worst_delay_ = std::max(worst_delay_, other.worst_delay_);
}

clock::time_point hold_history::first_since(clock::time_point when) const {
    auto first = clock::time_point::max();
    for (const auto& one : holds_) {
        if (one.from >= when) {
            first = std::min(first, one.from);
        }
    }
    return first;
}

std::vector<irregularity> hold_history::overlaps() const {
    return compare(
        holds_, [](const auto& left, const auto& right) { return left.until < right.until; },
        [](const auto& earlier, const auto& later) { return later.from < earlier.until; });
}

std::vector<irregularity> hold_history::tokens_that_fall() const {
    return compare(
        holds_, [](const auto& left, const auto& right) { return left.token < right.token; },
        [](const auto& earlier, const auto& later) { return later.token <= earlier.token; });
}

std::vector<irregularity> hold_history::tokens_that_repeat() const {
    std::vector<irregularity> found;
    for (const auto& [name, all] : by_name(holds_)) {
        std::map<std::uint64_t, hold_entry> seen;
        for (const auto& one : all) {
            if (const auto [place, fresh] = seen.try_emplace(one.token, one); !fresh) {
                found.push_back({place->second, one});
            }
        }
    }
    return found;
}

lock_worker::lock_worker(const std::string& address, const std::string& policy,
                         std::chrono::milliseconds ttl)
    : process_{{HOLDFAST_LOCK_WORKER, "work", address, policy, std::to_string(ttl.count())},
               files_.path() / "history"} {}

hold_history lock_worker::history() const {
    hold_history all;
    all.read(testing_support::read_file(files_.path() / "history"));
    return all;
}

void lock_worker::ask_to_stop() const {
    process_.signal(SIGTERM);
}

void lock_worker::wait_for_end() {
    process_.wait_for_end();
}

}  // namespace holdfast::testing
