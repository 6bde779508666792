#include <cerrno>
#include <local/database.hpp>
#include <local/lock_wait.hpp>
#include <local/write_lock.hpp>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace holdfast::engines::local {

namespace {

struct ::flock whole_file(short kind) noexcept {
    struct ::flock range {};
    range.l_type = kind;
    range.l_whence = SEEK_SET;
    return range;
}

[[noreturn]] void fail_to_lock(const std::string& path, int error) {
    throw database_error{{errc::store_unavailable,
                          path + " cannot be locked: " + std::generic_category().message(error)}};
}

}  // namespace

void write_lock::lock(clock::time_point deadline) {
    lock_wait wait{deadline, stopping_};
    for (int attempt = 0; !try_lock(); ++attempt) {
        if (!wait.before_attempt(attempt)) {
            throw database_busy{{wait.stopping() ? errc::shut_down : errc::store_unavailable,
                                 path_ + ": the store is busy: another process keeps it locked"}};
        }
    }
}

bool write_lock::try_lock() {
    if (file_ < 0) {
        file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (file_ < 0) {
            fail_to_lock(path_, errno);
        }
    }
    auto range = whole_file(F_WRLCK);
    if (::fcntl(file_, F_OFD_SETLK, &range) == 0) {
        return true;
    }
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
        fail_to_lock(path_, errno);
    }
    return false;
}

void write_lock::unlock() noexcept {
    auto range = whole_file(F_UNLCK);
    static_cast<void>(::fcntl(file_, F_OFD_SETLK, &range));
}

void write_lock::close() noexcept {
    if (file_ >= 0) {
        ::close(std::exchange(file_, -1));
    }
}

}  // namespace holdfast::engines::local
