#include "secrets.hpp"

#include <algorithm>

namespace holdfast::cli {

namespace {

struct span {
    std::size_t begin{};
    std::size_t end{};
};

/// Where the password is; empty when there is none.
[[nodiscard]] span find_password(std::string_view address) noexcept {
    const auto scheme = address.find("://");
    if (scheme == std::string_view::npos) {
        return {};
    }
    const auto begin = scheme + 3;
    // The last @ of all: a password with a slash in it is not valid, but hidden all the same.
    const auto at = address.rfind('@');
    const auto colon = address.find(':', begin);
    if (at == std::string_view::npos || at < begin || colon >= at) {
        return {};
    }
    return {colon + 1, at};
}

}  // namespace

bool has_password(std::string_view address) noexcept {
    const auto [begin, end] = find_password(address);
    return begin < end;
}

void hide_passwords(int argc, char** argv) noexcept {
    for (int i = 1; i < argc && std::string_view{argv[i]} != "--"; ++i) {
        const auto [begin, end] = find_password(argv[i]);
        std::fill(argv[i] + begin, argv[i] + end, '*');
    }
}

}  // namespace holdfast::cli
