#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include <dice.hpp>
#include <holdfast/clock.hpp>

/// Time and chance of a run with a quorum.
namespace holdfast::testing::sim {

using namespace std::chrono_literals;

/// Virtual time, and what is to happen in it.
class quorum_stage {
public:
    explicit quorum_stage(std::uint64_t seed) noexcept : random_{seed} {}

    [[nodiscard]] clock::time_point now() const noexcept { return now_; }
    [[nodiscard]] std::uint64_t events() const noexcept { return sequence_; }
    void at(clock::time_point when, std::function<void()> what) {
        queue_.push({std::max(when, now_), sequence_++, std::move(what)});
    }
    void after(clock::duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
    /// False: nothing is left to happen.
    bool step() {
        if (queue_.empty()) {
            return false;
        }
        // The queue's order does not depend on what is taken out.
        auto next = std::move(const_cast<event&>(queue_.top()).what);
        now_ = queue_.top().when;
        queue_.pop();
        next();
        return true;
    }

    [[nodiscard]] std::uint32_t pick(std::uint32_t count) noexcept {
        return static_cast<std::uint32_t>(((random_.next() >> 32U) * count) >> 32U);
    }
    [[nodiscard]] bool one_in(std::uint32_t count) noexcept { return pick(count) == 0; }
    /// 0 ≤ fraction < 1
    [[nodiscard]] double fraction() noexcept {
        return static_cast<double>(random_.next() >> 11U) * 0x1.0p-53;
    }
    [[nodiscard]] clock::duration between(clock::duration least, clock::duration most) noexcept {
        const auto width = static_cast<double>((most - least).count());
        return least + clock::duration{static_cast<clock::rep>(width * fraction())};
    }

private:
    struct event {
        clock::time_point when;
        // What happens at the same time happens in this order, so that connections keep theirs.
        std::uint64_t sequence;
        std::function<void()> what;

        friend bool operator<(const event& a, const event& b) noexcept {
            return a.when != b.when ? a.when > b.when : a.sequence > b.sequence;
        }
    };

    generator random_;
    clock::time_point now_{std::chrono::hours{1}};
    std::priority_queue<event> queue_;
    std::uint64_t sequence_{};
};

/// A clock that runs a little too fast or too slow.
class uneven_clock {
public:
    /// `rate`: 0.01 gains a hundredth.
    explicit uneven_clock(double rate) noexcept : rate_{1 + rate} {}

    [[nodiscard]] clock::time_point shows(clock::time_point truth) const noexcept {
        return clock::time_point{scaled(truth.time_since_epoch(), rate_)};
    }
    /// When it shows that.
    [[nodiscard]] clock::time_point truth_at(clock::time_point shown) const noexcept {
        return clock::time_point{scaled(shown.time_since_epoch(), 1 / rate_)};
    }

private:
    [[nodiscard]] static clock::duration scaled(clock::duration what, double by) noexcept {
        return clock::duration{static_cast<clock::rep>(static_cast<double>(what.count()) * by)};
    }

    double rate_;
};

}  // namespace holdfast::testing::sim
