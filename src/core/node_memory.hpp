#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>

namespace holdfast::core {

/// Memory for the nodes of maps whose entries come and go. Keeps a few freed nodes of each size for the
/// next ones, which is several times as fast as the heap.
///
/// Not thread-safe: belongs to whoever has the maps, and outlives them.
class node_memory final : public std::pmr::memory_resource {
public:
    node_memory() = default;
    node_memory(const node_memory&) = delete;
    node_memory& operator=(const node_memory&) = delete;
    ~node_memory() override {
        for (auto& each : free_) {
            while (each.first != nullptr) {
                ::operator delete(pop(each));
            }
        }
    }

private:
    struct node {
        node* next;
    };
    struct free_list {
        node* first{};
        std::uint32_t count{};
    };

    static constexpr std::size_t step = 64;
    static constexpr std::size_t largest = 1024;
    static constexpr std::uint32_t most_kept = 32;

    [[nodiscard]] static bool kept(std::size_t size, std::size_t alignment) noexcept {
        return size <= largest && alignment <= alignof(std::max_align_t);
    }
    [[nodiscard]] static std::size_t list_of(std::size_t size) noexcept { return (size - 1) / step; }
    [[nodiscard]] static void* pop(free_list& from) noexcept {
        auto* const taken = from.first;
        from.first = taken->next;
        --from.count;
        return taken;
    }

    void* do_allocate(std::size_t size, std::size_t alignment) override {
        if (!kept(size, alignment)) {
            return std::pmr::new_delete_resource()->allocate(size, alignment);
        }
        const auto which = list_of(size);
        return free_[which].first != nullptr ? pop(free_[which]) : ::operator new((which + 1) * step);
    }
    void do_deallocate(void* what, std::size_t size, std::size_t alignment) override {
        if (!kept(size, alignment)) {
            std::pmr::new_delete_resource()->deallocate(what, size, alignment);
            return;
        }
        auto& list = free_[list_of(size)];
        if (list.count == most_kept) {
            ::operator delete(what);
            return;
        }
        list.first = ::new (what) node{list.first};
        ++list.count;
    }
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        return this == &other;
    }

    std::array<free_list, largest / step> free_;
};

}  // namespace holdfast::core
