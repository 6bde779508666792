#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <core/terms.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/engine.hpp>

namespace holdfast::core {

/// What a call asks for.
struct claim {
    std::string name;
    claim_mode mode{claim_mode::exclusive};
    std::uint32_t permits{1};
    std::uint32_t limit{};
    core::terms terms;
    /// None: as long as it takes.
    std::optional<clock::time_point> deadline;
    /// False: ask once.
    bool wait{true};
    lock_kind kind{lock_kind::mutex};

    /// Whether threads of this process share one contest. Where the store keeps a line, every thread
    /// has its own place in it.
    [[nodiscard]] bool queues_here() const noexcept {
        return mode == claim_mode::exclusive && kind != lock_kind::fair_mutex;
    }
    /// Whether the waiters of this process ask the store in turn (see `asking_turns`).
    [[nodiscard]] bool asks_in_turn() const noexcept { return mode != claim_mode::exclusive && wait; }
};

}  // namespace holdfast::core
