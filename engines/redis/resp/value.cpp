#include <algorithm>
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

constexpr std::string_view no_code = "ERR";

/// Takes "@user_script: 12: " or "user_script:12: " off the front. False when there is none.
[[nodiscard]] bool take_place(std::string_view& text) noexcept {
    constexpr std::string_view script = "user_script:";
    auto rest = text;
    rest.remove_prefix(rest.starts_with('@') ? 1 : 0);
    if (!rest.starts_with(script)) {
        return false;
    }
    rest.remove_prefix(script.size());
    const auto number = rest.find_first_of("0123456789");
    const auto end = rest.find(": ", std::min(number, rest.size()));
    if (end == std::string_view::npos) {
        return false;
    }
    text = rest.substr(end + 2);
    return true;
}

/// What a script ran into, without the words of servers before 7.0 around it:
///
///     ERR Error running script (call to f_0a9f…): @user_script:1: @user_script: 1: -OOM command …
///     @user_script: 1: -OOM command …          the script passed the error on
[[nodiscard]] std::string_view inside_script(std::string_view text) noexcept {
    constexpr std::string_view wrapper = "ERR Error running script (call to ";
    if (text.starts_with(wrapper)) {
        const auto end = text.find("): ");
        text.remove_prefix(end == std::string_view::npos ? 0 : end + 3);
    }
    while (take_place(text)) {
    }
    if (constexpr std::string_view raised = "ERR WRONGKIND "; text.starts_with(raised)) {
        text.remove_prefix(
            text.find('W'));  // servers since 7.0 put a code ahead of what a script raises
    }
    text.remove_prefix(text.starts_with('-') ? 1 : 0);
    return text;
}

/// Servers do not give it a code: up to 7.0 the first, from 7.2 on the second.
[[nodiscard]] bool says_not_allowed(std::string_view text) noexcept {
    text.remove_prefix(text.starts_with("ERR ") ? 4 : 0);
    return text.starts_with("The user executing the script can't ") ||
           text.starts_with("ACL failure in script");
}

[[nodiscard]] bool is_code(std::string_view word) noexcept {
    return !word.empty() && word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == word.npos;
}

}  // namespace

std::string_view value::error_code() const noexcept {
    if (!is_error()) {
        return {};
    }
    const auto inside = inside_script(text);
    if (says_not_allowed(inside)) {
        return "NOPERM";
    }
    const auto code = inside.substr(0, inside.find(' '));
    return inside.size() == text.size() || is_code(code) ? code : no_code;
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
