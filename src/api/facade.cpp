#include <holdfast/detail/facade.hpp>

#include <runtime/hold.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

namespace holdfast::detail {

std::uint64_t this_thread_number() noexcept {
    static std::atomic<std::uint64_t> last{0};
    thread_local const std::uint64_t mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return mine;
}

void facade_holds::add(std::shared_ptr<hold> taken) {
    const std::lock_guard lock{guard_};
    entries_.push_back({this_thread_number(), std::move(taken)});
}

std::vector<facade_holds::entry>::const_iterator facade_holds::find() const noexcept {
    const auto me = this_thread_number();
    const auto mine = std::find_if(entries_.rbegin(), entries_.rend(),
                                   [me](const entry& one) { return one.thread == me; });
    return mine == entries_.rend() ? entries_.begin() : std::prev(mine.base());
}

std::shared_ptr<hold> facade_holds::take() noexcept {
    const std::lock_guard lock{guard_};
    const auto found = find();
    if (found == entries_.end()) {
        return nullptr;
    }
    auto taken = found->taken;
    entries_.erase(found);
    return taken;
}

std::shared_ptr<hold> facade_holds::peek() const noexcept {
    const std::lock_guard lock{guard_};
    const auto found = find();
    return found == entries_.end() ? nullptr : found->taken;
}

}  // namespace holdfast::detail
