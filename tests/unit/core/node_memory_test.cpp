#include <gtest/gtest.h>

#include <core/node_memory.hpp>

#include <vector>

using holdfast::core::node_memory;

TEST(node_memory, what_was_freed_is_used_again) {
    node_memory memory;
    auto* const first = memory.allocate(100);
    memory.deallocate(first, 100);

    auto* const next = memory.allocate(120);

    EXPECT_EQ(next, first) << "both are of the size of two cache lines";
    memory.deallocate(next, 120);
}

TEST(node_memory, sizes_do_not_mix) {
    node_memory memory;
    auto* const small = memory.allocate(64);
    memory.deallocate(small, 64);

    auto* const larger = memory.allocate(65);

    EXPECT_NE(larger, small);
    memory.deallocate(larger, 65);
}

TEST(node_memory, large_and_overaligned_ones_come_from_the_heap) {
    node_memory memory;
    auto* const large = memory.allocate(5000);
    auto* const aligned = memory.allocate(128, 128);

    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 128, 0U);

    memory.deallocate(large, 5000);
    memory.deallocate(aligned, 128, 128);
}

/// The address sanitizer sees what is left.
TEST(node_memory, only_a_few_are_kept) {
    node_memory memory;
    std::vector<void*> many;
    for (int i = 0; i < 1000; ++i) {
        many.push_back(memory.allocate(64));
    }
    for (auto* const one : many) {
        memory.deallocate(one, 64);
    }
    std::size_t kept = 0;
    std::vector<void*> again;
    for (int i = 0; i < 32; ++i) {
        again.push_back(memory.allocate(64));
        kept += again.back() == many[static_cast<std::size_t>(31 - i)] ? 1 : 0;
    }

    EXPECT_EQ(kept, 32U);
    for (auto* const one : again) {
        memory.deallocate(one, 64);
    }
}
