#include <holdfast/testing/sim/simulation.hpp>

#include <algorithm>
#include <functional>

namespace holdfast::testing::sim {

namespace {

/// Keeps a change if the same promise is still broken.
class minimiser {
public:
    explicit minimiser(const plan& failing) : best_{failing}, outcome_{sim::run(failing)} {}

    [[nodiscard]] plan run() {
        if (outcome_.ok()) {
            return best_;
        }
        // Less of one thing often makes less of another possible.
        for (bool smaller = true; smaller && tries_left_ > 0;) {
            smaller = without_features();
            smaller = fewer(&plan::clients, 2) || smaller;
            smaller = fewer(&plan::threads, 1) || smaller;
            smaller = fewer(&plan::rounds, 1) || smaller;
            smaller = shorter() || smaller;
            smaller = without_faults() || smaller;
        }
        return best_;
    }

private:
    bool keep_if_it_fails(const plan& candidate) {
        if (tries_left_ == 0) {
            return false;
        }
        --tries_left_;
        auto outcome = sim::run(candidate);
        if (outcome.invariant != outcome_.invariant) {
            return false;
        }
        best_ = candidate;
        outcome_ = std::move(outcome);
        return true;
    }

    bool without_features() {
        bool smaller = false;
        for (std::size_t i = 0; i < static_cast<std::size_t>(feature::count); ++i) {
            const auto what = static_cast<feature>(i);
            if (best_.features.has(what)) {
                auto candidate = best_;
                candidate.features.remove(what);
                smaller = keep_if_it_fails(candidate) || smaller;
            }
        }
        return smaller;
    }

    bool fewer(std::uint32_t plan::*number, std::uint32_t least) {
        for (auto value = least; value < best_.*number; ++value) {
            auto candidate = best_;
            candidate.*number = value;
            if (keep_if_it_fails(candidate)) {
                return true;
            }
        }
        return false;
    }

    /// Cuts off the last faults, half of them at a time.
    bool shorter() {
        bool smaller = false;
        while (!outcome_.faults.empty()) {
            auto candidate = best_;
            candidate.last_fault = outcome_.faults[outcome_.faults.size() / 2];
            if (candidate.last_fault >= best_.last_fault || !keep_if_it_fails(candidate)) {
                break;
            }
            smaller = true;
        }
        return smaller;
    }

    bool without_faults() {
        bool smaller = false;
        const auto happened = outcome_.faults;
        for (auto number = happened.rbegin(); number != happened.rend(); ++number) {
            auto candidate = best_;
            auto& list = candidate.suppressed_faults;
            if (!std::binary_search(list.begin(), list.end(), *number)) {
                list.insert(std::upper_bound(list.begin(), list.end(), *number), *number);
                smaller = keep_if_it_fails(candidate) || smaller;
            }
        }
        return smaller;
    }

    plan best_;
    result outcome_;
    std::uint32_t tries_left_{3000};
};

}  // namespace

plan minimise(const plan& failing) {
    return minimiser{failing}.run();
}

}  // namespace holdfast::testing::sim
