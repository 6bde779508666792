#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace flash_sale {

struct crowd_options {
    std::uint16_t port{};
    std::string path;
    std::size_t buyers{200};
    std::size_t tries{1};
    std::string tag{"buyer"};
    std::chrono::seconds deadline{60};
};

struct purchase {
    enum class ending : std::uint8_t { sold, sold_out, failed } end{ending::failed};
    /// Since the crowd was let in.
    std::chrono::microseconds begin{};
    /// Until the final answer, failed requests before it included.
    std::chrono::microseconds took{};
    std::uint32_t failures{};
};

[[nodiscard]] std::string_view to_string(purchase::ending end) noexcept;

/// Opens a connection for every buyer, calls `go`, and lets all of them buy. A request that fails is
/// sent again under the same id after a short pause, until the deadline.
[[nodiscard]] std::vector<purchase> buy(const crowd_options& options, const std::function<void()>& go);

}  // namespace flash_sale
