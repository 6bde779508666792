#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include <core/lock_table.hpp>
#include <dice.hpp>
#include <holdfast/testing/sim/plan.hpp>
#include <journal.hpp>
#include <schedule.hpp>

namespace holdfast::testing::sim {

using namespace std::chrono_literals;

/// The locks everybody contends for: two for exclusive use, one of them fair where the plan says so,
/// one for readers and writers, one semaphore.
inline constexpr std::size_t lock_count = 4;
inline constexpr std::size_t perhaps_fair = 1;
inline constexpr std::size_t readers_and_writers = 2;
inline constexpr std::size_t semaphore = 3;
[[nodiscard]] const std::string& lock_name(std::size_t index) noexcept;
[[nodiscard]] std::size_t lock_index(const std::string& name) noexcept;

/// A client has a new identity in every life.
[[nodiscard]] constexpr owner_id identity_of(std::uint8_t client, std::uint16_t life) noexcept {
    return {0, client * std::uint64_t{100} + life, 0};
}
[[nodiscard]] constexpr std::uint8_t client_of(const owner_id& owner) noexcept {
    return static_cast<std::uint8_t>(owner.low / 100);
}

/// The numbers of one run, drawn at its beginning.
struct setting {
    core::contention_settings contention;
    core::handover_limits handover;
    std::chrono::milliseconds ttl{};
    std::chrono::milliseconds release_timeout{};
    std::uint32_t permit_limit{};
    /// How many quarters of a ttl the store grants.
    std::uint32_t granted_quarters{4};
    /// Most users want this one.
    std::size_t favourite{};
    clock::duration longest_delay{};
    clock::duration longest_hint_delay{};
    clock::duration longest_work{};
    clock::duration longest_awakening{};
    /// When the faults end.
    clock::time_point faults_until{};
    /// When all must be over.
    clock::time_point end_by{};
    /// How soon after a release somebody who waits must have asked; zero: no promise in this run.
    clock::duration wake_up_bound{};
};

/// What every part of the simulation needs.
struct context {
    context(const plan& what, bool tracing);
    context(const context&) = delete;
    context& operator=(const context&) = delete;
    ~context() = default;

    [[nodiscard]] clock::time_point now() const noexcept { return events.now(); }
    [[nodiscard]] bool has(feature what) const noexcept { return how.features.has(what); }
    /// Adds what happens after `delay`, at a random place among what happens at the same time.
    void after(clock::duration delay, happening event);
    void at(clock::time_point when, happening event);

    const plan& how;
    schedule events;
    dice random;
    journal log;
    setting numbers;
    /// The store's clock has run evenly, it has lost nothing, and nobody has revoked anything: then
    /// leases exclude each other in true time.
    bool store_kept_its_word{true};

private:
    void draw_numbers();
    void draw_bounds();
};

}  // namespace holdfast::testing::sim
