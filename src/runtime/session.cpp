#include <runtime/session.hpp>

#include <holdfast/detail/deadline.hpp>
#include <runtime/fork_guard.hpp>
#include <runtime/joint_hold.hpp>
#include <runtime/safety_recheck.hpp>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::detail {

namespace {

/// So often may one thread be overtaken by others of its process, while it wakes up, before it is
/// given the lock.
constexpr std::uint32_t most_overtakings = 16;

/// Between two questions of a waiter to a store that tells nobody when a lock becomes free.
constexpr std::chrono::milliseconds polling_pause{100};

[[nodiscard]] core::table_settings settings_from(const client_options& options, const owner_id& client,
                                                 const engines::abilities& abilities) {
    const auto bounded = [](std::chrono::milliseconds wait) {
        return std::min<std::chrono::milliseconds>(wait, longest_wait);  // so that sums do not overflow
    };
    core::table_settings settings;
    settings.contention.request_timeout = bounded(options.request_timeout);
    settings.contention.outage_patience = bounded(options.outage_patience);
    settings.contention.recheck_cap =
        abilities.watching != nullptr ? safety_recheck.load() : polling_pause;
    settings.contention.store_hands_over =
        abilities.lines != nullptr && abilities.lines->serves_plain_locks();
    settings.handover.count = options.handover_count;
    settings.handover.time = bounded(options.handover_time);
    settings.handover.overtakings = most_overtakings;
    settings.observed = options.events != nullptr;
    settings.seed = client.low;
    return settings;
}

}  // namespace

session::session(std::unique_ptr<engines::engine> engine, const engines::client_identity& identity,
                 const client_options& options)
    : identity_{identity},
      promises_{engine->promises()},
      address_{engine->address()},
      store_identity_{engine->store_identity()},
      request_timeout_{options.request_timeout},
      outage_patience_{options.outage_patience},
      events_{options.events},
      generation_{fork_generation()},
      store_{std::move(engine)},
      core_{callers_, store_, settings_from(options, identity.client, store_.offers()),
            identity.client},
      queries_{store_, {identity.client, options.request_timeout, options.outage_patience}} {}

void session::start() {
    notifier_.emplace(events_, &dropped_events_);
    timer_.emplace([this] { core_.on_time(); });
    callers_.start(*timer_, *notifier_);
    auto callbacks = core_.callbacks();
    callbacks.degraded = [this](const failure& why) {
        if (events_ && !store_.closed()) {
            event seen;
            seen.kind = event_kind::degraded;
            seen.error = why;
            notifier_->tell_observer(std::move(seen));
        }
    };
    store_.engine().attach(std::move(callbacks));
}

bool session::forked() const noexcept {
    return generation_ != fork_generation();
}

/// Sends what the core has for the store on this caller's behalf.
void session::perform_own(call& caller, store_task& task) noexcept {
    if (const auto* const ask = std::get_if<core::send_acquire>(&task)) {
        caller.asked_as = ask->request.owner;
    }
    core_.perform(task, caller.thread());
}

/// Does what there is to do at the store on the caller's behalf, until its answer is there.
void session::wait(call& caller) {
    const auto has_tasks = [&] { return caller.has_tasks.load(std::memory_order_acquire); };
    const auto offered = [&] { return caller.offered.load(std::memory_order_acquire); };
    const auto called = [&] { return caller.answered() || has_tasks() || offered(); };
    if (caller.own_task) {
        perform_own(caller, *caller.own_task);
        caller.own_task.reset();
    }
    while (!caller.answered()) {
        if (has_tasks()) {
            auto tasks =
                core_.look([&](const core::lock_table&) { return callers::take_tasks(caller); });
            for (auto& task : tasks) {
                perform_own(caller, task);
            }
        } else if (caller.offered.exchange(false, std::memory_order_acq_rel)) {
            core_.step([&](core::lock_table& table, clock::time_point now) {
                table.take_turn(caller.number, now);
            });
            yield_until(called);  // if somebody was quicker, it is free again in a moment
        } else if (caller.standing_by.exchange(false, std::memory_order_acq_rel)) {
            yield_until(called);
        } else {
            attendance_.attend(caller);
            caller.spot.park();
        }
    }
}

session::acquired session::acquire(const core::claim& request, const std::stop_token& stop) {
    if (forked()) {
        return {nullptr,
                {errc::forked, "it belongs to the parent process; make a new one in the child"}};
    }
    if (stop.stop_requested()) {
        return {nullptr, {errc::cancelled, "the caller had stopped waiting before it began"}};
    }
    const auto caller = std::make_shared<call>();
    caller->asked = &request;
    caller->may_leave = stop.stop_possible();
    core_.step([&](core::lock_table& table,
                   clock::time_point now) { caller->number = table.acquire(request, now); },
               {caller});
    const std::stop_callback cancel{stop, [&] {
                                        core_.step([&](core::lock_table& table, clock::time_point now) {
                                            table.cancel(caller->number, errc::cancelled, now);
                                        });
                                    }};
    wait(*caller);
    return {std::move(caller->taken), std::move(caller->error)};
}

void session::abandon(const hold& held) noexcept {
    core_.step(
        [&](core::lock_table& table, clock::time_point now) { table.abandon(held.number(), now); });
}

release_outcome session::release(hold& held, std::chrono::milliseconds linger) noexcept {
    held.set_given_back();
    if (forked()) {
        return release_outcome::already_lost;
    }
    const auto caller = std::make_shared<call>();
    caller->number = held.number();
    core_.step([&](core::lock_table& table,
                   clock::time_point now) { table.release_hold(held.number(), linger, now); },
               {caller});
    wait(*caller);
    return caller->outcome;
}

failure session::convert(hold& held, claim_mode to) {
    if (forked()) {
        return {errc::forked, "it belongs to the parent process; make a new one in the child"};
    }
    const auto caller = std::make_shared<call>();
    caller->number = held.number();
    caller->converts = true;
    core_.step(
        [&](core::lock_table& table, clock::time_point now) {
            if (callers_.converting(caller->number)) {
                caller->error = {errc::not_owner, "another thread is converting this lease"};
                caller->done.store(true, std::memory_order_release);
                return;
            }
            table.convert(caller->number, to, now);
        },
        {caller});
    wait(*caller);
    if (!caller->error) {
        held.set_token(caller->token);
        held.set_mode(to);
    } else if (const auto why = held.loss(); caller->error.code == errc::lost && why != errc{}) {
        const auto told = held.loss_detail();
        return {why, told.empty() ? caller->error.detail : told};
    }
    return caller->error;
}

bool session::acquires_together(const std::vector<std::string>& names) {
    const store_access::use in_use{store_};
    auto* const joint = store_.offers().joint_locking;
    return in_use && !forked() && joint != nullptr && joint->acquires_together(names);
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
    const auto question = std::make_shared<core::joint_question>();
    const auto answer_by = std::min(deadline, deadline_after(request_timeout_));
    // As `call::may_leave`.
    const auto thread =
        stop.stop_possible() ? engines::caller::must_not_block : engines::caller::may_block;
    std::vector<std::shared_ptr<call>> calls;
    core_.step([&](core::lock_table& table, clock::time_point now) {
        question->begin(table, all, now);
        for (std::size_t index = 0; index < all.size(); ++index) {
            calls.push_back(std::make_shared<call>());
            calls.back()->number = question->calls()[index];
            calls.back()->asked = &all[index];
            calls.back()->together = question.get();
            callers_.enter(calls.back());
        }
    });
    const std::stop_callback cancel{stop, [&] {
                                        core_.step([&](core::lock_table& table, clock::time_point now) {
                                            question->cancel(table, now);
                                        });
                                    }};
    core_.ask_together(question, {answer_by, thread});
    for (std::size_t index = 0; index < calls.size(); ++index) {
        wait(*calls[index]);
        result.taken[index] = std::move(calls[index]->taken);
        if (calls[index]->error && !result.error) {
            result.error = calls[index]->error;
        }
    }
    if (result.error) {
        result.busy = core_.look([&](const core::lock_table&) { return question->busy(); });
    }
    return result;
}

void session::release_together(const std::vector<std::shared_ptr<hold>>& held, std::size_t from,
                               std::size_t to, const std::shared_ptr<release_tally>& answers) noexcept {
    for (auto index = from; index < to; ++index) {
        held[index]->set_given_back();
    }
    if (forked()) {
        for (auto index = from; index < to; ++index) {
            answers->put(index, release_outcome::already_lost);
        }
        return;
    }
    // No call waits for them, so all are sent at once, from this thread, and none is waited for.
    core_.step([&](core::lock_table& table, clock::time_point now) {
        for (auto index = from; index < to; ++index) {
            callers_.holds().await_release(held[index]->number(), answers, index);
            table.release_hold(held[index]->number(), {}, now);
        }
    });
}

session::~session() {
    if (!forked() && begin_closing()) {
        close_engine();
    }
}

std::vector<unreleased> session::shut_down(std::chrono::milliseconds timeout) {
    std::vector<unreleased> left;
    if (forked() || store_.closed()) {
        return left;
    }
    const auto deadline = deadline_after(timeout);
    queries_.close();
    core_.step([](core::lock_table& table, clock::time_point now) { table.shut_down(now); });
    const auto pending = [&] {
        const auto count = core_.look([](const core::lock_table& table) { return table.count(); });
        return count.releases + count.contests > 0;
    };
    // Rarely more than a round: the answers come on other threads, or have come already.
    for (auto pause = std::chrono::microseconds{50}; pending() && clock::now() < deadline;
         pause = std::min(pause * 2, std::chrono::microseconds{5000})) {
        std::this_thread::sleep_for(pause);
    }
    for (auto& one : core_.look([](const core::lock_table& table) { return table.unreleased(); })) {
        left.push_back({std::move(one.name), one.token, std::move(one.error)});
    }
    // Nobody drives the core any more when the session is closed. No new caller can come: every hold
    // was lost when the shutdown began.
    core_.step([](core::lock_table& table, clock::time_point now) { table.finish_release_calls(now); });
    close(deadline);
    return left;
}

bool session::begin_closing() noexcept {
    return core_.look([this](const core::lock_table&) {
        callers_.stop();
        return store_.close();
    });
}

void session::close(clock::time_point deadline) {
    if (!begin_closing()) {
        return;
    }
    // Enough for threads that only pass through.
    constexpr std::chrono::milliseconds moment{100};
    const auto until = std::max<clock::time_point>(deadline, clock::now() + moment);
    for (auto pause = std::chrono::microseconds{50}; store_.in_use() && clock::now() < until;
         pause = std::min(pause * 2, std::chrono::microseconds{5000})) {
        std::this_thread::sleep_for(pause);
    }
    if (!store_.in_use()) {
        close_engine();
        return;
    }
    // A caller's thread is inside the engine, with a request that the store does not answer. It leaves
    // when its request times out.
    try {
        std::thread{[self = shared_from_this()] { self->close_engine(); }}.detach();
    } catch (const std::system_error&) {
        close_engine();  // no thread to be had that could wait for us
    }
}

void session::close_engine() noexcept {
    store_.wait_until_unused();
    timer_.reset();
    core_.end_watches();
    store_.end();
    notifier_.reset();
}

}  // namespace holdfast::detail
