#pragma once

#include <cstdint>
#include <optional>

#include <context.hpp>
#include <referee.hpp>

namespace holdfast::testing::sim {

/// One thread of a client that takes locks and works under them.
///
///     idle ──acquire──▶ waiting ──granted──▶ holding ◀──▶ converting
///      ▲                   │                    │            │ impatient
///      └──── not granted ──┴──── releasing ◀────┴────────────┘
struct user {
    enum class state : std::uint8_t { idle, waiting, holding, converting, releasing } doing{};
    std::uint32_t rounds_left{};
    /// Counts the user's calls, so that late checks do not hit the next one.
    std::uint64_t turn{};

    // The call that waits, then the hold.
    core::waiter_id call{};
    std::size_t lock{};
    core::claim asked;
    clock::time_point since{};
    /// When the request that was sent for this call is answered at the latest; none was sent: never.
    std::optional<clock::time_point> answer_by;
    fencing_token began_after;
    hold_view hold;
    /// When a loss must have been told. A store that says early that the lease is gone is asked why,
    /// and meanwhile the lease is not valid; its holder is told before the lease would have ended.
    clock::time_point told_by;
    bool lost{};
    /// Asks the lease before it writes, and stops when told of a loss. Others go on, as people do.
    bool careful{};
    std::uint32_t writes_left{};
    std::optional<std::uint64_t> seen;
    bool may_convert{};
    claim_mode converting_to{};

    [[nodiscard]] bool waits_for(std::size_t which) const noexcept {
        return doing == state::waiting && lock == which && asked.wait;
    }
};

/// What a user asks for next.
[[nodiscard]] core::claim draw_claim(context& run, std::size_t lock);
[[nodiscard]] std::size_t draw_lock(context& run);

}  // namespace holdfast::testing::sim
