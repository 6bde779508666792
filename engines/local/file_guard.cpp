#include <cerrno>
#include <common/standard_streams.hpp>
#include <local/database.hpp>
#include <local/file_guard.hpp>
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
    std::map<file_number, std::weak_ptr<file_guard>> known;
};

/// Never destroyed: clients may outlive static objects.
guards_of_process& all_guards() {
    static auto& all = *new guards_of_process;
    return all;
}

[[noreturn]] void fail_to_guard(const std::string& problem, int error) {
    throw database_error{
        {errc::store_unavailable, problem + ": " + std::generic_category().message(error)}};
}

/// Of the database: one of the bytes that SQLite locks for itself alone before it deletes the journal.
/// Other processes that have it open share them.
constexpr off_t shared_first = 0x40000002;
/// Of the shared memory: SQLite has its lock on it, and waits for nobody who reads it.
constexpr off_t sqlites_byte = 128;
/// Of the shared memory, and ours alone.
constexpr off_t guards_byte = 200;

struct ::flock one_byte(short kind, off_t which) noexcept {
    struct ::flock range {};
    range.l_type = kind;
    range.l_whence = SEEK_SET;
    range.l_start = which;
    range.l_len = 1;
    return range;
}

bool change_lock(int file, short kind, off_t which) noexcept {
    auto range = one_byte(kind, which);
    return ::fcntl(file, F_OFD_SETLK, &range) == 0;
}

bool change_locks(int file, short kind, file_guard::part which) noexcept {
    return which == file_guard::part::database
               ? change_lock(file, kind, shared_first)
               : change_lock(file, kind, sqlites_byte) && change_lock(file, kind, guards_byte);
}

file_number number_of(const struct ::stat& status) noexcept {
    return {status.st_dev, status.st_ino};
}

}  // namespace

file_guard::pointer file_guard::of(const std::string& path, part which) {
    auto& all = all_guards();
    const std::lock_guard lock{all.mutex};
    // Before it is opened: closing the file drops the locks of others in this process.
    struct ::stat status {};
    if (::stat(path.c_str(), &status) != 0) {
        if (errno == ENOENT) {
            return nullptr;
        }
        fail_to_guard(path, errno);
    }
    std::erase_if(all.known, [](const auto& entry) { return entry.second.expired(); });
    if (const auto found = all.known.find(number_of(status)); found != all.known.end()) {
        if (auto guard = found->second.lock(); guard && guard->file_ >= 0) {
            return guard;
        }
    }
    const int file = keep_off_standard_streams(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (file < 0) {
        fail_to_guard(path, errno);
    }
    auto guard = std::make_shared<file_guard>(file, which);
    if (::fstat(file, &status) != 0) {
        fail_to_guard(path, errno);
    }
    all.known[number_of(status)] = guard;
    return guard;
}

void file_guard::lock(const pointer& guard) {
    const std::lock_guard lock{all_guards().mutex};
    if (!guard || !change_locks(guard->file_, F_RDLCK, guard->part_)) {
        fail_to_guard("a file of the store cannot be locked", guard ? errno : ENOENT);
    }
}

void file_guard::unlock(const pointer& guard) noexcept {
    const std::lock_guard lock{all_guards().mutex};
    if (guard.use_count() == 1) {
        static_cast<void>(change_locks(guard->file_, F_UNLCK, guard->part_));
    }
}

void file_guard::close(pointer& guard) noexcept {
    const std::lock_guard lock{all_guards().mutex};
    guard.reset();
}

/// The parent's objects stay where they are: other threads were using the heap when it forked.
void file_guard::close_in_child() noexcept {
    for (const auto& [number, known] : all_guards().known) {
        if (const auto guard = known.lock()) {
            ::close(std::exchange(guard->file_, -1));
        }
    }
    all_guards().mutex.unlock();
}

void file_guard::prepare_for_forks() {
    // A child must not inherit the mutex in another thread's hands.
    [[maybe_unused]] static const int registered = ::pthread_atfork(
        [] { all_guards().mutex.lock(); }, [] { all_guards().mutex.unlock(); }, &close_in_child);
}

bool file_guard::others_have_it() const noexcept {
    auto range = one_byte(F_WRLCK, guards_byte);
    return ::fcntl(file_, F_OFD_GETLK, &range) != 0 || range.l_type != F_UNLCK;
}

file_guard::~file_guard() {
    if (file_ >= 0) {
        ::close(file_);
    }
}

}  // namespace holdfast::engines::local
