#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <core/joint_question.hpp>
#include <runtime/hold.hpp>
#include <runtime/performer.hpp>
#include <threading/parking.hpp>
#include <threading/primitives.hpp>

namespace holdfast::detail {

/// A thread that waits for the core's answer. Shared with whoever wakes it.
struct call {
    /// What the core knows it by.
    core::waiter_id number{};
    threading::parking_spot spot;
    /// Its stop token may be triggered while a request is under way. Its thread must not be inside the
    /// engine then, so its requests are sent by the engine's own threads.
    bool may_leave{};
    /// Waits for a conversion.
    bool converts{};
    /// It is about to be this call's turn.
    threading::atomic<bool> standing_by{false};
    /// The lock is free for this call, if it is quick.
    threading::atomic<bool> offered{false};
    /// What its thread is to do at the store next. Only for its thread.
    std::optional<store_task> own_task;
    /// Whether other threads have left it something to do, which the performer's mutex guards.
    threading::atomic<bool> has_tasks{false};
    std::vector<store_task> tasks;
    /// Not null: what it asks for goes here, to be sent together with what others ask for.
    core::joint_question* together{};
    const core::claim* asked{};
    /// As whom it has asked the store, if it has.
    std::optional<owner_id> asked_as{};
    // The answer: written before `done` is set, read after.
    threading::atomic<bool> done{false};
    failure error;
    std::shared_ptr<hold> taken;
    release_outcome outcome{release_outcome::unknown};
    fencing_token token{};

    [[nodiscard]] engines::caller thread() const noexcept {
        return may_leave ? engines::caller::must_not_block : engines::caller::may_block;
    }
    [[nodiscard]] bool answered() const noexcept { return done.load(std::memory_order_acquire); }
};

}  // namespace holdfast::detail
