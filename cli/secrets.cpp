#include "secrets.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace holdfast::cli {

namespace {

struct span {
    std::size_t begin{};
    std::size_t end{};
};

/// Where the password may be; empty when there is none. From the first address to the last @ of all: a
/// password with a slash or a space in it is not valid, but hidden all the same.
[[nodiscard]] span find_password(std::string_view address) noexcept {
    const auto scheme = std::min(address.find("redis"), address.find("://"));
    const auto scheme_end = address.find(':', std::min(scheme, address.size()));
    const auto begin = address.find_first_not_of('/', std::min(scheme_end, address.size() - 1) + 1);
    const auto at = address.rfind('@');
    if (scheme_end == std::string_view::npos || at == std::string_view::npos || begin > at) {
        return {};
    }
    const auto colon = address.find(':', begin);
    return colon < at ? span{colon + 1, at} : span{};
}

void hide(char* text) noexcept {
    const auto [begin, end] = find_password(text);
    std::fill(text + begin, text + end, '*');
}

/// One valid address. `:password` goes, and the @ with it where there is no user.
[[nodiscard]] std::string without_password(std::string_view address) {
    const auto scheme = address.find("://");
    if (scheme == std::string_view::npos) {
        return std::string{address};
    }
    const auto begin = scheme + 3;
    const auto authority = address.substr(begin, address.find_first_of("/?#", begin) - begin);
    const auto at = authority.rfind('@');
    const auto colon = authority.find(':');
    if (at == std::string_view::npos || colon >= at) {
        return std::string{address};
    }
    const auto rest = begin + (colon == 0 ? at + 1 : at);
    return std::string{address.substr(0, begin + colon)} + std::string{address.substr(rest)};
}

}  // namespace

bool has_password(std::string_view address) noexcept {
    const auto [begin, end] = find_password(address);
    return begin < end;
}

bool looks_like_store(std::string_view text) {
    std::string lower{text};
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char each) { return static_cast<char>(std::tolower(each)); });
    for (auto at = lower.find("redis"); at != std::string::npos; at = lower.find("redis", at + 1)) {
        // rediss, redis+sentinel, …
        const auto scheme_end = lower.find_first_not_of("abcdefghijklmnopqrstuvwxyz+", at);
        if (scheme_end != std::string::npos && lower[scheme_end] == ':' &&
            (lower.compare(scheme_end, 3, "://") == 0 || lower.find('@', scheme_end) != lower.npos)) {
            return true;
        }
    }
    return false;
}

std::string without_addresses(std::string text, const std::vector<std::string>& words) {
    for (const auto& word : words) {
        if (word.find('@') == std::string::npos || !looks_like_store(word)) {
            continue;
        }
        for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
            text.replace(at, word.size(), "...");
        }
    }
    return text;
}

std::string without_passwords(std::string_view address) {
    constexpr std::string_view space = " \t\n\v\f\r";
    std::string result;
    while (!address.empty()) {
        const auto word = std::min(address.find_first_of(space), address.size());
        const auto next = std::min(address.find_first_not_of(space, word), address.size());
        result += without_password(address.substr(0, word));
        result += address.substr(word, next - word);
        address.remove_prefix(next);
    }
    return result;
}

void hide_passwords(int argc, char** argv) noexcept {
    for (int i = 1; i < argc && std::string_view{argv[i]} != "--"; ++i) {
        hide(argv[i]);
    }
}

void hide_password_in_environment() {
    if (char* address = std::getenv("HOLDFAST_STORE")) {
        hide(address);
    }
    constexpr const char* password = "HOLDFAST_REDIS_PASSWORD";
    if (char* shown = std::getenv(password)) {
        // The store is opened later, perhaps more than once, and needs it: setenv keeps a copy of its
        // own, which /proc does not show.
        const std::string copy{shown};
        ::setenv(password, copy.c_str(), 1);
        std::fill(shown, shown + copy.size(), '*');
    }
}

}  // namespace holdfast::cli
