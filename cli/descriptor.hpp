#pragma once

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace holdfast::cli {

/// An open file descriptor, closed at the end of its life.
class descriptor {
public:
    descriptor() noexcept = default;
    explicit descriptor(int number) noexcept : number_{number} {}
    descriptor(descriptor&& other) noexcept : number_{std::exchange(other.number_, -1)} {}
    descriptor& operator=(descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    ~descriptor() { close(); }

    void close() noexcept {
        if (number_ >= 0) {
            ::close(std::exchange(number_, -1));
        }
    }
    [[nodiscard]] int get() const noexcept { return number_; }
    explicit operator bool() const noexcept { return number_ >= 0; }

private:
    int number_{-1};
};

/// Opens those of the descriptors 0, 1 and 2 that are closed. Otherwise a store's socket or file could
/// get such a number, and messages for standard error would be written to it. Reading from and writing
/// to these descriptors fails, and a command that is executed finds them closed again.
inline void reserve_standard_descriptors() noexcept {
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(number, F_GETFD) < 0 && errno == EBADF) {
            static_cast<void>(::epoll_create1(EPOLL_CLOEXEC));  // gets the lowest free number
        }
    }
}

/// The descriptor that a system call has just returned. Throws `std::system_error` if the call failed.
[[nodiscard]] inline descriptor checked(int number, const char* call) {
    if (number < 0) {
        throw std::system_error{errno, std::generic_category(), call};
    }
    return descriptor{number};
}

/// Throws `std::system_error` unless there are descriptors for everything that a command may need.
/// Otherwise a store, or the watch over a command, could run out of descriptors in the middle of its
/// work.
inline void require_descriptors() {
    std::array<descriptor, 32> all;
    for (auto& one : all) {
        one = checked(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0), "32 of them are needed");
    }
}

}  // namespace holdfast::cli
