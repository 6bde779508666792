#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace holdfast::detail {

class hold;

/// A number of this thread's own that, unlike `std::thread::id`, is never used again.
[[nodiscard]] std::uint64_t this_thread_number() noexcept;

/// The holds taken through one lock object with std names. Usually none or one: more when a
/// lease was lost and its thread has not unlocked yet while another thread got the lock, or with
/// shared locks.
template <class Hold>
class taken_list {
public:
    void add(std::shared_ptr<Hold> taken) {
        const std::lock_guard lock{guard_};
        entries_.push_back({this_thread_number(), std::move(taken)});
    }
    /// The hold this thread took last, or else the oldest. Null when there is none.
    [[nodiscard]] std::shared_ptr<Hold> take() noexcept {
        const std::lock_guard lock{guard_};
        const auto found = find();
        if (found == entries_.end()) {
            return nullptr;
        }
        auto taken = found->taken;
        entries_.erase(found);
        return taken;
    }
    [[nodiscard]] std::shared_ptr<Hold> peek() const noexcept {
        const std::lock_guard lock{guard_};
        const auto found = find();
        return found == entries_.end() ? nullptr : found->taken;
    }

private:
    struct entry {
        std::uint64_t thread;
        std::shared_ptr<Hold> taken;
    };
    [[nodiscard]] auto find() const noexcept {
        const auto me = this_thread_number();
        const auto own = std::find_if(entries_.rbegin(), entries_.rend(),
                                      [me](const entry& one) { return one.thread == me; });
        return own == entries_.rend() ? entries_.begin() : std::prev(own.base());
    }

    mutable std::mutex guard_;
    std::vector<entry> entries_;
};

using facade_holds = taken_list<hold>;

}  // namespace holdfast::detail
