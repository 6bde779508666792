#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <holdfast/clock.hpp>
#include <redis/net/settings.hpp>

/// Whom to believe when sentinels disagree. Pure functions.
namespace holdfast::engines::redis {

/// Who the master is, in the words of one sentinel.
struct sentinel_view {
    node_address master;
    /// The number of the configuration (`config-epoch`). Zero where we may not ask for it.
    std::uint64_t epoch{};
    friend bool operator==(const sentinel_view&, const sentinel_view&) = default;
};

/// What the words of those that can be reached come to.
///
/// The newest configuration counts: a majority of the sentinels agrees on every one before it is made,
/// and gives it a higher number than those before. A sentinel that was cut off and still names the old
/// master is overruled by a single one that knows better, and so is a restarted master that takes
/// itself for one. Among equal numbers (before the first failover, or where they are not told) most
/// voices count, then the order of the address.
[[nodiscard]] std::optional<sentinel_view> newest_view(
    std::span<const std::optional<sentinel_view>> views);

/// Keeps us from going back to an older configuration: when those that knew of a new master fall
/// silent, a sentinel that was cut off may still name the old one, and another client may use the new.
///
/// A lower number counts only if more than half of the sentinels (those that are silent count as well)
/// name its master, or if the newer master is gone, and only after that has been so for a while.
/// Whoever sets up the sentinels anew starts counting from zero.
class master_choice {
public:
    static constexpr std::chrono::seconds default_patience{5};

    explicit master_choice(clock::duration patience = default_patience) : patience_{patience} {}

    /// Whether the current master can be used, as far as we know.
    enum class presence : std::uint8_t { there, gone };
    /// Whether the master is another one now.
    [[nodiscard]] bool consider(std::span<const std::optional<sentinel_view>> views, presence current,
                                clock::time_point now);
    /// Nothing before the first.
    [[nodiscard]] const std::optional<sentinel_view>& current() const noexcept { return current_; }

private:
    clock::duration patience_;
    std::optional<sentinel_view> current_;
    /// Since when an older configuration may count.
    std::optional<clock::time_point> doubted_;
};

}  // namespace holdfast::engines::redis
