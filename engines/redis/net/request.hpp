#pragma once

#include <memory>
#include <vector>

#include <redis/net/connection.hpp>
#include <redis/net/parking_word.hpp>

namespace holdfast::engines::redis {

/// One call of `connection::send`. With a caller that blocks it lives on that caller's stack, and
/// nobody may touch it once it has been told "ended".
struct request {
    connection::encode what;
    connection::done finished;
    clock::time_point deadline;
    caller from{caller::must_not_block};
    clock::time_point made{};
    connection::result outcome{};
    parking_word word{};
    /// The first of those that are collected for the next write: it sees to it that they are written
    /// in time when nobody else does.
    bool first_collected{};

    /// What it was given, but within limits: how long its answer may be overdue before the connection
    /// counts as dead.
    [[nodiscard]] clock::time_point hopeless_at() const noexcept {
        const auto allowance = std::clamp<clock::duration>(deadline - made, std::chrono::seconds{1},
                                                           std::chrono::seconds{5});
        return deadline + allowance;
    }
};

/// What is to be done once the lock is released.
struct aftermath {
    std::vector<parking_word*> to_wake;
    std::vector<std::unique_ptr<request>> to_run;
};

}  // namespace holdfast::engines::redis
