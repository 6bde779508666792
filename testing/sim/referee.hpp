#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <context.hpp>

namespace holdfast::testing::sim {

/// One hold as its user sees it.
struct hold_view {
    /// Unique in the run; zero: none.
    std::uint64_t serial{};
    std::uint8_t client{};
    std::size_t lock{};
    claim_mode mode{};
    std::uint32_t permits{1};
    fencing_token token;
    owner_id owner;
    clock::time_point valid_until;
};

/// A resource that remembers the largest token it has seen and refuses smaller ones.
struct fenced_resource {
    fencing_token largest;
    std::uint64_t user_of_largest{};
    std::uint64_t value{};
    std::uint64_t accepted{};
};

/// Sees every hold from outside, in true time, and judges what users are promised.
class referee {
public:
    explicit referee(context& run) noexcept : run_{run} {}

    /// The largest token of a completed grant: what begins now must get a larger one.
    [[nodiscard]] fencing_token largest_completed(std::size_t lock) const noexcept {
        return locks_[lock].largest_completed;
    }
    /// Returns the serial number.
    std::uint64_t hold_begins(hold_view hold, fencing_token began_after);
    void hold_extended(std::uint64_t serial, clock::time_point valid_until);
    void hold_changes_mode(std::uint64_t serial, claim_mode mode, fencing_token token);
    /// Released, lost, or its client crashed.
    void hold_ends(std::uint64_t serial);

    /// Read-modify-write, first half: announces the token, reads. None: refused.
    [[nodiscard]] std::optional<std::uint64_t> read(const hold_view& hold);
    /// Second half. False: refused.
    bool write(const hold_view& hold, std::uint64_t seen);
    /// In one step.
    bool increment(const hold_view& hold);
    void check_counters();
    [[nodiscard]] std::uint64_t grants() const noexcept { return last_serial_; }

private:
    struct lock_state {
        fencing_token largest_completed;
        std::vector<fencing_token> tokens;
        std::vector<hold_view> holds;
        fenced_resource resource;
    };

    void check_exclusion(const lock_state& lock, const hold_view& newest);
    void check_permits(const lock_state& lock, const hold_view& newest);
    void check_token_is_new(lock_state& lock, const hold_view& hold);
    [[nodiscard]] bool admit(const hold_view& hold);
    [[nodiscard]] hold_view* find(std::uint64_t serial);

    context& run_;
    std::array<lock_state, lock_count> locks_;
    std::uint64_t last_serial_{};
};

}  // namespace holdfast::testing::sim
