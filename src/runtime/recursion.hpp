#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <holdfast/error.hpp>
#include <runtime/hold.hpp>

namespace holdfast::detail {

/// Which threads are inside the recursive locks of one client, and how deep.
///
/// Re-entrance is by name and thread, whatever lock object is used: all levels of a thread in one name
/// rest on one hold. Each level belongs to the lock object that entered it, or to a lease. An object
/// that is destroyed takes its levels with it, and so does a thread that ends. Leases end by
/// themselves, on any thread. A hold without levels gives itself back.
///
/// Thread safety: all functions may be called from any thread. In a forked child, whose copy may be
/// locked for ever, nobody is inside.
class recursion_table : public std::enable_shared_from_this<recursion_table> {
public:
    using lock_object = const void*;
    static constexpr lock_object of_a_lease = nullptr;

    struct leaving {
        /// False: there is no such level.
        bool was_inside{};
        /// The last level: release it.
        std::shared_ptr<hold> last{};
    };

    recursion_table();
    recursion_table(const recursion_table&) = delete;
    recursion_table& operator=(const recursion_table&) = delete;
    ~recursion_table() = default;

    /// One level deeper. Null: the thread is not inside (take the lock, and `enter`), or its hold is
    /// lost.
    [[nodiscard]] std::shared_ptr<hold> enter_again(std::string_view name, lock_object level);
    void enter(lock_object level, const std::shared_ptr<hold>& taken);
    /// Leaves the last level that this object entered, or else the last that any object entered.
    [[nodiscard]] leaving leave(std::string_view name, lock_object level) noexcept;
    /// Ends the level of a lease, on whatever thread. True: it was the last, so release the hold.
    [[nodiscard]] bool end_lease(const hold& taken) noexcept;

    [[nodiscard]] std::uint32_t depth(std::string_view name) const noexcept;
    /// This thread's hold; null when it is not inside.
    [[nodiscard]] std::shared_ptr<hold> hold_of(std::string_view name) const noexcept;

    void forget_object(lock_object gone) noexcept;
    void forget_thread(std::uint64_t gone) noexcept;

private:
    struct entry {
        std::shared_ptr<hold> taken;
        /// The first level first.
        std::vector<lock_object> levels;
    };
    /// Threads share a mutex with few others, so that they hardly meet.
    struct shard {
        std::mutex guard;
        std::unordered_map<std::uint64_t, std::vector<entry>> threads;

        [[nodiscard]] entry* find(std::uint64_t thread, std::string_view name) noexcept;
        void erase(std::uint64_t thread, const entry* gone) noexcept;
    };
    static constexpr std::size_t shard_count = 16;

    static void take_out_ended(std::vector<entry>& entries, std::vector<entry>& over);
    [[nodiscard]] shard& shard_of(std::uint64_t thread) const noexcept {
        return shards_[thread % shard_count];
    }
    [[nodiscard]] bool forked() const noexcept;

    mutable std::array<shard, shard_count> shards_;
    std::uint32_t generation_;
};

}  // namespace holdfast::detail
