#include "text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <holdfast/error.hpp>

#include "duration.hpp"

namespace holdfast::cli {

namespace {

using system_time = std::chrono::system_clock::time_point;

[[nodiscard]] bool is_continuation(unsigned char c) noexcept {
    return (c & 0xC0U) == 0x80U;
}

/// How long the sequence is that starts with this byte.
[[nodiscard]] std::size_t sequence_length(char lead) noexcept {
    const auto byte = static_cast<unsigned char>(lead);
    return byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
}

/// The code point at the start of `text`, as far as its bytes go.
[[nodiscard]] std::uint32_t first_code_point(std::string_view text, std::size_t& length) noexcept {
    const auto lead = static_cast<unsigned char>(text.front());
    const auto wanted = sequence_length(text.front());
    std::uint32_t value = wanted == 1 ? lead : lead & (0xFFU >> (wanted + 1));
    length = 1;
    while (length < wanted && length < text.size() &&
           is_continuation(static_cast<unsigned char>(text[length]))) {
        value = (value << 6U) | (static_cast<unsigned char>(text[length]) & 0x3FU);
        ++length;
    }
    return value;
}

struct code_range {
    std::uint32_t first;
    std::uint32_t last;
};

/// Control characters, the line and paragraph separators, and Unicode's category Cf (bidirectional
/// overrides among them).
constexpr std::array<code_range, 24> invisible{{
    {0x00, 0x1F},       {0x7F, 0x9F},       {0xAD, 0xAD},       {0x600, 0x605},     {0x61C, 0x61C},
    {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},     {0x8E2, 0x8E2},     {0x180E, 0x180E},
    {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},   {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB},
    {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A},
    {0xE0001, 0xE0001}, {0xE0020, 0xE007F}, {0xD800, 0xDFFF},   {0xFFFE, 0xFFFF},
}};

[[nodiscard]] bool is_invisible(std::uint32_t c) noexcept {
    return std::any_of(invisible.begin(), invisible.end(),
                       [&](const code_range& range) { return range.first <= c && c <= range.last; });
}

[[nodiscard]] std::size_t columns_of(std::uint32_t c) noexcept {
    const bool combining = (c >= 0x300 && c <= 0x36F) || (c >= 0x200B && c <= 0x200F) || c == 0xFE0F;
    const bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF && c != 0x303F) ||
                      (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
                      (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                      (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1F64F) ||
                      (c >= 0x1F900 && c <= 0x1F9FF) || (c >= 0x20000 && c <= 0x3FFFD);
    if (combining) {
        return 0;
    }
    return wide ? 2 : 1;
}

[[nodiscard]] std::chrono::milliseconds age(system_time since, system_time now) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(now - since);
}

}  // namespace

std::size_t valid_utf8_prefix(std::string_view text) noexcept {
    std::size_t valid = 0;
    for (std::size_t length = 0; valid < text.size(); valid += length) {
        const auto c = first_code_point(text.substr(valid), length);
        const std::size_t needed = c >= 0x10000 ? 4 : c >= 0x800 ? 3 : c >= 0x80 ? 2 : 1;
        const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
        if (length != needed || length != sequence_length(text[valid]) || surrogate || c > 0x10FFFF) {
            break;
        }
    }
    return valid;
}

std::string printable(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t length = 0; !text.empty(); text.remove_prefix(length)) {
        const auto c = first_code_point(text, length);
        const bool shown = !is_invisible(c) && valid_utf8_prefix(text.substr(0, length)) == length;
        result += shown ? std::string{text.substr(0, length)} : std::string{"?"};
    }
    return result;
}

std::string escape_invisible(std::string_view document) {
    std::string result;
    result.reserve(document.size());
    for (std::size_t length = 0; !document.empty(); document.remove_prefix(length)) {
        const auto c = first_code_point(document, length);
        if (!is_invisible(c)) {
            result += document.substr(0, length);
        } else if (c < 0x10000) {
            result += fmt::format("\\u{:04x}", c);
        } else {
            const auto rest = c - 0x10000;
            result +=
                fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10U), 0xDC00 + (rest & 0x3FFU));
        }
    }
    return result;
}

std::size_t display_width(std::string_view text) noexcept {
    std::size_t columns = 0;
    for (std::size_t length = 0; !text.empty(); text.remove_prefix(length)) {
        columns += columns_of(first_code_point(text, length));
    }
    return columns;
}

std::string format_time(system_time when, system_time now) {
    const auto local = fmt::localtime(std::chrono::system_clock::to_time_t(when));
    const auto today = fmt::localtime(std::chrono::system_clock::to_time_t(now));
    if (local.tm_year == today.tm_year && local.tm_yday == today.tm_yday) {
        return fmt::format("{:%H:%M:%S}", local);
    }
    return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

std::string format_since(const holder_info& holder, system_time now) {
    return holder.since == system_time{} ? "-" : format_time(holder.since, now);
}

std::string format_mode(const holder_info& holder, const lock_info& lock) {
    switch (holder.mode) {
        case claim_mode::exclusive:
            return "exclusive";
        case claim_mode::shared:
            return "shared";
        case claim_mode::permit:
            return fmt::format("permit {}/{}", holder.permits, lock.limit);
    }
    return "unknown";
}

std::string_view format_status(const holder_info& holder) noexcept {
    if (holder.lingering) {
        return "lingering";
    }
    switch (holder.process) {
        case liveness::alive:
            return "alive";
        case liveness::dead:
            return "dead";
        case liveness::unknown:
            break;
    }
    return "unknown";
}

std::string format_tokens(const holder_info& holder) {
    if (holder.token.value == 0) {
        return "-";
    }
    if (holder.token_count <= 1) {
        return fmt::format("{}", holder.token.value);
    }
    return fmt::format("{}-{}", holder.token.value, holder.token.value + holder.token_count - 1);
}

std::string describe_holder(const holder_info& holder) {
    if (!holder.card) {
        return fmt::format("{}, no card", holder.owner.text());
    }
    const auto& [host, pid, program, label] = *holder.card;
    auto text = fmt::format("{} pid {}", host, pid);
    if (!program.empty()) {
        text += fmt::format(" ({})", program);
    }
    if (!label.empty()) {
        text += fmt::format(" \"{}\"", label);
    }
    return printable(text);
}

std::string describe_busy(const lock_info& lock, system_time now) {
    if (lock.holders.empty() && lock.kind != name_kind::lock && lock.count.value_or(1) <= 0) {
        return fmt::format("no permit of \"{}\" is free, and nobody who is known holds one", lock.name);
    }
    if (lock.holders.empty()) {
        return fmt::format("\"{}\" was held by somebody else until just now", lock.name);
    }
    const auto& first = lock.holders.front();
    auto text = fmt::format("\"{}\" is held by {}", lock.name, describe_holder(first));
    if (first.since != system_time{}) {
        text += fmt::format(" since {}, for {}", format_since(first, now),
                            format_duration(age(first.since, now)));
    }
    if (first.lingering) {
        text = fmt::format("\"{}\" is kept for another {} after {} held it", lock.name,
                           format_duration(first.remaining), describe_holder(first));
    }
    if (lock.holders.size() > 1) {
        text += fmt::format(", and by {} more", lock.holders.size() - 1);
    }
    return text;
}

std::string describe_unheld(const lock_info& lock) {
    const auto count = lock.count.value_or(0);
    switch (lock.kind) {
        case name_kind::lock:
            break;
        case name_kind::semaphore:
            return lock.limit > 0 ? fmt::format("a semaphore, {} of {} permits free", count, lock.limit)
                                  : fmt::format("a semaphore, {} permits free", count);
        case name_kind::latch:
            return fmt::format("a latch, {} to go", count);
        case name_kind::counter:
            return fmt::format(
                "a number, {}: a semaphore or a latch that another library made, or "
                "somebody else's; no lock can have this name",
                count);
    }
    return "free";
}

bool is_free(const lock_info& lock) noexcept {
    const bool permits_left = lock.kind == name_kind::semaphore && lock.count.value_or(1) > 0;
    return lock.holders.empty() && (lock.kind == name_kind::lock || permits_left);
}

std::string describe_loss(const std::error_code& reason, const std::string& detail) {
    if (reason == errc::revoked) {
        return detail.empty() ? "somebody released it by force" : "released by force: " + detail;
    }
    if (reason == errc::max_hold_exceeded) {
        return "it was held for --max-hold";
    }
    if (reason == errc::lost) {
        return detail.empty() ? "it could not be renewed" : detail;
    }
    return reason.message();
}

std::string describe_max_hold(std::string_view name, std::chrono::milliseconds max_hold,
                              std::chrono::milliseconds held_for) {
    return fmt::format("--max-hold {} is near, \"{}\" has been held for {}", format_duration(max_hold),
                       name, format_duration(held_for));
}

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], display_width(row[i]));
        }
    }
    std::string text;
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            text += row[i];
            if (i + 1 < row.size()) {
                text.append(widths[i] - display_width(row[i]) + 2, ' ');
            }
        }
        text += '\n';
    }
    return text;
}

}  // namespace holdfast::cli
