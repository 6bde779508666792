#include <core/names.hpp>

#include <algorithm>
#include <cstdint>

namespace holdfast::core {

namespace {

struct decoded {
    std::uint32_t code_point{};
    /// Zero: not UTF-8.
    std::size_t length{};
};

[[nodiscard]] bool is_continuation(char c) noexcept {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

[[nodiscard]] decoded decode(std::string_view text) noexcept {
    const auto lead = static_cast<unsigned char>(text.front());
    if (lead < 0x80) {
        return {lead, 1};
    }
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || text.size() < length ||
        !std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(length),
                     is_continuation)) {
        return {};
    }
    std::uint32_t value = lead & (0xFFU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        value = (value << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
    }
    const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
    const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    if (overlong || surrogate || value > 0x10FFFF) {
        return {};
    }
    return {value, length};
}

[[nodiscard]] bool is_control(std::uint32_t code_point) noexcept {
    return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
}

}  // namespace

failure check_name(std::string_view name) {
    if (name.empty()) {
        return {errc::invalid_name, "a lock needs a name; this one is empty"};
    }
    if (name.size() > longest_name) {
        return {errc::invalid_name, "the name " + quote_name(name) + " has " +
                                        std::to_string(name.size()) + " bytes; at most " +
                                        std::to_string(longest_name) + " are allowed"};
    }
    if (const auto flaw = flaw_in(name); !flaw.empty()) {
        return {errc::invalid_name, "the name " + quote_name(name) + " " + std::string{flaw}};
    }
    return {};
}

std::string_view flaw_in(std::string_view text) noexcept {
    // Most names are plain ASCII, and every request checks its name.
    const auto plain = [](char c) { return c >= 0x20 && c < 0x7F; };
    text.remove_prefix(
        static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), plain) - text.begin()));
    while (!text.empty()) {
        const auto [code_point, length] = decode(text);
        if (length == 0) {
            return "is not UTF-8";
        }
        if (is_control(code_point)) {
            return "holds a control character";
        }
        text.remove_prefix(length);
    }
    return {};
}

bool is_utf8(std::string_view text) noexcept {
    while (!text.empty()) {
        const auto length = decode(text).length;
        if (length == 0) {
            return false;
        }
        text.remove_prefix(length);
    }
    return true;
}

std::string quote_name(std::string_view name) {
    constexpr std::size_t shown = 64;
    constexpr std::string_view digits = "0123456789abcdef";
    std::string quoted{'"'};
    while (!name.empty() && quoted.size() < shown) {
        const auto [code_point, length] = decode(name);
        if (length == 0 || is_control(code_point)) {
            const auto byte = static_cast<unsigned char>(name.front());
            quoted += {'\\', 'x', digits[byte >> 4U], digits[byte & 0xFU]};
            name.remove_prefix(1);
            continue;
        }
        quoted += name.substr(0, length);
        name.remove_prefix(length);
    }
    return quoted + (name.empty() ? "\"" : "…\"");
}

}  // namespace holdfast::core
