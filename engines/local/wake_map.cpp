#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <common/shortage.hpp>
#include <common/standard_streams.hpp>
#include <holdfast/error.hpp>
#include <holdfast/owner.hpp>
#include <local/wake_map.hpp>
#include <system_error>
#include <thread>
#include <threading/primitives.hpp>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::engines::local {

namespace {

constexpr std::size_t sequences = 1024;
constexpr std::size_t places = 1024;
constexpr std::uint64_t magic = 0x32'77'66'6C'6F'68ULL;  // "holfw2", and the layout's version

/// Values of an entry's key that are no key.
constexpr std::uint64_t free_entry = 0;
constexpr std::uint64_t reserved_entry = 1;

/// More than ever wait without an entry.
constexpr std::uint32_t very_many = 1U << 20;

/// Until it is looked again whether a file that was cut short can be made longer.
constexpr std::chrono::milliseconds between_attempts{100};

/// A waiter that found no entry: it is not counted, but always woken.
constexpr std::size_t no_place = places;

using word32 = threading::atomic<std::uint32_t>;
using word64 = threading::atomic<std::uint64_t>;
static_assert(word32::is_always_lock_free && word64::is_always_lock_free && sizeof(word32) == 4);

struct waiter {
    word64 key;
    word64 engine;
    word64 start_time;
    word64 pid_namespace;
    word64 pid;
};

/// Zero, or the error. Takes the space now: a write to a mapped hole of a full disk would kill the
/// process.
int reserve_space(int file, std::size_t size) noexcept {
    struct ::stat status {};
    if (::fstat(file, &status) != 0) {
        return errno;
    }
    return status.st_size >= static_cast<off_t>(size)
               ? 0
               : ::posix_fallocate(file, 0, static_cast<off_t>(size));
}

bool is_file(int file) noexcept {
    struct ::stat status {};
    return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

[[noreturn]] void refuse(const std::string& path, const std::string& action, int error) {
    failure{refusal_for(error), "it cannot be " + action + ": " + std::system_category().message(error)}
        .raise(path);
}

[[noreturn]] void refuse_to_wait(const std::string& path, int error) {
    failure{errc::store_unavailable,
            error == EWOULDBLOCK ? "another program has been opening the store for seconds; is "
                                   "it stopped?"
                                 : "it cannot be locked: " + std::system_category().message(error)}
        .raise(path);
}

/// Zero, or the error. Others have it alone for a moment only, while they open the store.
int share_patiently(int file) noexcept {
    constexpr int attempts = 5000;
    int error = 0;
    for (int attempt = 0; attempt < attempts; ++attempt) {
        error = ::flock(file, LOCK_SH | LOCK_NB) == 0 ? 0 : errno;
        if (error != EWOULDBLOCK) {
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return error;
}

}  // namespace

struct wake_map::layout {
    word64 magic;
    word64 files;
    word32 word;
    word32 revocations;
    /// No entry from here on was ever used.
    word32 used;
    /// How many wait without an entry.
    word32 overflow;
    std::array<word32, sequences> sequence;
    std::array<waiter, places> waiters;
};

wake_map::wake_map(const std::string& path, const process_ref& self)
    : path_{path}, self_{self}, engine_{owner_id::random_client().high} {
    file_ = keep_off_standard_streams(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file_ < 0) {
        refuse(path, "opened", errno);
    }
    const auto give_up = [&](const std::string& action, int error) {
        ::close(file_);
        refuse(path, action, error);
    };
    if (!is_file(file_)) {
        ::close(file_);
        failure{errc::bad_configuration, "this is not a file; delete it"}.raise(path);
    }
    // All processes that have the store open share this lock. One that gets it alone is the first after
    // all others left, and clears what they left behind.
    const bool alone = ::flock(file_, LOCK_EX | LOCK_NB) == 0;
    if (!alone) {
        if (const int error = share_patiently(file_); error != 0) {
            ::close(file_);
            refuse_to_wait(path, error);
        }
    }
    if (const int error = reserve_space(file_, sizeof(layout)); error != 0) {
        give_up("written", error);
    }
    void* memory = ::mmap(nullptr, sizeof(layout), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory == MAP_FAILED) {
        give_up("mapped", errno);
    }
    map_ = static_cast<layout*>(memory);
    if (alone) {
        clear();
    }
    std::uint64_t expected = 0;
    if (!map_->magic.compare_exchange_strong(expected, magic) && expected != magic) {
        ::munmap(memory, sizeof(layout));
        ::close(file_);
        failure{
            errc::bad_configuration,
            "another version of holdfast uses it, or it is damaged; stop every program that uses it"}
            .raise(path);
    }
}

bool wake_map::exclude_others() noexcept {
    return ::flock(file_, LOCK_EX | LOCK_NB) == 0;
}

void wake_map::let_others_in() {
    if (const int error = share_patiently(file_); error != 0) {
        refuse_to_wait(path_, error);
    }
}

void wake_map::clear() noexcept {
    map_->magic.store(magic);
    map_->files.store(0);
    map_->used.store(0);
    map_->overflow.store(0);
    for (waiter& entry : map_->waiters) {
        entry.key.store(free_entry);
    }
}

bool wake_map::reachable() const noexcept {
    struct ::stat status {};
    if (::fstat(file_, &status) == 0 && status.st_size >= static_cast<off_t>(sizeof(layout))) {
        return true;
    }
    if (::posix_fallocate(file_, 0, sizeof(layout)) != 0) {
        return false;
    }
    // The waiters are not known any more: from now on all are always woken.
    map_->overflow.fetch_add(very_many);
    return true;
}

std::uint64_t wake_map::files() const noexcept {
    return reachable() ? map_->files.load() : 0;
}

bool wake_map::agree_on_files(std::uint64_t mark) noexcept {
    std::uint64_t said = 0;
    return reachable() && (map_->files.compare_exchange_strong(said, mark) || said == mark);
}

void wake_map::forget_files() noexcept {
    if (reachable()) {
        map_->files.store(0);
    }
}

wake_map::~wake_map() {
    close();
}

/// The memory keeps the lock on the file, too.
void wake_map::close() noexcept {
    if (file_ >= 0) {
        ::munmap(map_, sizeof(layout));
        ::close(std::exchange(file_, -1));
    }
}

std::uint64_t wake_map::key_of(std::string_view name) noexcept {
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    for (const char character : name) {
        hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001B3ULL;
    }
    hash ^= hash >> 29;
    return hash <= reserved_entry ? hash + 2 : hash;
}

std::size_t wake_map::add_waiter(std::uint64_t key) noexcept {
    if (!reachable()) {
        return no_place;
    }
    for (std::size_t place = 0; place < places; ++place) {
        waiter& entry = map_->waiters[place];
        std::uint64_t expected = free_entry;
        if (entry.key.load(std::memory_order_relaxed) != free_entry ||
            !entry.key.compare_exchange_strong(expected, reserved_entry)) {
            continue;
        }
        entry.engine.store(engine_, std::memory_order_relaxed);
        entry.pid.store(static_cast<std::uint64_t>(self_.pid), std::memory_order_relaxed);
        entry.start_time.store(self_.start_time, std::memory_order_relaxed);
        entry.pid_namespace.store(self_.pid_namespace, std::memory_order_relaxed);
        std::uint32_t used = map_->used.load();
        while (used <= place &&
               !map_->used.compare_exchange_weak(used, static_cast<std::uint32_t>(place) + 1)) {
        }
        entry.key.store(key);
        return place;
    }
    map_->overflow.fetch_add(1);
    return no_place;
}

void wake_map::remove_waiter(std::size_t place) noexcept {
    if (!reachable()) {
        return;
    }
    if (place == no_place) {
        map_->overflow.fetch_sub(1);
    } else {
        map_->waiters[place].key.store(free_entry);
    }
}

std::size_t wake_map::used_places() const noexcept {
    return std::min<std::size_t>(map_->used.load(), places);
}

std::uint32_t wake_map::count_waiters(std::uint64_t key) const noexcept {
    return reachable() ? count(key) : 0;
}

std::uint32_t wake_map::count(std::uint64_t key) const noexcept {
    std::uint32_t count = 0;
    const std::size_t used = used_places();
    for (std::size_t place = 0; place < used; ++place) {
        count += map_->waiters[place].key.load() == key ? 1 : 0;
    }
    return count;
}

std::uint32_t wake_map::count_other_waiters(std::uint64_t key) const noexcept {
    if (!reachable()) {
        return 0;
    }
    std::uint32_t count = 0;
    const std::size_t used = used_places();
    for (std::size_t place = 0; place < used; ++place) {
        const waiter& entry = map_->waiters[place];
        const bool other =
            entry.key.load() == key && entry.engine.load(std::memory_order_relaxed) != engine_;
        count += other ? 1 : 0;
    }
    return count;
}

std::optional<process_ref> wake_map::process_at(std::size_t place, std::uint64_t key) const noexcept {
    const waiter& entry = map_->waiters[place];
    if (key == free_entry || key == reserved_entry) {
        return std::nullopt;
    }
    return process_ref{static_cast<std::int64_t>(entry.pid.load(std::memory_order_relaxed)),
                       entry.start_time.load(std::memory_order_relaxed),
                       entry.pid_namespace.load(std::memory_order_relaxed)};
}

void wake_map::forget_dead_waiters() noexcept {
    if (!reachable()) {
        return;
    }
    const std::size_t used = used_places();
    for (std::size_t place = 0; place < used; ++place) {
        word64& key = map_->waiters[place].key;
        std::uint64_t seen = key.load();
        const auto process = process_at(place, seen);
        if (!process || liveness_of(*process, self_) != liveness::dead) {
            continue;
        }
        const std::uint64_t dead_key = seen;
        if (!key.compare_exchange_strong(seen, reserved_entry)) {
            continue;
        }
        if (process_at(place, dead_key) == process) {
            key.store(free_entry);
            continue;
        }
        // Another has tidied up before us and a living waiter has the entry. It may have missed
        // something while it was hidden. If it has left meanwhile, the entry is not ours any more.
        std::uint64_t hidden = reserved_entry;
        key.compare_exchange_strong(hidden, dead_key);
        announce(dead_key);
    }
}

std::uint32_t wake_map::sequence(std::uint64_t key) const noexcept {
    return reachable() ? map_->sequence[key % sequences].load() : 0;
}

bool wake_map::anybody_waits(std::uint64_t key) const noexcept {
    return map_->overflow.load() > 0 || count(key) > 0;
}

void wake_map::announce(std::uint64_t key) noexcept {
    if (!reachable()) {
        return;
    }
    map_->sequence[key % sequences].fetch_add(1);
    if (anybody_waits(key)) {
        wake_sleepers();
    }
}

std::uint32_t wake_map::revocations() const noexcept {
    return reachable() ? map_->revocations.load() : 0;
}

void wake_map::announce_revocation() noexcept {
    if (!reachable()) {
        return;
    }
    map_->revocations.fetch_add(1);
    wake_sleepers();
}

std::uint32_t wake_map::word() const noexcept {
    return reachable() ? map_->word.load() : 0;
}

void wake_map::sleep(std::uint32_t seen) const noexcept {
    if (!reachable()) {
        std::this_thread::sleep_for(between_attempts);
        return;
    }
    threading::sleep_while(&map_->word, seen, threading::reach::host);
}

void wake_map::wake_sleepers() noexcept {
    if (!reachable()) {
        return;
    }
    map_->word.fetch_add(1);
    threading::wake(&map_->word, INT_MAX, threading::reach::host);
}

}  // namespace holdfast::engines::local
