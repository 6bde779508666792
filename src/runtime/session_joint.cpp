#include <holdfast/detail/deadline.hpp>
#include <runtime/joint_hold.hpp>
#include <runtime/session_call.hpp>

#include <algorithm>
#include <utility>

/// What a session does for a `multi_lock`: see `core::joint_question`.
namespace holdfast::detail {

/// A question and the call that it is part of. Shared with whoever brings the answer.
struct session::joint_call {
    core::joint_question question;
    clock::time_point deadline;
    engines::caller from{engines::caller::may_block};
};

bool session::acquires_together(const std::vector<std::string>& names) {
    const engine_use in_use{*this};
    return in_use && !forked() && abilities_.joint_locking != nullptr &&
           abilities_.joint_locking->acquires_together(names);
}

void session::answer_together(joint_call& what, const engines::acquire_all_reply& reply) {
    drive([&](core::lock_table& table, clock::time_point now) {
        what.question.answer(table, reply, now);
    });
}

void session::send_together(const std::shared_ptr<joint_call>& what) {
    const engine_use in_use{*this};
    if (!in_use) {
        engines::acquire_all_reply refusal;
        refusal.error = {errc::shut_down, "shutdown was called, or the client was destroyed"};
        answer_together(*what, refusal);
        return;
    }
    requests_.fetch_add(1, std::memory_order_relaxed);
    abilities_.joint_locking->acquire_all(
        what->question.requests(), {what->deadline, what->from},
        [this, what](const engines::acquire_all_reply& reply) { answer_together(*what, reply); });
}

session::acquired_together session::acquire_together(const std::vector<core::claim>& all,
                                                     clock::time_point deadline,
                                                     const std::stop_token& stop) {
    acquired_together result;
    result.taken.resize(all.size());
    if (stop.stop_requested()) {
        result.error = {errc::cancelled, "the caller had stopped waiting before it began"};
        return result;
    }
    const auto mine = std::make_shared<joint_call>();
    mine->deadline = std::min(deadline, deadline_after(options_.request_timeout));
    if (stop.stop_possible()) {
        mine->from = engines::caller::must_not_block;  // as `call::may_leave`
    }
    std::vector<std::shared_ptr<call>> calls;
    drive([&](core::lock_table& table, clock::time_point now) {
        mine->question.begin(table, all, now);
        for (std::size_t index = 0; index < all.size(); ++index) {
            calls.push_back(std::make_shared<call>());
            calls.back()->asked = &all[index];
            calls.back()->together = &mine->question;
            calls_.emplace(mine->question.calls()[index], calls.back());
        }
    });
    const std::stop_callback cancel{stop, [&] {
                                        drive([&](core::lock_table& table, clock::time_point now) {
                                            mine->question.cancel(table, now);
                                        });
                                    }};
    if (mine->question.complete()) {
        send_together(mine);
    } else {
        drive(
            [&](core::lock_table& table, clock::time_point now) { mine->question.refuse(table, now); });
    }
    for (std::size_t index = 0; index < calls.size(); ++index) {
        wait(calls[index]);
        result.taken[index] = std::move(calls[index]->taken);
        if (calls[index]->error && !result.error) {
            result.error = calls[index]->error;
        }
    }
    if (result.error) {
        const std::lock_guard lock{guard_};
        result.busy = mine->question.busy();
    }
    return result;
}

void session::release_together(const std::vector<std::shared_ptr<hold>>& which, std::size_t from,
                               std::size_t to, const std::shared_ptr<release_tally>& answers) noexcept {
    for (auto index = from; index < to; ++index) {
        which[index]->set_given_back();
    }
    if (forked()) {
        for (auto index = from; index < to; ++index) {
            answers->put(index, release_outcome::already_lost);
        }
        return;
    }
    // No call waits for them, so all are sent at once, from this thread, and none is waited for.
    drive([&](core::lock_table& table, clock::time_point now) {
        for (auto index = from; index < to; ++index) {
            tallies_.emplace(which[index]->number(), tally_place{answers, index});
            table.release_hold(which[index]->number(), {}, now);
        }
    });
}

}  // namespace holdfast::detail
