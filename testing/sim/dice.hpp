#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <holdfast/clock.hpp>
#include <holdfast/testing/sim/plan.hpp>

namespace holdfast::testing::sim {

/// splitmix64: small, and the same everywhere, unlike the standard distributions.
class generator {
public:
    explicit generator(std::uint64_t seed) noexcept : state_{seed} {}

    std::uint64_t next() noexcept {
        state_ += 0x9e3779b97f4a7c15U;
        auto mixed = state_;
        mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
        mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
        return mixed ^ (mixed >> 31U);
    }

private:
    std::uint64_t state_;
};

/// The only source of chance in a run. Faults are decided apart from ordinary choices: each decision
/// has a number, takes exactly one draw and can be taken back by that number, which is how a failing
/// run is made smaller.
class dice {
public:
    explicit dice(const plan& what) noexcept : plan_{what}, generator_{what.seed * 2 + 1} {}

    /// 0 … count − 1.
    [[nodiscard]] std::uint32_t pick(std::uint32_t count) noexcept {
        return static_cast<std::uint32_t>(((generator_.next() >> 32U) * count) >> 32U);
    }
    [[nodiscard]] bool one_in(std::uint32_t count) noexcept { return pick(count) == 0; }
    [[nodiscard]] std::uint64_t bits() noexcept { return generator_.next(); }
    /// In steps of a microsecond.
    [[nodiscard]] clock::duration between(clock::duration least, clock::duration most) noexcept {
        return within(generator_.next(), least, most);
    }

    /// How bad a fault is, once it has been decided that there is one.
    class severity {
    public:
        explicit severity(std::uint64_t bits) noexcept : more_{bits} {}
        [[nodiscard]] clock::duration between(clock::duration least, clock::duration most) noexcept {
            return within(more_.next(), least, most);
        }
        [[nodiscard]] std::uint32_t pick(std::uint32_t count) noexcept {
            return static_cast<std::uint32_t>(((more_.next() >> 32U) * count) >> 32U);
        }

    private:
        generator more_;
    };

    /// Whether the fault happens here, one time in `count`.
    [[nodiscard]] std::optional<severity> fault(feature family, std::uint32_t count) noexcept {
        const auto drawn = generator_.next();
        if (calm_ || !plan_.features.has(family) || ((drawn >> 32U) * count) >> 32U != 0) {
            return std::nullopt;
        }
        const auto number = faults_++;
        if (number > plan_.last_fault || std::binary_search(plan_.suppressed_faults.begin(),
                                                            plan_.suppressed_faults.end(), number)) {
            return std::nullopt;
        }
        happened_.push_back(number);
        return severity{drawn};
    }
    /// No more faults from here on.
    void calm_down() noexcept { calm_ = true; }
    [[nodiscard]] bool calm() const noexcept { return calm_; }
    [[nodiscard]] const std::vector<std::uint32_t>& happened() const noexcept { return happened_; }

private:
    [[nodiscard]] static clock::duration within(std::uint64_t bits, clock::duration least,
                                                clock::duration most) noexcept {
        const auto steps =
            static_cast<std::uint64_t>((most - least) / std::chrono::microseconds{1}) + 1;
        return least + std::chrono::microseconds{static_cast<std::int64_t>(bits % steps)};
    }

    const plan& plan_;
    generator generator_;
    bool calm_{};
    std::uint32_t faults_{};
    std::vector<std::uint32_t> happened_;
};

}  // namespace holdfast::testing::sim
