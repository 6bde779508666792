#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <holdfast/guard/database.hpp>

/// Two sessions, one of which can be stopped between its statements.
namespace holdfast::guard::testing {

/// Stops a session before one of its statements.
class gate {
public:
    void stop_before(std::size_t statement) { stop_at_ = statement; }

    void pass() {
        std::unique_lock lock{guard_};
        if (passed_++ != stop_at_) {
            return;
        }
        stopped_ = true;
        changed_.notify_all();
        changed_.wait(lock, [&] { return opened_; });
    }
    void open() {
        const std::lock_guard lock{guard_};
        opened_ = true;
        changed_.notify_all();
    }
    /// Nothing more comes.
    void end() {
        const std::lock_guard lock{guard_};
        ended_ = true;
        changed_.notify_all();
    }
    /// False: the session was done before it came to that statement.
    [[nodiscard]] bool wait_until_stopped() {
        std::unique_lock lock{guard_};
        changed_.wait(lock, [&] { return stopped_ || ended_; });
        return stopped_;
    }

private:
    std::mutex guard_;
    std::condition_variable changed_;
    std::size_t stop_at_{~std::size_t{0}};
    std::size_t passed_{};
    bool stopped_{};
    bool opened_{};
    bool ended_{};
};

/// A connection whose statements go through a gate.
class stepped_database final : public database {
public:
    stepped_database(database& inner, gate& steps) : inner_{inner}, steps_{steps} {}

    [[nodiscard]] dialect speaks() const noexcept override { return inner_.speaks(); }
    [[nodiscard]] bool in_transaction() const override { return inner_.in_transaction(); }
    answer run(std::string_view statement, std::span<const parameter> parameters) override {
        steps_.pass();
        return inner_.run(statement, parameters);
    }

private:
    database& inner_;
    gate& steps_;
};

/// Whose turn it is to start again after `busy`.
class referee {
public:
    enum class state : std::uint8_t { running, busy, done };

    void tell(std::size_t player, state now) {
        const std::lock_guard lock{guard_};
        states_.at(player) = now;
        changed_.notify_all();
    }
    /// Until the other one is out of the way. Of two that are busy the first goes first.
    void wait_for_turn(std::size_t player) {
        std::unique_lock lock{guard_};
        states_.at(player) = state::busy;
        changed_.notify_all();
        const auto other = 1 - player;
        changed_.wait(lock, [&] {
            return states_.at(other) == state::done ||
                   (player == 0 && states_.at(other) == state::busy);
        });
        states_.at(player) = state::running;
    }
    /// False: it still runs, or waits in the database.
    [[nodiscard]] bool stops_within(std::size_t player, std::chrono::milliseconds moment) {
        std::unique_lock lock{guard_};
        return changed_.wait_for(lock, moment, [&] { return states_.at(player) != state::running; });
    }

private:
    std::mutex guard_;
    std::condition_variable changed_;
    std::array<state, 2> states_{};
};

}  // namespace holdfast::guard::testing
