#pragma once

#include <memory>
#include <string>

namespace holdfast::engines::local {

/// Keeps newcomers from emptying the memory that SQLite shares among processes (`-shm`), which would
/// end those who are at work in it with SIGBUS.
///
/// SQLite has a lock against that, but it goes when any part of this process closes the file (see
/// `write_lock`). This one belongs to an open file. There is one for each file in a process: closing it
/// drops SQLite's locks on that file, so it is closed when the last store has gone that uses it.
class shm_guard {
public:
    /// Throws `database_error`.
    [[nodiscard]] static std::shared_ptr<shm_guard> of(const std::string& path);

    explicit shm_guard(int file) noexcept : file_{file} {}
    shm_guard(const shm_guard&) = delete;
    shm_guard& operator=(const shm_guard&) = delete;
    ~shm_guard();

    /// Whether another process has a guard on the file. A forked child shares its parent's guard.
    [[nodiscard]] bool others_have_it() const noexcept;

    /// Registers the fork handlers. Call this before registering handlers that wait for a thread which
    /// may be making a guard: handlers registered first run last.
    static void prepare_for_forks();

private:
    int file_;
};

}  // namespace holdfast::engines::local
