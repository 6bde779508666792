#include <api/joint_request.hpp>

#include <core/joint_acquisition.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::detail {

namespace {

using core::joint_acquisition;

/// What was taken so far, by its number; given back unless it is kept.
class partial_hold {
public:
    explicit partial_hold(std::size_t count) : taken_(count) {}
    partial_hold(const partial_hold&) = delete;
    partial_hold& operator=(const partial_hold&) = delete;
    ~partial_hold() { give_back(std::move(taken_)); }

    void put(std::size_t which, std::shared_ptr<hold> one) { taken_[which] = std::move(one); }
    void give_back(const std::vector<std::size_t>& which) {
        std::vector<std::shared_ptr<hold>> some;
        some.reserve(which.size());
        for (const auto one : which) {
            some.push_back(std::move(taken_[one]));
        }
        give_back(std::move(some));
    }
    /// The first that is over, or their number.
    [[nodiscard]] std::size_t first_lost() const noexcept {
        const auto lost = [](const auto& one) { return one->loss() != errc{}; };
        return static_cast<std::size_t>(std::find_if(taken_.begin(), taken_.end(), lost) -
                                        taken_.begin());
    }
    [[nodiscard]] errc loss(std::size_t which) const noexcept { return taken_[which]->loss(); }
    [[nodiscard]] std::vector<std::shared_ptr<hold>> keep() noexcept {
        return std::exchange(taken_, {});
    }

private:
    static void give_back(std::vector<std::shared_ptr<hold>> some) noexcept {
        std::erase(some, nullptr);
        if (!some.empty()) {
            release_together(some, clock::now() + joint_acquisition::last_moment);
        }
    }

    std::vector<std::shared_ptr<hold>> taken_;
};

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

void wait_for(const joint_wish& what, std::size_t which, joint_acquisition& way, partial_hold& taken) {
    const auto& [where, name] = what.targets[which];
    auto got = where->acquire(claim_for(*where, name, what.options, {}, what.how_long), what.stop);
    if (got.taken) {
        taken.put(which, std::move(got.taken));
        way.on_taken(which);
    }
    way.on_answered(got.error);
}

void ask_together(const joint_wish& what, const std::vector<std::size_t>& which, joint_acquisition& way,
                  partial_hold& taken) {
    std::vector<core::claim> claims;
    for (const auto one : which) {
        const auto& [where, name] = what.targets[one];
        claims.push_back(claim_for(*where, name, what.options, {}, patience::none()));
    }
    auto& where = *what.targets[which.front()].where;
    auto got = where.acquire_together(claims, way.answer_by(clock::now()), what.stop);
    for (std::size_t index = 0; index < which.size(); ++index) {
        if (got.taken[index]) {
            taken.put(which[index], std::move(got.taken[index]));
            way.on_taken(which[index]);
        }
    }
    way.on_answered(got.error, got.busy);
}

/// True: all of them are held, and valid.
[[nodiscard]] bool check(joint_acquisition& way, const partial_hold& taken, std::size_t count) {
    const auto gone = taken.first_lost();
    if (gone == count) {
        return true;
    }
    way.on_lost(gone, {taken.loss(gone), "it was lost before the last of the others was there"},
                clock::now());
    return false;
}

}  // namespace

std::shared_ptr<joint_hold> take_all(const std::vector<joint_target>& targets,
                                     const lease_options& options, const patience& how_long,
                                     const std::stop_token& stop) {
    using kind = joint_acquisition::move::kind;
    const joint_wish what{targets, options, how_long, stop};
    joint_acquisition way{targets.size(), {how_long.wait, how_long.deadline}, [&](std::size_t first) {
                              return how_many_together(what, first);
                          }};
    partial_hold taken{targets.size()};
    while (true) {
        if (stop.stop_requested()) {
            way.cancel();
        }
        const auto move = way.next(clock::now());
        switch (move.what) {
            case kind::ask_together:
                ask_together(what, move.which, way, taken);
                break;
            case kind::wait_for:
                wait_for(what, move.which.front(), way, taken);
                break;
            case kind::give_back:
                taken.give_back(move.which);
                way.on_given_back();
                break;
            case kind::check:
                if (check(way, taken, targets.size())) {
                    return std::make_shared<joint_hold>(taken.keep(), options.release_timeout);
                }
                break;
            case kind::end:
                if (move.reason) {
                    const auto& [where, name] = targets[move.which.front()];
                    move.reason.raise(describe(*where, name));
                }
                return nullptr;
        }
    }
}

}  // namespace holdfast::detail
