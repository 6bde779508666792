#include <redis/topology/sentinel_agreement.hpp>

#include <algorithm>

namespace holdfast::engines::redis {

std::optional<sentinel_view> newest_view(std::span<const std::optional<sentinel_view>> views) {
    std::optional<sentinel_view> best;
    std::ptrdiff_t most = 0;
    for (const auto& each : views) {
        if (!each || (best && each->epoch < best->epoch)) {
            continue;
        }
        const auto voices = std::count(views.begin(), views.end(), each);
        if (!best || each->epoch > best->epoch || voices > most) {
            best = each;
            most = voices;
        }
    }
    return best;
}

bool master_choice::consider(std::span<const std::optional<sentinel_view>> views,
                             clock::time_point now) {
    const auto best = newest_view(views);
    if (!best) {
        doubted_.reset();
        return false;
    }
    if (current_ && best->epoch < current_->epoch) {
        doubted_ = doubted_.value_or(now);
        if (now - *doubted_ < patience) {
            return false;
        }
    }
    doubted_.reset();
    const bool changes = !current_ || best->master != current_->master;
    current_ = best;
    return changes;
}

}  // namespace holdfast::engines::redis
