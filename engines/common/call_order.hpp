#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include <holdfast/clock.hpp>

namespace holdfast::engines {

/// Keeps the requests of one client on one name in the order in which they were made, whether they run
/// in the caller's thread or in the pool's.
///
/// A request enters the lines of its names, waits until it is first in all of them, runs, and leaves.
/// Names share lines; that only delays. All lines are entered in one step, so the earliest request
/// that is not done is always first everywhere: nobody waits in a circle.
///
/// Thread safety: all functions may be called from any thread.
class call_order {
public:
    static constexpr std::size_t lines = 256;
    using line = std::uint8_t;

    struct ticket {
        std::uint64_t number{};
        /// Most requests concern one name, and need no memory of their own for it.
        std::optional<line> only;
        std::vector<line> several;
    };

    [[nodiscard]] static line line_of(std::uint64_t key) noexcept {
        return static_cast<line>(key >> 32);
    }

    [[nodiscard]] ticket enter(line which);
    [[nodiscard]] ticket enter(std::vector<line> which);
    /// False when the deadline came first. The place is kept until `leave`, in either case.
    [[nodiscard]] bool wait(const ticket& place, clock::time_point deadline);
    void leave(const ticket& place);

    /// Leaves when a scope ends, whatever happens in it.
    class turn {
    public:
        turn(call_order& order, const ticket& place) noexcept : order_{order}, place_{place} {}
        turn(const turn&) = delete;
        turn& operator=(const turn&) = delete;
        ~turn() { order_.leave(place_); }

    private:
        call_order& order_;
        const ticket& place_;
    };

private:
    [[nodiscard]] bool is_first(const ticket& place) const;
    void wake_front(line which);

    /// One that waits for its turn, on its own: of a thousand only the next is woken.
    struct sleeper {
        std::condition_variable its_turn;
    };

    std::mutex mutex_;
    std::uint64_t last_number_{};
    std::map<std::uint64_t, sleeper> sleepers_;
    std::array<std::vector<std::uint64_t>, lines> queues_;
};

}  // namespace holdfast::engines
