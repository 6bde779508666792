#pragma once

#include <algorithm>
#include <chrono>

#include <common/backoff.hpp>
#include <holdfast/clock.hpp>

namespace holdfast::engines::redis {

/// When the map of a cluster is fetched next: every few seconds, and soon when something is wrong with
/// it. At once after a calm time, then with growing, jittered pauses.
class cluster_refresh {
public:
    [[nodiscard]] clock::time_point due() const noexcept { return due_; }

    /// The map is being fetched. Whoever finds out later that it is wrong wants a newer one.
    void begin(clock::time_point now) noexcept {
        began_ = now;
        due_ = now + usual_pause;
    }

    /// Something is wrong with the map. False: it is being fetched, or soon will be.
    bool want(clock::time_point now) {
        if (due_ <= began_ + longest_pause) {
            return false;
        }
        const bool calm = now - began_ > 4 * longest_pause;
        if (calm) {
            pauses_.succeeded();
        }
        const auto pause =
            calm ? clock::duration::zero() : std::min<clock::duration>(pauses_.next(), longest_pause);
        due_ = std::min(due_, std::max(now, began_ + pause));
        return true;
    }

private:
    /// When nothing is wrong.
    static constexpr std::chrono::seconds usual_pause{5};
    /// While something is wrong.
    static constexpr std::chrono::milliseconds longest_pause{500};

    clock::time_point began_{};
    clock::time_point due_{};
    backoff pauses_;
};

}  // namespace holdfast::engines::redis
