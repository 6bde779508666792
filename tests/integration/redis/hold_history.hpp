#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <holdfast/clock.hpp>
#include <support/server_process.hpp>

namespace holdfast::testing {

/// One hold of one lock, as its holder saw it.
struct hold_entry {
    std::string name;
    std::uint64_t token{};
    clock::time_point from;
    clock::time_point until;
};

/// Two holders at once, or tokens in the wrong order.
struct irregularity {
    hold_entry first;
    hold_entry second;

    [[nodiscard]] std::string text() const;
};

/// What several processes held, put together.
class hold_history {
public:
    /// Adds what a worker wrote; a line that is not finished yet is left out.
    void read(const std::string& text);
    void add(const hold_history& other);

    /// When the first hold began at or after this; `time_point::max()` if none did.
    [[nodiscard]] clock::time_point first_since(clock::time_point when) const;
    [[nodiscard]] std::vector<irregularity> overlaps() const;
    /// Later holds without a larger token.
    [[nodiscard]] std::vector<irregularity> tokens_that_fall() const;
    [[nodiscard]] std::vector<irregularity> tokens_that_repeat() const;
    /// By how much calls went beyond their deadlines at most.
    [[nodiscard]] std::chrono::nanoseconds worst_delay() const noexcept { return worst_delay_; }
    [[nodiscard]] std::size_t size() const noexcept { return holds_.size(); }

private:
    std::vector<hold_entry> holds_;
    std::chrono::nanoseconds worst_delay_{};
};

/// A process that locks and unlocks until it is told to stop; see lock_worker.cpp.
class lock_worker {
public:
    /// `policy`: "none" or "majority".
    lock_worker(const std::string& address, const std::string& policy, std::chrono::milliseconds ttl);

    /// What it has written so far.
    [[nodiscard]] hold_history history() const;
    void ask_to_stop() const;
    void wait_for_end();

private:
    testing_support::temporary_directory files_;
    testing_support::server_process process_;
};

}  // namespace holdfast::testing
