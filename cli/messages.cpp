#include "messages.hpp"

#include <unistd.h>

#include <cerrno>

#include "text.hpp"

namespace holdfast::cli {

namespace {

void write_line(std::string_view text) {
    write_all(STDERR_FILENO, "holdfast: " + printable(text) + "\n");
}

}  // namespace

void messages::detail(std::string_view text) const {
    if (verbose()) {
        write_line(text);
    }
}

void messages::say(std::string_view text) const {
    if (!quiet()) {
        write_line(text);
    }
}

void messages::error(std::string_view text) const {
    write_line(text);
}

void write_all(int descriptor, std::string_view text) noexcept {
    while (!text.empty()) {
        const auto written = ::write(descriptor, text.data(), text.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return;
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

}  // namespace holdfast::cli
