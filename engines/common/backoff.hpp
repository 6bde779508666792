#pragma once

#include <algorithm>
#include <chrono>
#include <random>

#include <holdfast/clock.hpp>

namespace holdfast::engines {

/// The pauses between attempts to connect: 50 ms, doubled up to 2 s, with jitter, so that not all
/// clients come back to a server at the same moment.
class backoff {
public:
    void succeeded() noexcept { failures_ = 0; }

    [[nodiscard]] clock::duration next() {
        using namespace std::chrono_literals;
        constexpr int most_doublings = 6;
        const clock::duration full = std::min<clock::duration>(50ms * (1 << failures_), 2s);
        failures_ = std::min(failures_ + 1, most_doublings);
        std::uniform_int_distribution<clock::rep> jitter{full.count() / 2, full.count()};
        return clock::duration{jitter(random_)};
    }

    /// The first attempt after a loss is made at once, unless the server has dropped another connection
    /// within a second.
    [[nodiscard]] clock::duration after_loss(clock::time_point now) {
        using namespace std::chrono_literals;
        const bool hammering = last_loss_ != clock::time_point{} && now - last_loss_ < 1s;
        last_loss_ = now;
        return hammering ? next() : clock::duration::zero();
    }

private:
    int failures_{};
    clock::time_point last_loss_{};
    std::minstd_rand random_{std::random_device{}()};
};

}  // namespace holdfast::engines
