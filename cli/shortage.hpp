#pragma once

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <thread>

namespace holdfast::cli {

/// Makes threads that start later reserve less memory. Under `ulimit -v` reserved memory counts like
/// used memory: by default 8 MB for the stack of each thread, and 64 MB for the heap of each. This
/// program needs little of either.
inline void reserve_less_memory() noexcept {
    constexpr std::size_t largest_stack = std::size_t{1} << 20;
    pthread_attr_t attributes;
    std::size_t usual = 0;
    if (pthread_getattr_default_np(&attributes) == 0) {
        pthread_attr_getstacksize(&attributes, &usual);
        pthread_attr_setstacksize(&attributes, std::min(usual, largest_stack));
        pthread_setattr_default_np(&attributes);
        pthread_attr_destroy(&attributes);
    }
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1);
#endif
}

/// Throws `std::system_error` unless there is memory for everything that a command may need. A shortage
/// that shows later would look like an outage of the store, and `run` would wait for its end.
inline void require_memory() {
    constexpr std::size_t enough = std::size_t{32} << 20;
    void* all = mmap(nullptr, enough, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) {
        throw std::system_error{errno, std::generic_category(), "32 MB are needed"};
    }
    munmap(all, enough);
}

/// The same for threads.
inline void require_threads() {
    std::atomic<bool> enough{};
    std::array<std::thread, 8> all;
    const auto end = [&] {
        enough = true;
        enough.notify_all();
        for (auto& one : all) {
            if (one.joinable()) {
                one.join();
            }
        }
    };
    try {
        for (auto& one : all) {
            one = std::thread{[&enough] { enough.wait(false); }};
        }
    } catch (const std::system_error& error) {
        end();
        throw std::system_error{error.code(), "8 threads are needed"};
    }
    end();
}

}  // namespace holdfast::cli
