#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace holdfast::engines::local {

/// Keeps other programs from taking themselves for the only ones that have a file open:
///
///     locks.db       they would delete the journal when they close it
///     locks.db-shm   they would empty this memory, which SQLite shares among processes, and end those
///     who
///                    are at work in it with SIGBUS
///
/// SQLite has locks against both. They go when any part of this process closes the file (see
/// `write_lock`), and while this process forks, because all connections are closed then. The lock of a
/// guard belongs to an open file.
///
/// There is one guard for each file in a process. Closing the file drops SQLite's locks on it. So a
/// store gets its guards before SQLite opens the files, and a file is closed when the last store that
/// uses it closes its guard.
///
/// A forked child keeps nothing of its parent's guards.
///
/// Thread safety: all functions may be called from any thread.
class file_guard {
public:
    enum class part : std::uint8_t { database, shared_memory };
    using pointer = std::shared_ptr<file_guard>;

    /// Opens the file; nothing if it is not there. Throws `database_error`.
    [[nodiscard]] static pointer of(const std::string& path, part which);
    /// SQLite has to have the file open: it cannot switch to a journal of this kind while a guard is
    /// locked. Throws `database_error`, also without a guard.
    static void lock(const pointer& guard);
    /// Both do nothing without a guard, nor while another store of this process uses it.
    static void unlock(const pointer& guard) noexcept;
    static void close(pointer& guard) noexcept;

    file_guard(int file, part which) noexcept : file_{file}, part_{which} {}
    file_guard(const file_guard&) = delete;
    file_guard& operator=(const file_guard&) = delete;
    ~file_guard();

    /// Whether another process has locked a guard of the shared memory.
    [[nodiscard]] bool others_have_it() const noexcept;

    /// Registers the fork handlers. Call this before registering handlers that wait for a thread which
    /// may be making a guard: handlers registered first run last.
    static void prepare_for_forks();

private:
    static void close_in_child() noexcept;

    int file_;
    const part part_;
};

}  // namespace holdfast::engines::local
