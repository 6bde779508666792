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

namespace {

[[nodiscard]] bool majority_names(std::span<const std::optional<sentinel_view>> views,
                                  const node_address& master) {
    const auto voices = std::count_if(views.begin(), views.end(),
                                      [&](const auto& each) { return each && each->master == master; });
    return 2 * voices > std::ssize(views);
}

}  // namespace

bool master_choice::consider(std::span<const std::optional<sentinel_view>> views, presence current,
                             clock::time_point now) {
    const auto best = newest_view(views);
    if (!best) {
        doubted_.reset();
        return false;
    }
    if (current_ && best->epoch < current_->epoch) {
        if (current == presence::there && !majority_names(views, best->master)) {
            doubted_.reset();
            return false;
        }
        doubted_ = doubted_.value_or(now);
        if (now - *doubted_ < patience_) {
            return false;
        }
    }
    doubted_.reset();
    const bool changes = !current_ || best->master != current_->master;
    current_ = best;
    return changes;
}

}  // namespace holdfast::engines::redis
