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

/// Keeps us from going back when the only sentinel that knew of a new master falls silent before the
/// others have heard of it.
///
/// For a while only: whoever sets up the sentinels anew starts counting from zero.
class master_choice {
public:
    static constexpr std::chrono::seconds patience{5};

    /// Whether the master is another one now.
    [[nodiscard]] bool consider(std::span<const std::optional<sentinel_view>> views,
                                clock::time_point now);
    /// Nothing before the first.
    [[nodiscard]] const std::optional<sentinel_view>& current() const noexcept { return current_; }

private:
    std::optional<sentinel_view> current_;
    /// Since when all who say anything know only of something older.
    std::optional<clock::time_point> doubted_;
};

}  // namespace holdfast::engines::redis
