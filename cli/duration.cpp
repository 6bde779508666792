#include "duration.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;

struct unit {
    std::string_view name;
    std::int64_t in_milliseconds;
};

constexpr std::array<unit, 5> units{{
    {"d", 24LL * 60 * 60 * 1000},
    {"h", 60LL * 60 * 1000},
    {"m", 60LL * 1000},
    {"s", 1000},
    {"ms", 1},
}};

/// What stores keep at most. A longer ttl would be refused, a longer `--min-hold` cut.
constexpr std::int64_t longest = 366LL * units[0].in_milliseconds;

[[nodiscard]] bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

[[nodiscard]] std::size_t count_digits(std::string_view text) noexcept {
    std::size_t count = 0;
    while (count < text.size() && is_digit(text[count])) {
        ++count;
    }
    return count;
}

[[nodiscard]] parsed_duration refuse(std::string problem) {
    return {milliseconds{0}, std::move(problem)};
}

[[nodiscard]] parsed_duration refuse_form(std::string_view text) {
    return refuse(
        fmt::format("\"{}\" is no duration; write it like 250ms, 30s, 15m, 2h, 1d or 1h30m", text));
}

/// The unit at the start of `text`; units.size() when there is none.
[[nodiscard]] std::size_t find_unit(std::string_view text) noexcept {
    std::size_t letters = 0;
    while (letters < text.size() && !is_digit(text[letters])) {
        ++letters;
    }
    std::size_t index = 0;
    while (index < units.size() && units[index].name != text.substr(0, letters)) {
        ++index;
    }
    return index;
}

}  // namespace

parsed_duration parse_duration(std::string_view text) {
    if (text.empty()) {
        return refuse("the duration is empty; write it like 30s");
    }
    if (text.find_first_not_of("0123456789") == std::string_view::npos) {
        const bool zero = text.find_first_not_of('0') == std::string_view::npos;
        return refuse(fmt::format("{} what? write {}s", text, zero ? "30" : text));
    }
    std::int64_t total = 0;
    std::size_t next_unit = 0;
    for (auto rest = text; !rest.empty();) {
        const auto digits = count_digits(rest);
        const auto unit_index = find_unit(rest.substr(digits));
        if (digits == 0 || unit_index == units.size() || unit_index < next_unit) {
            return refuse_form(text);
        }
        const auto& [name, factor] = units[unit_index];
        std::int64_t number = 0;
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + digits, number);
        if (error != std::errc{} || number > (longest - total) / factor) {
            return refuse(fmt::format("\"{}\" is too long; at most 366 days", text));
        }
        total += number * factor;
        next_unit = unit_index + 1;
        rest.remove_prefix(digits + name.size());
    }
    if (total == 0) {
        return refuse(fmt::format("\"{}\" is zero; it has to be longer", text));
    }
    return {milliseconds{total}, {}};
}

std::string format_duration(milliseconds value) {
    if (value == milliseconds::max()) {
        return "no end";
    }
    auto rest = value.count();
    if (rest <= 0) {
        return "0s";
    }
    if (rest < 10'000 && rest % 1000 != 0) {
        return fmt::format("{}ms", rest);
    }
    std::string text;
    std::size_t parts = 0;
    for (const auto& [name, factor] : units) {
        // Two units say enough: a day and its hours, a minute and its seconds.
        if (name == "ms" || parts == 2) {
            break;
        }
        if (const auto number = rest / factor; number > 0) {
            text += fmt::format("{}{}", number, name);
            rest %= factor;
        }
        parts += text.empty() ? 0 : 1;
    }
    return text;
}

}  // namespace holdfast::cli
