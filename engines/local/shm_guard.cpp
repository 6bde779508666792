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

/// One byte of the file: SQLite has its lock on it, and waits for nobody who reads it.
constexpr off_t sqlites_byte = 128;
/// Ours alone.
constexpr off_t guards_byte = 200;

struct ::flock one_byte(short kind, off_t which) noexcept {
    struct ::flock range {};
    range.l_type = kind;
    range.l_whence = SEEK_SET;
    range.l_start = which;
    range.l_len = 1;
    return range;
}

bool share(int file, off_t which) noexcept {
    auto range = one_byte(F_RDLCK, which);
    return ::fcntl(file, F_OFD_SETLK, &range) == 0;
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
    if (!share(file, sqlites_byte) || !share(file, guards_byte) || ::fstat(file, &status) != 0) {
        fail_to_guard(path, errno);
    }
    all.known[number_of(status)] = guard;
    return guard;
}

void shm_guard::prepare_for_forks() {
    all_guards();
}

bool shm_guard::others_have_it() const noexcept {
    auto range = one_byte(F_WRLCK, guards_byte);
    return ::fcntl(file_, F_OFD_GETLK, &range) != 0 || range.l_type != F_UNLCK;
}

shm_guard::~shm_guard() {
    ::close(file_);
}

}  // namespace holdfast::engines::local
