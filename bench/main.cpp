// Figures are ratios taken in one run: machines differ, and are busy with other things.

#include "measure.hpp"

#include <algorithm>
#include <exception>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>

namespace {

struct section {
    std::string_view name;
    std::vector<bench::figure> (*run)();
};

constexpr section sections[]{
    {"uncontended", bench::uncontended},
    {"reentry", bench::reentry},
    {"handover", bench::handover},
#ifdef HOLDFAST_BENCH_REDIS
    {"redis", bench::redis},
    {"quorum", bench::quorum},
    {"segments", bench::segments},
#endif
#ifdef HOLDFAST_BENCH_GUARDS
    {"guards", bench::guards},
#endif
};

}  // namespace

/// `holdfast_bench [SECTION…]`. Exits with 1 when a goal is missed.
int main(int count, char** arguments) {
    try {
        bool all_met = true;
        for (const auto& [name, run] : sections) {
            if (count > 1 && std::find(arguments + 1, arguments + count, name) == arguments + count) {
                continue;
            }
            std::cout << name << '\n';
            for (const auto& one : run()) {
                std::cout << "  " << one.subject << ": " << one.measured;
                if (!one.goal.empty()) {
                    std::cout << "   (goal " << one.goal << ": " << (one.met ? "met" : "MISSED") << ")";
                }
                std::cout << '\n';
                all_met = all_met && one.met;
            }
        }
        return all_met ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << "bench: " << error.what() << '\n';
        return 2;
    }
}
