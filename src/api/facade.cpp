#include <holdfast/detail/facade.hpp>

#include <atomic>

namespace holdfast::detail {

std::uint64_t this_thread_number() noexcept {
    static std::atomic<std::uint64_t> last{0};
    thread_local const std::uint64_t mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return mine;
}

}  // namespace holdfast::detail
