#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <core/joint_question.hpp>
#include <core/lock_table.hpp>
#include <runtime/store_access.hpp>
#include <threading/primitives.hpp>

namespace holdfast::detail {

/// What is to be done at the store.
using store_task =
    std::variant<core::send_acquire, core::send_renew, core::send_release, core::update_watch>;

/// Performs what the core asks for. The product and the simulators run this code.
///
/// Lets the core take one step at a time, under one mutex: a call, an answer of the store's, a hint, or
/// the time. What a step says to callers and holders is told to `Callers`, in order, under the mutex.
/// What it wants of the store is done after that: an engine may complete a request before it returns,
/// and the completion is the next step.
///
/// `Callers` stands for the process: its calls and holds, its clock and its timer.
///
///     using mutex = …;                             guards the core
///     struct follow_up { std::vector<store_task> tasks; … };
///                                                  what is left to do after a step
///     clock::time_point now();
///     void arm(clock::time_point when);            calls `on_time` then, and not for earlier calls
///     bool take(waiter_id, Task&, follow_up&);     whether the thread of this call does it by itself
///     void perform(Action&, follow_up&);           every action that is not for the store
///     void end_step(follow_up&);                   the last thing under the mutex
///     void wake(follow_up&);                       without the mutex
///     static constexpr bool ends_on_exception;     a step that throws ends the process
///
/// Thread safety: all functions, from any thread. Never called by `Callers` within a step.
template <class Callers>
class performer {
public:
    using follow_up = typename Callers::follow_up;

    performer(Callers& callers, store_access& store, const core::table_settings& settings,
              const owner_id& client)
        : callers_{callers},
          store_{store},
          least_time_to_answer_{
              std::min<clock::duration>(settings.contention.request_timeout, usual_least_time)},
          table_{settings, client} {}
    performer(const performer&) = delete;
    performer& operator=(const performer&) = delete;
    ~performer() = default;

    /// Lets the core take one step, and performs what it says. `after` may know whose step it is.
    template <class Step>
    void step(const Step& change, follow_up after = {}) noexcept(Callers::ends_on_exception) {
        {
            const std::lock_guard lock{guard_};
            change(table_, callers_.now());
            actions_ = table_.take_actions(std::move(actions_));
            for (auto& action : actions_) {
                std::visit([&](auto& one) { apply(one, after); }, action);
            }
            arm_timer();
            callers_.end_step(after);
        }
        callers_.wake(after);
        for (auto& task : after.tasks) {
            perform(task, engines::caller::must_not_block);
        }
    }

    void on_time() noexcept(Callers::ends_on_exception) {
        step([this](core::lock_table& table, clock::time_point now) {
            armed_for_ = clock::time_point::max();
            table.on_time(now);
        });
    }

    /// Sends it to the store. An engine that is gone, or throws, does not answer: it is answered here.
    void perform(store_task& task, engines::caller from) noexcept(Callers::ends_on_exception) {
        try {
            send(task, from);
        } catch (const std::exception& wrong) {
            refuse(task, {errc::outcome_unknown, wrong.what()});
        }
    }

    /// Sends a question that has begun, or tells its callers why that makes no sense.
    void ask_together(const std::shared_ptr<core::joint_question>& question,
                      engines::call limits) noexcept(Callers::ends_on_exception) {
        if (!question->complete()) {
            step([&](core::lock_table& table, clock::time_point now) { question->refuse(table, now); });
            return;
        }
        const auto answer = [this, question](const engines::acquire_all_reply& reply) {
            step([&](core::lock_table& table, clock::time_point now) {
                question->answer(table, reply, now);
            });
        };
        const auto refuse = [&](failure why) {
            engines::acquire_all_reply refusal;
            refusal.error = std::move(why);
            answer(refusal);
        };
        const store_access::use in_use{store_};
        if (!in_use) {
            refuse(shut_down_already());
            return;
        }
        store_.count_request();
        try {
            store_.offers().joint_locking->acquire_all(question->requests(), limits, answer);
        } catch (const std::exception& wrong) {
            refuse({errc::outcome_unknown, wrong.what()});
        }
    }

    /// What the engine may say by itself about locks.
    [[nodiscard]] engines::client_callbacks callbacks() {
        return {[this] {
                    step([](core::lock_table& table, clock::time_point now) {
                        table.on_holds_may_have_changed(now);
                    });
                },
                [this](const std::string& name, const owner_id& owner,
                       const std::optional<engines::turn_grant>& granted) {
                    step([&](core::lock_table& table, clock::time_point now) {
                        table.on_turn(name, owner, granted, now);
                    });
                },
                {}};
    }

    /// Something that is no step, under the mutex.
    template <class Look>
    auto look(const Look& at) {
        const std::lock_guard lock{guard_};
        return at(std::as_const(table_));
    }

    /// Before the engine ends.
    void end_watches() {
        const std::lock_guard lock{watch_guard_};
        watches_.clear();
    }

private:
    /// As the core has it.
    static constexpr std::chrono::milliseconds usual_least_time{50};

    void apply(core::send_acquire& task, follow_up& after) { leave(task.on_behalf_of, task, after); }
    void apply(core::send_release& task, follow_up& after) { leave(task.on_behalf_of, task, after); }
    void apply(core::send_renew& task, follow_up& after) { after.tasks.emplace_back(std::move(task)); }
    void apply(core::update_watch& task, follow_up& after) {
        after.tasks.emplace_back(std::move(task));
    }
    template <class Action>
    void apply(Action& action, follow_up& after) {
        callers_.perform(action, after);
    }

    template <class Task>
    void leave(core::waiter_id whose, Task& task, follow_up& after) {
        if (whose == 0 || !callers_.take(whose, task, after)) {
            after.tasks.emplace_back(std::move(task));
        }
    }

    /// Only ever moved forward here: a timer that fires early costs less than a system call per lock.
    void arm_timer() {
        if (const auto next = table_.wake_at(); next < armed_for_) {
            armed_for_ = next;
            callers_.arm(next);
        }
    }

    void send(store_task& task, engines::caller from) {
        const store_access::use in_use{store_};
        if (!in_use) {
            refuse(task, shut_down_already());
            return;
        }
        std::visit([&](auto& one) { send_one(one, from); }, task);
    }

    void send_one(core::send_acquire& ask, engines::caller from) {
        store_.count_request();
        // The store has its time also when this thread did not get to run until now.
        const auto deadline = std::max(ask.deadline, callers_.now() + least_time_to_answer_);
        store_.engine().acquire(std::move(ask.request), {deadline, from},
                                [this, id = ask.id](const engines::acquire_reply& reply) {
                                    step([&](core::lock_table& table, clock::time_point now) {
                                        table.on_acquire_reply(id, reply, now);
                                    });
                                });
    }

    void send_one(core::send_renew& renew, engines::caller from) {
        store_.count_request();
        store_.engine().renew(std::move(renew.requests), {renew.deadline, from},
                              [this, id = renew.id](const std::vector<engines::renew_reply>& replies) {
                                  step([&](core::lock_table& table, clock::time_point now) {
                                      table.on_renew_replies(id, replies, now);
                                  });
                              });
    }

    void send_one(core::send_release& back, engines::caller from) {
        store_.count_request();
        store_.engine().release(std::move(back.request), {back.deadline, from},
                                [this, id = back.id](const engines::release_reply& reply) {
                                    step([&](core::lock_table& table, clock::time_point now) {
                                        table.on_release_reply(id, reply, now);
                                    });
                                });
    }

    /// Makes the watch on a name what the core wants now, which may no longer be what it wanted when it
    /// asked.
    void send_one(const core::update_watch& wish, engines::caller) {
        auto* const watching = store_.offers().watching;
        if (watching == nullptr) {
            return;  // those who wait ask again after a pause
        }
        const auto& name = wish.name;
        bool active = false;
        {
            const std::lock_guard one_at_a_time{watch_guard_};
            const bool wanted =
                look([&](const core::lock_table& table) { return table.wants_watch(name); });
            const auto found = watches_.find(name);
            if (!wanted && found != watches_.end()) {
                watches_.erase(found);
            } else if (wanted && found == watches_.end()) {
                auto watch = watching->watch(name, wish.kind, [this, name] {
                    step([&](core::lock_table& table, clock::time_point now) {
                        table.on_hint(name, now);
                    });
                });
                active = watch->active();
                watches_.emplace(name, std::move(watch));
            }
        }
        if (active) {
            step([&](core::lock_table& table, clock::time_point now) {
                table.on_watch_active(name, now);
            });
        }
    }

    /// Answers in the store's place, so that nobody waits for ever. A watch that was not made is missed
    /// by nobody: whoever waits asks again after a while.
    void refuse(const store_task& task, const failure& why) {
        step([&](core::lock_table& table, clock::time_point now) {
            if (const auto* ask = std::get_if<core::send_acquire>(&task)) {
                engines::acquire_reply reply;
                reply.error = why;
                table.on_acquire_reply(ask->id, reply, now);
            } else if (const auto* back = std::get_if<core::send_release>(&task)) {
                engines::release_reply reply;
                reply.error = why;
                table.on_release_reply(back->id, reply, now);
            } else if (const auto* renew = std::get_if<core::send_renew>(&task)) {
                table.on_renew_replies(renew->id, {}, now);
            }
        });
    }

    Callers& callers_;
    store_access& store_;
    clock::duration least_time_to_answer_;

    typename Callers::mutex guard_;
    core::lock_table table_;
    clock::time_point armed_for_{clock::time_point::max()};
    /// Only for steps, which would otherwise allocate it each time.
    std::vector<core::action> actions_;

    threading::mutex watch_guard_;
    std::map<std::string, std::unique_ptr<engines::subscription>> watches_;
};

}  // namespace holdfast::detail
