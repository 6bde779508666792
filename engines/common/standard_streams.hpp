#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace holdfast::engines {

/// In a program that was started with a standard stream closed, what is opened next gets its number,
/// and whatever the program prints: that must not be a file or a connection of ours. The same file
/// under another number, close-on-exec; -1 and `errno` when there is none.
[[nodiscard]] inline int keep_off_standard_streams(int descriptor) noexcept {
    if (descriptor < 0 || descriptor > STDERR_FILENO) {
        return descriptor;
    }
    const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ::close(descriptor);
    return moved;
}

}  // namespace holdfast::engines
