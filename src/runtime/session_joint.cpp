#include <holdfast/detail/deadline.hpp>
#include <runtime/joint_hold.hpp>
#include <runtime/session_call.hpp>

#include <algorithm>
#include <utility>

/// What a session does for a `multi_lock`.
///
/// Several locks in one request are, for the core, several calls that ask once: each has its place in
/// its name's queue, its owner, its tenure and its renewal, as if it had been asked for alone. Only the
/// question travels together with the others, and what the store says is told to each. So everything
/// that is true of a lock is true of these: a name that a thread of this process has, or waits for, is
/// busy without asking the store; who comes later queues behind; a grant that arrives too late, or for
/// a caller that has gone, is given back.
namespace holdfast::detail {

/// One request for several claims.
struct session::joint_question {
    std::vector<core::send_acquire> errands;
    clock::time_point deadline;
    std::atomic<std::size_t> busy{0};
};

namespace {

/// What one of several is told. Only one of them was in the way; the others were not granted either.
[[nodiscard]] engines::acquire_reply part_of(const engines::acquire_all_reply& whole,
                                             std::size_t index) {
    engines::acquire_reply reply;
    reply.result = whole.result;
    reply.error = whole.error;
    if (whole.result == engines::acquire_reply::outcome::granted) {
        reply.first_token = whole.grants.at(index).first_token;
        reply.token_count = whole.grants.at(index).token_count;
    } else if (whole.busy == index) {
        reply.retry_after = whole.retry_after;
    }
    return reply;
}

}  // namespace

bool session::acquires_together(const std::vector<std::string>& names) {
    const engine_use in_use{*this};
    return in_use && !forked() && engine_->acquires_together(names);
}

void session::answer_together(const joint_question& what, const engines::acquire_all_reply& reply) {
    drive([&](core::lock_table& table, clock::time_point now) {
        for (std::size_t index = 0; index < what.errands.size(); ++index) {
            table.on_acquire_reply(what.errands[index].id, part_of(reply, index), now);
        }
    });
}

void session::send_together(const std::shared_ptr<joint_question>& what) {
    const engine_use in_use{*this};
    if (!in_use) {
        engines::acquire_all_reply refusal;
        refusal.error = {errc::shut_down, "the client has been shut down"};
        answer_together(*what, refusal);
        return;
    }
    requests_.fetch_add(1, std::memory_order_relaxed);
    std::vector<engines::acquire_request> requests;
    requests.reserve(what->errands.size());
    for (auto& one : what->errands) {
        requests.push_back(std::move(one.request));
    }
    engine_->acquire_all(std::move(requests), {what->deadline, engines::caller::may_block},
                         [this, what](const engines::acquire_all_reply& reply) {
                             what->busy.store(reply.busy);
                             answer_together(*what, reply);
                         });
}

session::acquired_together session::acquire_together(const std::vector<core::claim>& all,
                                                     clock::time_point deadline,
                                                     const std::stop_token& stop) {
    acquired_together result;
    if (stop.stop_requested()) {
        result.error = {errc::cancelled, "the caller had stopped waiting before it began"};
        return result;
    }
    const auto question = std::make_shared<joint_question>();
    question->deadline = std::min(deadline, deadline_after(options_.request_timeout));
    std::vector<core::waiter_id> ids;
    std::vector<std::shared_ptr<call>> calls;
    drive([&](core::lock_table& table, clock::time_point now) {
        for (const auto& one : all) {
            calls.push_back(std::make_shared<call>());
            calls.back()->asked = &one;
            calls.back()->together = &question->errands;
            ids.push_back(table.acquire(one, now));
            calls_.emplace(ids.back(), calls.back());
        }
    });
    const std::stop_callback cancel{stop, [&] {
                                        drive([&](core::lock_table& table, clock::time_point now) {
                                            for (const auto id : ids) {
                                                table.cancel(id, errc::cancelled, now);
                                            }
                                        });
                                    }};
    if (question->errands.size() == all.size()) {
        send_together(question);
    } else {
        // One of them is taken here already: the store need not be asked about the others.
        const auto refused =
            std::find_if(calls.begin(), calls.end(), [](const auto& one) { return one->done.load(); });
        question->busy = static_cast<std::size_t>(refused - calls.begin());
        engines::acquire_all_reply busy;
        busy.result = engines::acquire_reply::outcome::busy;
        answer_together(*question, busy);
    }
    for (const auto& one : calls) {
        wait(one);
        if (one->taken) {
            result.taken.push_back(std::move(one->taken));
        } else if (!result.error) {
            result.error = one->error;
        }
    }
    result.busy = question->busy;
    return result;
}

void session::release_together(const std::vector<std::shared_ptr<hold>>& which, std::size_t from,
                               std::size_t to, const std::shared_ptr<release_tally>& answers) noexcept {
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
