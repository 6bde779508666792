#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include <holdfast/observer.hpp>

#include "strategy.hpp"

namespace flash_sale {

/// What this instance did, in the text format of Prometheus. Thread safety: all functions.
class metrics final : public holdfast::observer {
public:
    void count(const std::string& strategy, sale::outcome result, std::chrono::nanoseconds took);
    void count_failure(const std::string& strategy);
    void on_event(const holdfast::event& news) noexcept override;
    void entered() noexcept { ++in_flight_; }
    void left() noexcept { --in_flight_; }

    [[nodiscard]] std::string text() const;

private:
    static constexpr std::array<double, 10> limits{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30};

    struct histogram {
        std::array<std::uint64_t, limits.size()> below{};
        std::uint64_t count{};
        double sum{};
    };
    void write_latencies(std::string& into) const;

    mutable std::mutex guard_;
    std::map<std::string, std::uint64_t> answers_;
    std::map<std::string, histogram> latencies_;
    std::map<std::string, std::uint64_t> events_;
    std::atomic<std::int64_t> in_flight_{};
};

}  // namespace flash_sale
