#include "once_per.hpp"

#include <holdfast/mutex.hpp>
#include <system_error>

namespace holdfast::cli {

using std::chrono::milliseconds;

// A tenth less than the period: schedulers on several hosts are never on time to the second, and a run
// that comes a little early must not be skipped.
once_per::once_per(client& store, const std::string& name, milliseconds period)
    : store_{store}, marker_{"once:" + name}, blocked_for_{period - period / 10} {}

std::optional<holder_info> once_per::earlier_run() {
    auto marker = store_.inspect(marker_);
    return marker.holders.empty() ? std::nullopt : std::optional{std::move(marker.holders.front())};
}

bool once_per::remember(clock::time_point started) {
    const auto rest = std::chrono::ceil<milliseconds>(started + blocked_for_ - clock::now());
    if (rest <= milliseconds{0}) {
        return true;
    }
    try {
        mutex marker{store_, marker_};
        auto held = marker.try_acquire();
        return held && held->release_after(rest) == release_outcome::released;
    } catch (const std::system_error&) {
        return false;  // the run itself was a success, and stays one
    }
}

}  // namespace holdfast::cli
