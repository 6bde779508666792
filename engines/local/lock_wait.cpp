#include <algorithm>
#include <local/lock_wait.hpp>
#include <thread>

namespace holdfast::engines::local {

lock_wait::lock_wait(clock::time_point deadline, const std::atomic<bool>& stopping)
    : deadline_{deadline},
      stopping_{stopping},
      jitter_{static_cast<std::uint64_t>(clock::now().time_since_epoch().count()) | 1} {}

/// At first it is enough to step aside.
bool lock_wait::before_attempt(int attempt) noexcept {
    constexpr int yields = 8;
    const auto now = clock::now();
    if (now >= deadline_ || stopping()) {
        return false;
    }
    if (attempt < yields) {
        std::this_thread::yield();
        return true;
    }
    // One that has waited for long is one of many: were they to look as often as a few may, hundreds of
    // processes would leave the one that writes no time to do so.
    constexpr int few = 24;
    const auto longest =
        attempt < yields + few
            ? std::min(std::chrono::microseconds{20} * (1 << std::min(attempt - yields, 5)),
                       std::chrono::microseconds{500})
            : std::chrono::milliseconds{1} * (1 << std::min((attempt - yields - few) / 4, 4));
    jitter_ ^= jitter_ << 13;
    jitter_ ^= jitter_ >> 7;
    jitter_ ^= jitter_ << 17;
    const auto pause =
        longest / 2 + std::chrono::microseconds{static_cast<std::int64_t>(
                          jitter_ % static_cast<std::uint64_t>(longest.count() / 2 + 1))};
    std::this_thread::sleep_for(std::min<clock::duration>(pause, deadline_ - now));
    return true;
}

}  // namespace holdfast::engines::local
