#include <array>
#include <charconv>
#include <redis/resp/value.hpp>

namespace holdfast::engines::redis {

namespace {

void append_count(std::string& out, char kind, std::size_t count) {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), count).ptr;
    out += kind;
    out.append(digits.data(), end);
    out += "\r\n";
}

}  // namespace

std::string_view value::error_code() const noexcept {
    if (!is_error()) {
        return {};
    }
    return std::string_view{text}.substr(0, text.find(' '));
}

void append_command(std::string& out, std::span<const std::string_view> words) {
    append_count(out, '*', words.size());
    for (const std::string_view word : words) {
        append_count(out, '$', word.size());
        out += word;
        out += "\r\n";
    }
}

}  // namespace holdfast::engines::redis
