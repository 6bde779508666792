#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::engines::redis {

/// Words of a command, in the server's own notation from the beginning: one text instead of one for
/// each word, since every lock and unlock passes through here.
class word_list {
public:
    /// Texts and numbers, each a word.
    template <class... Words>
    void add(const Words&... words) {
        const std::size_t before = text_.size();
        text_.reserve(usual_size);
        text_.resize(before + (most_room(words) + ...));
        char* end = text_.data() + before;
        ((end = write(end, words)), ...);
        text_.resize(static_cast<std::size_t>(end - text_.data()));
        count_ += sizeof...(words);
    }

    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    [[nodiscard]] const std::string& text() const noexcept { return text_; }
    /// One by one, for people.
    [[nodiscard]] std::vector<std::string> words() const {
        std::vector<std::string> all;
        for (std::size_t at = 0; at < text_.size();) {
            std::size_t length{};
            const char* const end = text_.data() + text_.size();
            const auto* const rest = std::from_chars(text_.data() + at + 1, end, length).ptr;
            at = static_cast<std::size_t>(rest - text_.data()) + 2;
            all.push_back(text_.substr(at, length));
            at += length + 2;
        }
        return all;
    }

private:
    static constexpr std::size_t usual_size = 256;
    /// All digits of any 64-bit number, with a sign.
    static constexpr std::size_t most_digits = 20;
    /// `$`, the length, and two ends of lines.
    static constexpr std::size_t frame = 1 + most_digits + 2 + 2;

    [[nodiscard]] static std::size_t most_room(std::string_view word) noexcept {
        return frame + word.size();
    }
    [[nodiscard]] static std::size_t most_room(std::integral auto) noexcept {
        return frame + most_digits;
    }

    static char* write(char* into, std::string_view word) noexcept {
        *into++ = '$';
        into = end_of_line(std::to_chars(into, into + most_digits, word.size()).ptr);
        std::memcpy(into, word.data(), word.size());
        return end_of_line(into + word.size());
    }
    static char* write(char* into, std::integral auto number) noexcept {
        std::array<char, most_digits> digits;
        const auto* const end = std::to_chars(digits.begin(), digits.end(), number).ptr;
        return write(into, std::string_view{digits.begin(), end});
    }
    static char* end_of_line(char* into) noexcept {
        *into++ = '\r';
        *into++ = '\n';
        return into;
    }

    std::string text_;
    std::size_t count_{};
};

}  // namespace holdfast::engines::redis
