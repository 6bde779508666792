#pragma once

#include <atomic>
#include <string>

#include <holdfast/clock.hpp>

namespace holdfast::engines::local {

/// Held by whoever writes to the store's files, or opens or closes them.
///
/// SQLite has locks of its own, but those belong to the process, and all of them go when any part of
/// the process closes one of the files: a backup or a checksum of its own directory would let a second
/// writer in. This one belongs to the open file, `wake`, and goes with it alone.
///
/// Thread safety: one thread at a time.
class write_lock {
public:
    /// Nobody waits any longer when `stopping` is set.
    write_lock(std::string path, const std::atomic<bool>& stopping)
        : path_{std::move(path)}, stopping_{stopping} {}
    write_lock(const write_lock&) = delete;
    write_lock& operator=(const write_lock&) = delete;
    ~write_lock() { close(); }

    /// Throws `database_error`, `database_busy` after the deadline.
    void lock(clock::time_point deadline);
    void unlock() noexcept;
    /// Before a fork: a child must not share the lock, which could outlive us there.
    void close() noexcept;

private:
    [[nodiscard]] bool try_lock();

    const std::string path_;
    const std::atomic<bool>& stopping_;
    int file_{-1};
};

}  // namespace holdfast::engines::local
