#include <cerrno>
#include <local/database.hpp>
#include <local/shm_guard.hpp>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::engines::local {

namespace {

/// Device and inode.
using file_number = std::pair<std::uint64_t, std::uint64_t>;

struct guards_of_process {
    std::mutex mutex;
    std::map<file_number, std::weak_ptr<shm_guard>> known;
};

guards_of_process& all_guards() {
    // Never destroyed: clients may outlive static objects.
    static auto& all = *new guards_of_process;
    // A child must not inherit it in another thread's hands.
    [[maybe_unused]] static const int registered = ::pthread_atfork(
        [] { all.mutex.lock(); }, [] { all.mutex.unlock(); }, [] { all.mutex.unlock(); });
    return all;
}

[[noreturn]] void fail_to_guard(const std::string& path, int error) {
    throw database_error{
        {errc::store_unavailable, path + ": " + std::generic_category().message(error)}};
}

file_number number_of(const struct ::stat& status) noexcept {
    return {status.st_dev, status.st_ino};
}

}  // namespace

std::shared_ptr<shm_guard> shm_guard::of(const std::string& path) {
    // Before it is opened: who closes it drops the locks of the others in this process.
    struct ::stat status {};
    if (::stat(path.c_str(), &status) != 0) {
        fail_to_guard(path, errno);
    }
    auto& all = all_guards();
    const std::lock_guard lock{all.mutex};
    std::erase_if(all.known, [](const auto& entry) { return entry.second.expired(); });
    if (const auto found = all.known.find(number_of(status)); found != all.known.end()) {
        if (auto guard = found->second.lock()) {
            return guard;
        }
    }
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) {
        fail_to_guard(path, errno);
    }
    auto guard = std::make_shared<shm_guard>(file);
    struct ::flock range {};
    range.l_type = F_RDLCK;
    range.l_whence = SEEK_SET;
    range.l_start = 128;  // where SQLite has its lock
    range.l_len = 1;
    if (::fcntl(file, F_OFD_SETLK, &range) != 0 || ::fstat(file, &status) != 0) {
        fail_to_guard(path, errno);
    }
    all.known[number_of(status)] = guard;
    return guard;
}

shm_guard::~shm_guard() {
    ::close(file_);
}

}  // namespace holdfast::engines::local
