#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <holdfast/clock.hpp>
#include <holdfast/testing/fault_plan.hpp>

namespace holdfast::testing {

/// What becomes of one call.
struct verdict {
    enum class fate : std::uint8_t {
        pass,
        fail,
        lose_reply,
        delay_reply,
        delay_request,
        no_answer
    } decision{};
    /// fail: with this.
    failure error{};
};

/// One engine under the plan. Its members are guarded by the plan's mutex.
struct plan_member {
    /// How many callbacks the plan is running for it.
    int running{};
    bool closed{};
    /// Gives a hint to everybody who watches through it.
    std::function<void()> hint_everybody;
};

/// A call, or its answer, on its way.
struct kept_call {
    std::shared_ptr<plan_member> member;
    clock::time_point deadline;
    /// Ends the call with an error.
    std::function<void(failure)> give_up;
    /// Brings it where it was going. Empty: it never gets there.
    std::function<void()> deliver;
    /// A request gets to the store even when nobody waits for its answer any more.
    bool outlives_its_caller{};
    bool caller_is_gone{};
};

/// What the plan and its engines share.
struct fault_plan::state {
    struct script {
        verdict::fate fault;
        std::size_t remaining;
        failure error;
    };

    state();
    ~state();

    void add(call_kind kind, script next);
    /// How much `let_go` would deliver. The mutex must be held.
    [[nodiscard]] std::size_t deliverable() const;
    [[nodiscard]] verdict judge(call_kind kind);
    /// Keeps nothing once `member` is closed: delivers the call if possible, and fails it otherwise.
    void keep(kept_call call);
    void let_go();
    void heal();
    void join(std::shared_ptr<plan_member> member);
    /// Ends what is kept for it, and returns when the plan runs no callback for it any more.
    void close(const std::shared_ptr<plan_member>& member);
    [[nodiscard]] bool notifications_flow();
    /// Nobody is told when hints are lost, so this says nothing about them.
    [[nodiscard]] bool connected();

    enum class link : std::uint8_t { up, cut_off, silent };
    static constexpr std::size_t kinds = 8;

    mutable std::mutex guard;
    mutable std::condition_variable changed;
    link connection{link::up};
    bool hints_are_dropped{};
    std::atomic<bool> callers_are_kept{false};
    std::array<std::deque<script>, kinds> scripts;
    std::array<std::size_t, kinds> calls{};
    std::list<kept_call> kept;
    std::vector<std::weak_ptr<plan_member>> members;

private:
    void run(std::unique_lock<std::mutex>& lock, plan_member& member,
             const std::function<void()>& callback);
    void end_overdue_calls();
    void watch_deadlines();

    bool stopping_{};
    std::thread deadlines_;
};

}  // namespace holdfast::testing
