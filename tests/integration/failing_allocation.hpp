#pragma once

#include <cstdlib>
#include <new>

// For the whole program: one file of it includes this.

namespace {

/// So many allocations of this thread succeed before one fails; negative: all do.
thread_local long allocations_left = -1;
/// One did.
thread_local bool has_failed = false;

}  // namespace

void* operator new(std::size_t size) {
    if (allocations_left >= 0 && allocations_left-- == 0) {
        has_failed = true;
        throw std::bad_alloc{};
    }
    if (void* const memory = std::malloc(size == 0 ? 1 : size)) {
        return memory;
    }
    throw std::bad_alloc{};
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
