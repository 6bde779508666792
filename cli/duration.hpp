#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// A duration as people write it, or a sentence that says what is wrong with it.
struct parsed_duration {
    std::chrono::milliseconds value{};
    /// Empty when the text was understood.
    std::string problem;
};

/// `250ms`, `30s`, `15m`, `2h`, `1d`, and sums with falling units: `1h30m`. Zero, signs, fractions and
/// numbers without a unit are refused: a wrong guess at the unit of a lock's ttl is expensive.
[[nodiscard]] parsed_duration parse_duration(std::string_view text);

/// The same notation, as short as it stays exact to about a hundredth: `4m10s`, `1.25s` is `1250ms`.
/// `no end` for `milliseconds::max()`.
[[nodiscard]] std::string format_duration(std::chrono::milliseconds value);

}  // namespace holdfast::cli
