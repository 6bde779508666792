#include <runtime/session.hpp>

#include <holdfast/detail/deadline.hpp>
#include <runtime/fork_guard.hpp>
#include <runtime/joint_hold.hpp>
#include <runtime/safety_recheck.hpp>
#include <runtime/session_call.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace holdfast::detail {

namespace {

/// So often may one thread be overtaken by others of its process, while it wakes up, before it is
/// given the lock.
constexpr std::uint32_t most_overtakings = 16;

/// As the core has it.
constexpr std::chrono::milliseconds least_time_to_answer{50};

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
    : engine_{std::move(engine)},
      abilities_{engine_->offers()},
      identity_{identity},
      promises_{engine_->promises()},
      address_{engine_->address()},
      store_identity_{engine_->store_identity()},
      options_{options},
      generation_{fork_generation()},
      table_{settings_from(options, identity.client, abilities_), identity.client} {}

void session::start() {
    notifier_.emplace(options_.events, &dropped_events_);
    timer_.emplace([this] { tick(); });
    engine_->attach({[this] {
                         drive([](core::lock_table& table, clock::time_point now) {
                             table.on_holds_may_have_changed(now);
                         });
                     },
                     [this](const std::string& name, const owner_id& owner,
                            const std::optional<engines::turn_grant>& granted) {
                         drive([&](core::lock_table& table, clock::time_point now) {
                             table.on_turn(name, owner, granted, now);
                         });
                     },
                     [this](const failure& why) {
                         if (options_.events && !closed_.load()) {
                             event seen;
                             seen.kind = event_kind::degraded;
                             seen.error = why;
                             notifier_->tell_observer(std::move(seen));
                         }
                     }});
}

bool session::forked() const noexcept {
    return generation_ != fork_generation();
}

bool session::follow_up::is_self(core::waiter_id who) const noexcept {
    return self && self->number == who && !self->done.load(std::memory_order_relaxed);
}

void session::follow_up::wake(const std::shared_ptr<call>& who) {
    if (who == self) {
        return;  // awake
    }
    if (!first_to_wake) {
        first_to_wake = who;
    } else {
        others_to_wake.push_back(who);  // a hand-over wakes the next, and the one after it
    }
}

void session::follow_up::wake_all() const {
    if (first_to_wake) {
        first_to_wake->spot.unpark();
    }
    for (const auto& one : others_to_wake) {
        one->spot.unpark();
    }
}

void session::collect(follow_up& rest) {
    doing_ = table_.take_actions(std::move(doing_));
    for (auto& what : doing_) {
        apply(what, rest);
    }
    // Only ever moved forward here: a timer that fires early costs less than a system call per lock.
    if (const auto next = table_.wake_at(); next < armed_for_ && !closed_.load()) {
        armed_for_ = next;
        timer_->arm(next);
    }
}

std::shared_ptr<session::call> session::find_call(core::waiter_id who, const follow_up& rest) const {
    if (rest.is_self(who)) {
        return rest.self;
    }
    if (const auto found = calls_.find(who); found != calls_.end()) {
        return found->second;
    }
    const auto found = conversions_.find(who);
    return found == conversions_.end() ? nullptr : found->second;
}

std::shared_ptr<session::call> session::take_call(call_map& from, core::waiter_id who,
                                                  const follow_up& rest) {
    if (rest.is_self(who)) {
        return rest.self;
    }
    auto node = from.extract(who);
    return node.empty() ? nullptr : std::move(node.mapped());
}

/// What concerns this process alone happens here, in order, under the mutex; what concerns the store is
/// left for later.
void session::apply(core::action& what, follow_up& rest) {
    const auto leave_to = [&](core::waiter_id who, auto&& task) {
        const auto mine = find_call(who, rest);
        if (!mine) {
            rest.tasks.emplace_back(std::forward<decltype(task)>(task));
            return;
        }
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(task)>, core::send_acquire>) {
            if (auto* const together = mine->together) {
                together->keep(std::forward<decltype(task)>(task));
                return;
            }
        }
        if (mine == rest.self && !mine->own_task) {
            mine->own_task.emplace(std::forward<decltype(task)>(task));
            return;
        }
        mine->tasks.emplace_back(std::forward<decltype(task)>(task));
        mine->has_tasks.store(true, std::memory_order_release);
        rest.wake(mine);
    };
    const auto answer = [&](call_map& from, core::waiter_id who, const auto& fill) {
        if (const auto mine = take_call(from, who, rest)) {
            fill(*mine);
            finish(mine, rest);
        }
    };
    if (auto* ask = std::get_if<core::send_acquire>(&what)) {
        leave_to(ask->on_behalf_of, std::move(*ask));
    } else if (auto* back = std::get_if<core::send_release>(&what)) {
        leave_to(back->on_behalf_of, std::move(*back));
    } else if (auto* renew = std::get_if<core::send_renew>(&what)) {
        rest.tasks.emplace_back(std::move(*renew));
    } else if (auto* watch = std::get_if<core::update_watch>(&what)) {
        rest.tasks.emplace_back(std::move(*watch));
    } else if (auto* soon = std::get_if<core::stand_by>(&what)) {
        if (const auto mine = find_call(soon->id, rest)) {
            mine->standing_by.store(true, std::memory_order_release);
            rest.wake(mine);
        }
    } else if (auto* offer = std::get_if<core::offer_turn>(&what)) {
        if (const auto mine = find_call(offer->id, rest)) {
            mine->offered.store(true, std::memory_order_release);
            rest.wake(mine);
        }
    } else if (auto* got = std::get_if<core::finish_acquire>(&what)) {
        complete(*got, rest);
    } else if (auto* gone = std::get_if<core::finish_release>(&what)) {
        holds_.erase(gone->id);
        answer(calls_, gone->id, [&](call& mine) { mine.outcome = gone->outcome; });
        if (const auto together = tallies_.extract(gone->id); !together.empty()) {
            together.mapped().in->put(together.mapped().index, gone->outcome);
        }
    } else if (auto* changed = std::get_if<core::finish_convert>(&what)) {
        answer(conversions_, changed->id, [&](call& mine) {
            mine.error = std::move(changed->error);
            mine.token = changed->token;
        });
    } else if (auto* valid = std::get_if<core::set_validity>(&what)) {
        if (const auto held = holds_.find(valid->id); held != holds_.end()) {
            held->second.itself->set_validity(valid->valid_until);
        }
    } else if (auto* loss = std::get_if<core::tell_loss>(&what)) {
        if (const auto held = holds_.find(loss->id); held != holds_.end()) {
            held->second.itself->set_loss(loss->why.code, loss->why.detail);
            // One whose last owner is leaving tells the loss itself.
            if (auto owned = closed_.load() ? nullptr : held->second.owned.lock()) {
                notifier_->tell_loss(std::move(owned));
            }
        }
    } else if (auto* seen = std::get_if<core::tell_observer>(&what);
               seen != nullptr && !closed_.load()) {
        notifier_->tell_observer(std::move(seen->what));
    }
}

void session::complete(core::finish_acquire& what, follow_up& rest) {
    const auto mine = take_call(calls_, what.id, rest);
    if (!mine) {
        return;
    }
    mine->error = std::move(what.error);
    if (!mine->error) {
        auto& place = holds_[what.id];
        mine->taken = std::make_shared<hold>(
            shared_from_this(), what.id, std::move(what.name), what.owner.sequence, what.token,
            what.valid_until, what.jeopardy, what.longest, mine->asked->kind, mine->asked->mode);
        place = {mine->taken.get(), mine->taken};
    }
    finish(mine, rest);
}

/// The caller has its answer. What it did not get to is done by whoever is here.
void session::finish(const std::shared_ptr<call>& mine, follow_up& rest) {
    for (auto& task : mine->tasks) {
        rest.tasks.push_back(std::move(task));
    }
    mine->tasks.clear();
    mine->done.store(true, std::memory_order_release);
    rest.wake(mine);
}

void session::perform(store_task& task, engines::caller from) noexcept {
    try {
        send(task, from);
    } catch (const std::exception& wrong) {
        refuse(task, {errc::outcome_unknown, wrong.what()});
    }
}

void session::send(store_task& task, engines::caller from) {
    const engine_use in_use{*this};
    if (!in_use) {
        refuse(task, {errc::shut_down, "shutdown was called, or the client was destroyed"});
        return;
    }
    if (auto* watch = std::get_if<core::update_watch>(&task)) {
        update_watch(*watch);
        return;
    }
    requests_.fetch_add(1, std::memory_order_relaxed);
    if (auto* ask = std::get_if<core::send_acquire>(&task)) {
        // The store has its time also when this thread did not get to run until now.
        const auto least = std::min(options_.request_timeout, least_time_to_answer);
        const auto deadline = std::max(ask->deadline, deadline_after(least));
        engine_->acquire(std::move(ask->request), {deadline, from},
                         [this, id = ask->id](const engines::acquire_reply& reply) {
                             drive([&](core::lock_table& table, clock::time_point now) {
                                 table.on_acquire_reply(id, reply, now);
                             });
                         });
    } else if (auto* back = std::get_if<core::send_release>(&task)) {
        engine_->release(std::move(back->request), {back->deadline, from},
                         [this, id = back->id](const engines::release_reply& reply) {
                             drive([&](core::lock_table& table, clock::time_point now) {
                                 table.on_release_reply(id, reply, now);
                             });
                         });
    } else if (auto* renew = std::get_if<core::send_renew>(&task)) {
        engine_->renew(std::move(renew->requests), {renew->deadline, from},
                       [this, id = renew->id](const std::vector<engines::renew_reply>& replies) {
                           drive([&](core::lock_table& table, clock::time_point now) {
                               table.on_renew_replies(id, replies, now);
                           });
                       });
    }
}

/// The engine is gone, or fails: answer in its place, so that nobody waits for ever. A watch that was
/// not made is missed by nobody: whoever waits asks again after a while.
void session::refuse(const store_task& task, const failure& why) noexcept {
    drive([&](core::lock_table& table, clock::time_point now) {
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

/// Makes the watch on a name what the core wants now, which may no longer be what it wanted when it
/// asked.
void session::update_watch(const core::update_watch& what) {
    if (abilities_.watching == nullptr) {
        return;  // those who wait ask again after a pause
    }
    const auto& name = what.name;
    bool active = false;
    {
        const std::lock_guard one_at_a_time{watch_guard_};
        const bool wanted = [&] {
            const std::lock_guard lock{guard_};
            return table_.wants_watch(name);
        }();
        const auto found = watches_.find(name);
        if (!wanted && found != watches_.end()) {
            watches_.erase(found);
        } else if (wanted && found == watches_.end()) {
            auto watch = abilities_.watching->watch(name, what.kind, [this, name] {
                drive(
                    [&](core::lock_table& table, clock::time_point now) { table.on_hint(name, now); });
            });
            active = watch->active();
            watches_.emplace(name, std::move(watch));
        }
    }
    if (active) {
        drive(
            [&](core::lock_table& table, clock::time_point now) { table.on_watch_active(name, now); });
    }
}

/// Sends what the core has for the store on this caller's behalf.
void session::perform_own(call& mine, store_task& task) noexcept {
    if (const auto* const ask = std::get_if<core::send_acquire>(&task)) {
        mine.asked_as = ask->request.owner;
    }
    perform(task, mine.may_leave ? engines::caller::must_not_block : engines::caller::may_block);
}

/// Does what there is to do at the store on the caller's behalf, until its answer is there.
void session::wait(const std::shared_ptr<call>& mine) {
    const auto answered = [&] { return mine->done.load(std::memory_order_acquire); };
    const auto has_tasks = [&] { return mine->has_tasks.load(std::memory_order_acquire); };
    const auto offered = [&] { return mine->offered.load(std::memory_order_acquire); };
    const auto called = [&] { return answered() || has_tasks() || offered(); };
    if (auto first = std::exchange(mine->own_task, std::nullopt)) {
        perform_own(*mine, *first);
    }
    while (!answered()) {
        if (has_tasks()) {
            std::vector<store_task> tasks;
            {
                const std::lock_guard lock{guard_};
                tasks.swap(mine->tasks);
                mine->has_tasks.store(false, std::memory_order_relaxed);
            }
            for (auto& task : tasks) {
                perform_own(*mine, task);
            }
        } else if (mine->offered.exchange(false, std::memory_order_acq_rel)) {
            drive([&](core::lock_table& table, clock::time_point now) {
                table.take_turn(mine->number, now);
            });
            yield_until(called);  // if somebody was quicker, it is free again in a moment
        } else if (mine->standing_by.exchange(false, std::memory_order_acq_rel)) {
            yield_until(called);
        } else {
            attend(*mine);
            mine->spot.park();
        }
    }
}

session::acquired session::acquire(const core::claim& what, const std::stop_token& stop) {
    if (forked()) {
        return {nullptr,
                {errc::forked, "it belongs to the parent process; make a new one in the child"}};
    }
    if (stop.stop_requested()) {
        return {nullptr, {errc::cancelled, "the caller had stopped waiting before it began"}};
    }
    const auto mine = std::make_shared<call>();
    mine->asked = &what;
    mine->may_leave = stop.stop_possible();
    drive([&](core::lock_table& table,
              clock::time_point now) { mine->number = table.acquire(what, now); },
          mine);
    const std::stop_callback cancel{stop, [&] {
                                        drive([&](core::lock_table& table, clock::time_point now) {
                                            table.cancel(mine->number, errc::cancelled, now);
                                        });
                                    }};
    wait(mine);
    return {std::move(mine->taken), std::move(mine->error)};
}

void session::abandon(const hold& which) noexcept {
    drive([&](core::lock_table& table, clock::time_point now) { table.abandon(which.number(), now); });
}

release_outcome session::release(hold& which, std::chrono::milliseconds linger) noexcept {
    which.set_given_back();
    if (forked()) {
        return release_outcome::already_lost;
    }
    const auto mine = std::make_shared<call>();
    mine->number = which.number();
    drive([&](core::lock_table& table,
              clock::time_point now) { table.release_hold(which.number(), linger, now); },
          mine);
    wait(mine);
    return mine->outcome;
}

failure session::convert(hold& which, claim_mode to) {
    if (forked()) {
        return {errc::forked, "it belongs to the parent process; make a new one in the child"};
    }
    const auto mine = std::make_shared<call>();
    mine->number = which.number();
    mine->converts = true;
    drive(
        [&](core::lock_table& table, clock::time_point now) {
            if (conversions_.contains(mine->number)) {
                mine->error = {errc::not_owner, "another thread is converting this lease"};
                mine->done.store(true, std::memory_order_release);
                return;
            }
            table.convert(mine->number, to, now);
        },
        mine);
    wait(mine);
    if (!mine->error) {
        which.set_token(mine->token);
        which.set_mode(to);
    } else if (const auto why = which.loss(); mine->error.code == errc::lost && why != errc{}) {
        const auto told = which.loss_detail();
        return {why, told.empty() ? mine->error.detail : told};
    }
    return mine->error;
}

void session::tick() {
    drive([this](core::lock_table& table, clock::time_point now) {
        armed_for_ = clock::time_point::max();
        table.on_time(now);
    });
}

}  // namespace holdfast::detail
