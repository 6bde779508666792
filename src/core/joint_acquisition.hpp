#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>

namespace holdfast::core {

/// One of several locks. A lock is the same in every client of its store, so the store's identity and
/// the name are what it is sorted by, and what makes it a double of another.
struct joint_place {
    std::string_view store;
    std::string_view name;

    friend auto operator<=>(const joint_place&, const joint_place&) = default;
};

/// In which order they are taken, as indices of `all`, doubles dropped.
[[nodiscard]] std::vector<std::size_t> joint_order(const std::vector<joint_place>& all);

/// One caller's way to several locks, all of them or none.
///
///     ┌─▶ ask together ── busy ──▶ wait for it and those before, one by one ─┐
///     │        │ taken                 │ taken          error, cancelled,    │
///     └── the rest ◀───────────────────┘                time is up           │
///              ▼                                             ▼               │
///            check ── one is over by now: again ─────▶  give back ◀──────────┘
///              ▼                                             ▼
///            (held)                                         end
///
/// Locks are numbered in their order (`joint_order`). Whoever waits for one holds only those before it,
/// so several callers cannot wait for each other in a circle, and what one has waited for it holds, so
/// that it makes progress like a plain contender. What is given back is given back whatever the caller
/// wants meanwhile.
///
/// The driver asks for the `next` move, makes it, and tells how it went. Knows no clock, thread or
/// store.
class joint_acquisition {
public:
    struct patience {
        bool wait{true};
        /// None: as long as it takes.
        std::optional<clock::time_point> deadline{};
    };

    /// How long a call whose time is over waits for what it gives back, or for an answer that is
    /// coming. Mostly that is confirmed by then, so that a caller which gave up finds the locks free.
    static constexpr std::chrono::milliseconds last_moment{50};

    struct move {
        enum class kind : std::uint8_t {
            ask_together,  ///< for all of `which` in one request: `on_taken` for each, `on_answered`
            wait_for,      ///< for the one in `which`, in its line: the same
            give_back,     ///< `which`, and wait `last_moment` at most: `on_given_back`
            check,         ///< all are taken. One is over by now: `on_lost`. Otherwise that was all
            end,           ///< nothing is held; for `why`, or because it was busy or cancelled
        } what{};
        /// In ascending order. For `end`: the one with the trouble.
        std::vector<std::size_t> which;
        failure reason;
    };

    /// `together` says how many, from one on, the store can be asked for in one request.
    joint_acquisition(std::size_t count, const patience& how_long,
                      std::function<std::size_t(std::size_t first)> together);

    [[nodiscard]] move next(clock::time_point now);

    void on_taken(std::size_t index) { held_[index] = true; }
    /// To `ask_together` and `wait_for`. `busy`: after `errc::busy`, which of those asked for.
    void on_answered(const failure& reason, std::size_t busy = 0);
    void on_given_back();
    void on_lost(std::size_t index, failure reason, clock::time_point now);
    /// The caller has stopped waiting. Of no effect once all are taken.
    void cancel() noexcept { cancelled_ = true; }

    /// By when a request for several must be answered.
    [[nodiscard]] clock::time_point answer_by(clock::time_point now) const noexcept;

private:
    enum class state : std::uint8_t { going_on, starting_over, ending };

    [[nodiscard]] bool time_is_up(clock::time_point now) const noexcept {
        return how_long_.deadline && now >= *how_long_.deadline;
    }
    [[nodiscard]] std::vector<std::size_t> held_from(std::size_t first) const;
    [[nodiscard]] move give_back(std::vector<std::size_t> indices);
    [[nodiscard]] move ask(clock::time_point now);
    void end(failure reason = {}, std::size_t index = 0);

    patience how_long_;
    std::function<std::size_t(std::size_t)> together_;
    std::vector<bool> held_;
    /// All before this one are taken.
    std::size_t taken_{};
    /// Those before this one are waited for one by one.
    std::size_t alone_until_{};
    std::vector<std::size_t> asked_;
    state state_{state::going_on};
    std::size_t trouble_with_{};
    failure trouble_;
    bool cancelled_{};
};

}  // namespace holdfast::core
