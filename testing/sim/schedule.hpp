#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <holdfast/clock.hpp>

namespace holdfast::testing::sim {

enum class what_happens : std::uint8_t {
    // to a client, unless it is paused
    user_acts,
    user_cancels,
    user_is_awake,
    timer_fires,
    request_times_out,
    reply_arrives,
    hint_arrives,
    turn_arrives,
    watch_is_active,
    holds_may_have_changed,
    // to a client, even a paused one
    client_resumes,
    client_starts,
    // in the network and the store
    request_arrives,
    watch_arrives,
    store_is_up,
    store_is_fast,
    // faults
    fault_strikes,
    faults_end,
    // the referee looks
    check_call,
    check_release,
    check_validity,
    check_wake_up,
    check_readers,
};

struct happening {
    clock::time_point at;
    /// Orders what happens at the same time; random.
    std::uint32_t tie{};
    std::uint32_t sequence{};
    what_happens what{};
    std::uint8_t client{};
    /// The life of the client this belongs to: it is void after a crash.
    std::uint16_t life{};
    /// The user, message, name or fault.
    std::uint32_t subject{};
    /// Which of the subject's calls, holds, timers.
    std::uint64_t detail{};
};

/// Virtual time, and what is to happen in it.
class schedule {
public:
    [[nodiscard]] clock::time_point now() const noexcept { return now_; }
    [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
    [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }

    void add(happening event) {
        event.at = std::max(event.at, now_);
        event.sequence = sequence_++;
        heap_.push_back(event);
        std::push_heap(heap_.begin(), heap_.end(), later);
    }

    [[nodiscard]] happening take() {
        std::pop_heap(heap_.begin(), heap_.end(), later);
        const auto event = heap_.back();
        heap_.pop_back();
        now_ = event.at;
        ++taken_;
        return event;
    }

private:
    [[nodiscard]] static bool later(const happening& a, const happening& b) noexcept {
        if (a.at != b.at) {
            return a.at > b.at;
        }
        return a.tie != b.tie ? a.tie > b.tie : a.sequence > b.sequence;
    }

    // Far from zero, so that a store's clock may step back.
    clock::time_point now_{std::chrono::hours{1}};
    std::vector<happening> heap_;
    std::uint32_t sequence_{};
    std::uint64_t taken_{};
};

}  // namespace holdfast::testing::sim
