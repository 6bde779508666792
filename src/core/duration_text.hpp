#pragma once

#include <chrono>
#include <string>

namespace holdfast::core {

/// In the largest unit in which it is a whole number.
[[nodiscard]] inline std::string duration_text(std::chrono::milliseconds value) {
    constexpr std::chrono::days day{1};
    constexpr std::chrono::seconds second{1};
    if (value >= 2 * day && (value % day).count() == 0) {
        return std::to_string(value / day) + " days";
    }
    if (value >= second && (value % second).count() == 0) {
        return std::to_string(value / second) + " s";
    }
    return std::to_string(value.count()) + " ms";
}

}  // namespace holdfast::core
