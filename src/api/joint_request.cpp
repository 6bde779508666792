#include <api/joint_request.hpp>

#include <algorithm>
#include <optional>
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

/// What one call of `take_all` wants.
struct joint_wish {
    const std::vector<joint_target>& targets;
    const lease_options& options;
    const patience& how_long;
    const std::stop_token& stop;
};

/// So many in one request, so that the store can serve others in between.
constexpr std::size_t most_together = 64;

/// How many from `first` on the store can be asked for in one request.
[[nodiscard]] std::size_t how_many_together(const joint_wish& what, std::size_t first) {
    auto& where = *what.targets[first].where;
    std::vector<std::string> names{what.targets[first].name};
    if (what.options.replicas != replica_policy{} || !where.acquires_together(names)) {
        return 1;
    }
    const auto end = std::min(what.targets.size(), first + most_together);
    for (auto index = first + 1; index < end && what.targets[index].where.get() == &where; ++index) {
        names.push_back(what.targets[index].name);
    }
    // Mostly it is all of them. Of a cluster's names, those in one slot may be neighbours.
    if (where.acquires_together(names)) {
        return names.size();
    }
    const auto all = std::exchange(names, {names.front()});
    while (where.acquires_together(names)) {
        names.push_back(all[names.size()]);
    }
    return names.size() - 1;
}

[[nodiscard]] std::vector<core::claim> claims_of(const joint_wish& what, std::size_t first,
                                                 std::size_t count) {
    std::vector<core::claim> claims;
    for (auto index = first; index < first + count; ++index) {
        const auto& [where, name] = what.targets[index];
        claims.push_back(claim_for(*where, name, what.options, {}, patience::none()));
    }
    return claims;
}

/// By when a request must be answered: the caller's time, or a moment more rather than be cut off while
/// the answer is coming.
[[nodiscard]] clock::time_point answer_by(const patience& how_long) {
    if (!how_long.deadline) {
        return clock::time_point::max();
    }
    return std::max<clock::time_point>(*how_long.deadline, clock::now() + rollback_patience);
}

/// Waits for `targets[taken.size()]` … `targets[end − 1]`, one after the other, in order: whoever waits
/// holds only what comes before.
[[nodiscard]] bool take_one_by_one(const joint_wish& what, std::size_t end, partial_hold& taken) {
    while (taken.size() < end) {
        if (taken.size() > 0 && time_is_up(what.how_long)) {
            return false;
        }
        const auto& [where, name] = what.targets[taken.size()];
        auto one = take(where, name, what.options, {}, what.how_long, what.stop);
        if (!one) {
            return false;
        }
        taken.add(std::move(one));
    }
    return true;
}

/// Asks for the next `count` in one request. All of them are taken, or none, and then it says how many
/// to wait for one by one before the rest is worth asking for again; nothing: the call is over.
[[nodiscard]] std::optional<std::size_t> take_together(const joint_wish& what, std::size_t count,
                                                       partial_hold& taken) {
    const auto claims = claims_of(what, taken.size(), count);
    auto& where = *what.targets[taken.size()].where;
    auto got = where.acquire_together(claims, answer_by(what.how_long), what.stop);
    if (got.taken.size() == count) {
        for (auto& one : got.taken) {
            taken.add(std::move(one));
        }
        return 0;
    }
    partial_hold given_back;
    for (auto& one : got.taken) {
        given_back.add(std::move(one));
    }
    const bool busy = got.error.code == errc::busy;
    if (got.error.code == errc::cancelled || (busy && !what.how_long.wait)) {
        return std::nullopt;
    }
    const bool may_pass =
        got.error.code == errc::store_unavailable || got.error.code == errc::outcome_unknown;
    if (!busy && (!what.how_long.wait || !may_pass)) {
        got.error.raise(describe(where, claims.front().name));
    }
    // A store that does not answer is waited for as by everybody.
    return busy ? got.busy + 1 : 1;
}

/// Asks for as many as possible in one request, and waits for the first that is busy as everybody does,
/// in the line of its name; then asks for the rest in one request again. So whoever waits makes
/// progress like a plain contender: what it has waited for it holds.
[[nodiscard]] bool take_in_order(const joint_wish& what, partial_hold& taken) {
    while (taken.size() < what.targets.size()) {
        const auto count = how_many_together(what, taken.size());
        const auto one_by_one = count > 1 ? take_together(what, count, taken) : 1;
        if (!one_by_one || !take_one_by_one(what, taken.size() + *one_by_one, taken)) {
            return false;
        }
    }
    return true;
}

}  // namespace

std::shared_ptr<joint_hold> take_all(const std::vector<joint_target>& targets,
                                     const lease_options& options, const patience& how_long,
                                     const std::stop_token& stop) {
    while (true) {
        partial_hold taken;
        if (!take_in_order({targets, options, how_long, stop}, taken)) {
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
