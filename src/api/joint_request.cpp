#include <api/joint_request.hpp>

#include <utility>

namespace holdfast::detail {

namespace {

/// How long a call whose time is over waits for what it gives back. Mostly that is confirmed by then,
/// so that a caller which gave up finds the locks free.
constexpr std::chrono::milliseconds rollback_patience{50};

/// What was taken so far, given back unless it is kept.
class partial_hold {
public:
    partial_hold() = default;
    partial_hold(const partial_hold&) = delete;
    partial_hold& operator=(const partial_hold&) = delete;
    ~partial_hold() {
        if (!taken_.empty()) {
            release_together(taken_, clock::now() + rollback_patience);
        }
    }

    void add(std::shared_ptr<hold> one) { taken_.push_back(std::move(one)); }
    [[nodiscard]] std::size_t size() const noexcept { return taken_.size(); }
    [[nodiscard]] const hold* lost_member() const noexcept {
        for (const auto& one : taken_) {
            if (one->loss() != errc{}) {
                return one.get();
            }
        }
        return nullptr;
    }
    [[nodiscard]] std::vector<std::shared_ptr<hold>> keep() noexcept {
        return std::exchange(taken_, {});
    }

private:
    std::vector<std::shared_ptr<hold>> taken_;
};

[[nodiscard]] bool time_is_up(const patience& how_long) {
    return how_long.deadline && clock::now() >= *how_long.deadline;
}

/// One after the other, in order: whoever waits holds only what comes before.
[[nodiscard]] bool take_in_order(const std::vector<joint_target>& targets, const lease_options& options,
                                 const patience& how_long, const std::stop_token& stop,
                                 partial_hold& taken) {
    for (const auto& [where, name] : targets) {
        if (taken.size() > 0 && time_is_up(how_long)) {
            return false;
        }
        auto one = take(where, name, options, {}, how_long, stop);
        if (!one) {
            return false;
        }
        taken.add(std::move(one));
    }
    return true;
}

}  // namespace

std::shared_ptr<joint_hold> take_all(const std::vector<joint_target>& targets,
                                     const lease_options& options, const patience& how_long,
                                     const std::stop_token& stop) {
    while (true) {
        partial_hold taken;
        if (!take_in_order(targets, options, how_long, stop, taken)) {
            return nullptr;
        }
        const auto* const gone = taken.lost_member();
        if (gone == nullptr) {
            return std::make_shared<joint_hold>(taken.keep(), options.release_timeout);
        }
        // The first ones may have ended while we waited for the last: a lease without renewal, or one
        // that was revoked.
        if (!how_long.wait || time_is_up(how_long)) {
            failure{gone->loss(), "it was lost before the last of the others was there"}.raise(
                describe(*gone->from(), gone->name()));
        }
    }
}

}  // namespace holdfast::detail
