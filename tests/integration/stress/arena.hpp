#pragma once

#include <sys/types.h>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace stress {

inline constexpr std::size_t most_values = 200'000;

/// What all processes of a run see: an unprotected number, and a record of who wrote what.
struct arena {
    /// Read and written back without atomicity on purpose: only the lock protects it.
    volatile std::int64_t number;
    /// How often each value was written. More than once: two holders at a time.
    std::atomic<std::uint32_t> written[most_values];
    /// When anybody last got on, and the longest that nobody did.
    std::atomic<std::int64_t> last_progress;
    std::atomic<std::int64_t> longest_stall;
    std::atomic<std::int64_t> steps;
    std::atomic<std::int64_t> largest_token;
    std::atomic<std::int64_t> tokens_out_of_order;

    /// One step of the critical section, by a holder with this token.
    void step(std::uint64_t token);
};

/// Shared memory for the processes of one run.
class shared_arena {
public:
    shared_arena();
    shared_arena(const shared_arena&) = delete;
    shared_arena& operator=(const shared_arena&) = delete;
    ~shared_arena();
    [[nodiscard]] arena& operator*() const noexcept { return *memory_; }
    [[nodiscard]] arena* operator->() const noexcept { return memory_; }

private:
    arena* memory_;
};

class temporary_directory {
public:
    temporary_directory();
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    ~temporary_directory();
    [[nodiscard]] std::string store() const { return "local:" + (path_ / "store").string(); }

private:
    std::filesystem::path path_;
};

/// Forks. Call it before the process has threads.
[[nodiscard]] pid_t start_process(const std::function<void()>& work);
/// Its exit code, or minus the signal that killed it.
[[nodiscard]] int wait_for(pid_t process);

}  // namespace stress
