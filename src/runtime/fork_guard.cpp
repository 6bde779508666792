#include <runtime/fork_guard.hpp>

#include <pthread.h>

#include <atomic>

namespace holdfast::detail {

namespace {

std::atomic<std::uint32_t> generation{0};

const int registered =
    pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

std::uint32_t fork_generation() noexcept {
    static_cast<void>(registered);
    return generation.load(std::memory_order_relaxed);
}

}  // namespace holdfast::detail
