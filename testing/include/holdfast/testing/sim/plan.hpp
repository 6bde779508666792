#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

/// What a simulated run consists of. Everything follows from the seed; the minimiser takes parts away.
namespace holdfast::testing::sim {

/// What may go wrong, and what the simulated users may do. A seed switches each on or off, so that
/// some runs show one fault alone and others many at once.
enum class feature : std::uint8_t {
    // the network
    lose_request,
    lose_reply,
    long_delay,
    reset_connection,
    late_request,  ///< what was on the wire at a reset may still reach the store, much later
    lose_hint,
    delay_hint,
    spurious_hint,
    // the store
    restart_store,
    lose_data,
    slow_store,
    clock_forward,
    clock_backward,
    revoke,
    // the clients
    pause_client,
    crash_client,
    shut_down_client,
    // the users
    try_once,
    timed,
    cancel,
    max_hold,
    fixed_lease,
    shared,
    permits,
    convert,
    linger,
    late_release,
    fair,            ///< one of the locks has a line in the store
    refuse_release,  ///< (the store) answers a release with an error and does nothing
    impatient,       ///< lets go of a lease while it is being converted
    count,
};

[[nodiscard]] std::string_view name_of(feature what) noexcept;

class feature_set {
public:
    [[nodiscard]] bool has(feature what) const noexcept { return (bits_ & bit(what)) != 0; }
    [[nodiscard]] bool any_of(std::initializer_list<feature> some) const noexcept;
    void add(feature what) noexcept { bits_ |= bit(what); }
    void remove(feature what) noexcept { bits_ &= ~bit(what); }

private:
    [[nodiscard]] static constexpr std::uint32_t bit(feature what) noexcept {
        return std::uint32_t{1} << static_cast<unsigned>(what);
    }
    std::uint32_t bits_{};
};

/// Safety: faults for as long as the work lasts. Liveness: they end early, and then everybody must
/// finish within a bound that follows from the settings.
enum class mode : std::uint8_t { safety, liveness };

struct plan {
    std::uint64_t seed{};
    mode kind{mode::safety};
    feature_set features;
    std::uint32_t clients{2};
    /// Per client, at most.
    std::uint32_t threads{1};
    /// Acquisitions per thread.
    std::uint32_t rounds{1};

    // What the minimiser took away. Faults are numbered in the order in which they are decided on.
    std::uint32_t last_fault{std::numeric_limits<std::uint32_t>::max()};
    /// In ascending order.
    std::vector<std::uint32_t> suppressed_faults;
};

[[nodiscard]] plan make_plan(std::uint64_t seed);
[[nodiscard]] std::string describe(const plan& what);

}  // namespace holdfast::testing::sim
