#include "messages.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "background_writer.hpp"
#include "text.hpp"

namespace holdfast::cli {

void messages::detail(std::string_view text) const {
    if (verbose()) {
        line(text);
    }
}

void messages::say(std::string_view text) const {
    if (!quiet()) {
        line(text);
    }
}

void messages::error(std::string_view text) const {
    line(text);
}

void messages::document(std::string text) const {
    if (writer_ != nullptr) {
        writer_->write(std::move(text));
    } else {
        write_all(STDERR_FILENO, text);
    }
}

void messages::line(std::string_view text) const {
    document("holdfast: " + printable(text) + "\n");
}

void write_all(int descriptor, std::string_view text) noexcept {
    while (!text.empty()) {
        const auto written = ::write(descriptor, text.data(), text.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0 && errno == EAGAIN) {
            // Another process that has the same pipe or terminal open made it non-blocking.
            pollfd room{descriptor, POLLOUT, 0};
            ::poll(&room, 1, -1);
            continue;
        }
        if (written <= 0) {
            return;
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

}  // namespace holdfast::cli
