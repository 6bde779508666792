#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <vector>

#include <redis/net/connection.hpp>
#include <threading/parking.hpp>

#include <sched.h>

namespace holdfast::engines::redis {

/// One call of `connection::send`. A caller that blocks has it on its stack, so nobody may touch it
/// after telling it `ended`.
struct request {
    /// What its caller is told while it waits, with the connection's lock held.
    enum class turn : threading::parking_spot::message {
        none = threading::parking_spot::nothing,
        leads,  ///< the caller must read for everybody
        ended,  ///< the request is over
    };

    connection::encode encode;
    connection::done finished;
    clock::time_point deadline;
    caller from{caller::must_not_block};
    clock::time_point made{};
    connection::result outcome{};
    threading::parking_spot spot{};
    /// The first of the requests collected for the next write. Its caller writes them if nobody else
    /// does.
    bool first_collected{};

    [[nodiscard]] turn told() const noexcept { return turn{spot.left()}; }
    /// True: the caller sleeps, and `parking_spot::wake` must follow.
    [[nodiscard]] bool tell(turn next) noexcept {
        return spot.tell(static_cast<threading::parking_spot::message>(next));
    }
    /// Sleeps until it is told something, until `until`, or shorter. `now` may be a few microseconds
    /// ago.
    void wait(clock::time_point until, clock::time_point now) noexcept {
        // With many threads the answer is often there before they have all had their turn. Then neither
        // side needs the system to sleep or to wake.
        for (int yields = 0; yields < 2; ++yields) {
            if (told() != turn::none) {
                return;
            }
            ::sched_yield();
        }
        const auto left = std::min<clock::duration>(until - now, std::chrono::seconds{1});
        if (left > clock::duration::zero()) {
            const ::timespec limit{.tv_sec = static_cast<std::time_t>(left.count() / 1'000'000'000),
                                   .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)};
            spot.wait(&limit);
        }
    }

    /// Its deadline has passed, and no caller waits who would notice.
    [[nodiscard]] bool overdue(clock::time_point now) const noexcept {
        return from == caller::must_not_block && deadline <= now;
    }
    /// When the connection counts as dead if the answer is still missing: after the deadline, by as
    /// much as the request was given, within limits.
    [[nodiscard]] clock::time_point hopeless_at() const noexcept {
        const auto allowance = std::clamp<clock::duration>(deadline - made, std::chrono::seconds{1},
                                                           std::chrono::seconds{5});
        return deadline + allowance;
    }
};

/// What must be done after the lock is released.
struct aftermath {
    std::vector<threading::parking_spot*> to_wake;
    std::vector<std::unique_ptr<request>> to_run;
};

}  // namespace holdfast::engines::redis
