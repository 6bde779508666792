#pragma once

#include <memory>
#include <memory_resource>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <core/node_memory.hpp>
#include <runtime/call.hpp>
#include <runtime/known_holds.hpp>
#include <runtime/notifier.hpp>
#include <runtime/performer.hpp>
#include <runtime/spinning.hpp>
#include <runtime/timer.hpp>

namespace holdfast::detail {

class session;

/// The calls of a session that wait, and what it holds: those whom the performer tells what the core
/// says.
///
/// Thread safety: the performer's mutex guards it. `now` and `wake` need none.
class callers {
public:
    using mutex = spinning_mutex;
    static constexpr bool ends_on_exception = true;

    /// What is left to do once the mutex is free again.
    struct follow_up {
        /// The call whose own step this is: awake, and on record only once it has to wait.
        std::shared_ptr<call> self{};
        /// For nobody's thread in particular.
        std::vector<store_task> tasks{};
        /// Usually none or one is to be woken.
        std::shared_ptr<call> first_to_wake{};
        std::vector<std::shared_ptr<call>> others_to_wake{};

        [[nodiscard]] bool is_self(core::waiter_id id) const noexcept {
            return self && self->number == id && !self->done.load(std::memory_order_relaxed);
        }
        void wake(const std::shared_ptr<call>& caller);
    };

    explicit callers(session& owner) noexcept : owner_{owner} {}
    callers(const callers&) = delete;
    callers& operator=(const callers&) = delete;
    ~callers() = default;

    void start(timer_thread& timer, notifier& notifier) noexcept;
    /// Timer and notifier are not used any more.
    void stop() noexcept;

    /// Waits for the answer to `who->number` from now on.
    void enter(const std::shared_ptr<call>& caller) {
        (caller->converts ? conversions_ : calls_).emplace(caller->number, caller);
    }
    [[nodiscard]] bool converting(core::hold_id id) const { return conversions_.contains(id); }
    [[nodiscard]] known_holds& holds() noexcept { return holds_; }
    /// What others have left for a call's thread to do.
    [[nodiscard]] static std::vector<store_task> take_tasks(call& caller);

    // For the performer.
    [[nodiscard]] static clock::time_point now() noexcept { return clock::now(); }
    void arm(clock::time_point when) noexcept;
    template <class Task>
    [[nodiscard]] bool take(core::waiter_id whose, Task& task, follow_up& after);
    void perform(core::stand_by& soon, follow_up& after);
    void perform(core::offer_turn& offer, follow_up& after);
    void perform(core::finish_acquire& got, follow_up& after);
    void perform(core::finish_release& gone, follow_up& after);
    void perform(core::finish_convert& changed, follow_up& after);
    void perform(core::set_validity& valid, follow_up& after);
    void perform(core::tell_loss& loss, follow_up& after);
    void perform(core::tell_observer& seen, follow_up& after);
    void end_step(follow_up& after);
    static void wake(const follow_up& after) noexcept;

private:
    using call_map = std::pmr::unordered_map<core::waiter_id, std::shared_ptr<call>>;

    [[nodiscard]] std::shared_ptr<call> find(core::waiter_id id, const follow_up& after) const;
    [[nodiscard]] static std::shared_ptr<call> leave(call_map& from, core::waiter_id id,
                                                     const follow_up& after);
    static void finish(const std::shared_ptr<call>& caller, follow_up& after);

    session& owner_;
    core::node_memory memory_;
    call_map calls_{&memory_};
    /// Apart from the others: a lease that one thread converts may be released by another.
    call_map conversions_{&memory_};
    known_holds holds_{memory_};
    timer_thread* timer_{};
    notifier* notifier_{};
};

/// Whether the thread of that call sends it by itself.
template <class Task>
bool callers::take(core::waiter_id whose, Task& task, follow_up& after) {
    if (after.is_self(whose) && !after.self->own_task) {
        after.self->own_task.emplace(std::move(task));
        return true;
    }
    const auto waiting = find(whose, after);
    if (!waiting) {
        return false;
    }
    if constexpr (std::is_same_v<Task, core::send_acquire>) {
        if (waiting->together != nullptr) {
            waiting->together->keep(std::move(task));
            return true;
        }
    }
    waiting->tasks.emplace_back(std::move(task));
    waiting->has_tasks.store(true, std::memory_order_release);
    after.wake(waiting);
    return true;
}

}  // namespace holdfast::detail
