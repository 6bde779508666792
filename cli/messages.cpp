#include "messages.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "background_writer.hpp"
#include "exit_code.hpp"
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

int write_all(int descriptor, std::string_view text) noexcept {
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
            return written < 0 ? errno : EIO;
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

void write_output(std::string_view text) {
    int error = write_all(STDOUT_FILENO, text);
    if (error == EINVAL) {
        error = EBADF;  // it was closed, and `reserve_standard_descriptors` has taken its number
    }
    if (error != 0 && error != EPIPE) {
        throw stop_program{exit_code::output, "standard output could not be written: " +
                                                  std::generic_category().message(error)};
    }
}

}  // namespace holdfast::cli
