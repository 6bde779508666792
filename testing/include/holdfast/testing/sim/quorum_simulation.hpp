#pragma once

#include <cstdint>
#include <string>

namespace holdfast::testing::sim {

/// What a run of clients and their quorum is exposed to. Everything else is drawn from the seed.
struct quorum_plan {
    std::uint64_t seed{};
    enum class clocks : std::uint8_t {
        within_bound,  ///< rates differ by less than the quorum's allowance for drift
        beyond_bound,  ///< by ten times that
    } drift{clocks::within_bound};
    /// How far members' clocks jump, forward and backward, now and then.
    enum class steps : std::uint8_t {
        within_bound,  ///< by no more, all together, than the quorum's allowance for drift
        beyond_bound,  ///< by up to a ttl, several members at once
    } jumps{steps::within_bound};
    enum class restarts : std::uint8_t {
        keep,           ///< members restart with what they granted
        forget,         ///< empty, and vote at once
        forget_wisely,  ///< empty, and the quorum has a restart_grace
    } members{restarts::keep};

    [[nodiscard]] bool clocks_are_trusted() const noexcept {
        return drift == clocks::within_bound && jumps == steps::within_bound;
    }
};

struct quorum_result {
    /// Empty: no promise was broken.
    std::string violation;
    std::uint64_t grants{};
    std::uint64_t events{};
    /// Two clients believed in the lock at once, whether or not that breaks a promise in this plan.
    std::uint64_t overlaps{};
    /// Writes of holders that were late, which the resource turned away by their token.
    std::uint64_t stale_writes_refused{};
};

/// Several clients contend for one lock over three or five members, in virtual time: requests and
/// answers are slow, come late or get lost, members stop, crash and restart, clients are paused between
/// looking at their lease and writing, clocks run unevenly, jump and show different times.
[[nodiscard]] quorum_result run(const quorum_plan& what);

}  // namespace holdfast::testing::sim
