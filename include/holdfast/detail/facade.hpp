#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace holdfast::detail {

class hold;

/// A number of this thread's own that, unlike `std::thread::id`, is never used again.
[[nodiscard]] std::uint64_t this_thread_number() noexcept;

/// The holds taken through one lock object with std names. Usually none or one: more when a
/// lease was lost and its thread has not unlocked yet while another thread got the lock, or with
/// shared locks.
class facade_holds {
public:
    void add(std::shared_ptr<hold> taken);
    /// The hold this thread took last, or else the oldest. Null when there is none.
    [[nodiscard]] std::shared_ptr<hold> take() noexcept;
    [[nodiscard]] std::shared_ptr<hold> peek() const noexcept;

private:
    struct entry {
        std::uint64_t thread;
        std::shared_ptr<hold> taken;
    };
    [[nodiscard]] std::vector<entry>::const_iterator find() const noexcept;

    mutable std::mutex guard_;
    std::vector<entry> entries_;
};

}  // namespace holdfast::detail
