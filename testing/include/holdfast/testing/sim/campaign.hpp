#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <holdfast/testing/sim/simulation.hpp>

namespace holdfast::testing::sim {

struct campaign {
    std::uint64_t first_seed{1};
    std::uint64_t schedules{20'000};
    std::uint32_t workers{2};
};

struct campaign_result {
    std::uint64_t schedules{};
    std::uint64_t events{};
    std::uint64_t grants{};
    /// The first seed that broke a promise, whatever the number of workers.
    std::optional<std::uint64_t> failing_seed;
};

/// Runs one schedule per seed and stops at the first that fails.
[[nodiscard]] campaign_result run(const campaign& what);

/// The mistakes that can be planted in the simulator's copy of the core (`tests/planted`).
[[nodiscard]] const std::vector<std::string_view>& bug_names();
/// Those that only a run with a quorum can show.
[[nodiscard]] const std::vector<std::string_view>& quorum_bug_names();
/// Those that only a run of callers that want several locks can show.
[[nodiscard]] const std::vector<std::string_view>& joint_bug_names();
/// Those that only a run over a store of records can show.
[[nodiscard]] const std::vector<std::string_view>& records_bug_names();
/// Those that only a run over ordered nodes can show.
[[nodiscard]] const std::vector<std::string_view>& nodes_bug_names();

/// Plants one for as long as it lives; only one at a time. An empty name plants none. An unknown name
/// throws `std::invalid_argument`.
class planted_bug {
public:
    explicit planted_bug(std::string_view name);
    planted_bug(const planted_bug&) = delete;
    planted_bug& operator=(const planted_bug&) = delete;
    ~planted_bug();
};

}  // namespace holdfast::testing::sim
