#include <array>
#include <charconv>
#include <redis/resp/value.hpp>

namespace holdfast::engines::redis {

namespace {

/// `$5` and the like, with the end of the line.
void append_count(std::string& out, char kind, std::size_t count) {
    std::array<char, 24> line{kind};
    auto* end = std::to_chars(line.data() + 1, line.data() + line.size() - 2, count).ptr;
    *end++ = '\r';
    *end++ = '\n';
    out.append(line.data(), end);
}

}  // namespace

std::string_view value::error_code() const noexcept {
    if (!is_error()) {
        return {};
    }
    return std::string_view{text}.substr(0, text.find(' '));
}

void append_word_count(std::string& out, std::size_t count) {
    append_count(out, '*', count);
}

void append_word(std::string& out, std::string_view word) {
    append_count(out, '$', word.size());
    out.append(word).append("\r\n", 2);
}

void append_command(std::string& out, std::span<const std::string_view> words) {
    append_word_count(out, words.size());
    for (const std::string_view word : words) {
        append_word(out, word);
    }
}

}  // namespace holdfast::engines::redis
