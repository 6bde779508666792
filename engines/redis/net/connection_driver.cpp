#include <algorithm>
#include <redis/net/connection_state.hpp>
#include <utility>

namespace holdfast::engines::redis {

using namespace std::chrono_literals;

void connection::state::drive(guard& lock, request& mine, clock::time_point now, aftermath& after) {
    if (mine.told() != request::turn::leads) {
        return;
    }
    const auto on = link_;
    while (mine.told() == request::turn::leads) {
        lock.unlock();
        settle(after);
        net::io_result result = on->read(mine.deadline, now);
        lock.lock();
        if (on != link_) {
            return;
        }
        absorb(lock, std::move(result), after);
        if (mine.told() == request::turn::leads) {
            now = clock::now();
            if (now >= mine.deadline) {
                expire(mine, after);
            }
        }
    }
    if (on == link_) {
        pass_on(after);
    }
}

void connection::state::absorb(guard& lock, net::io_result result, aftermath& after) {
    failure broken;
    if (result.outcome == net::io_result::status::again) {
        if (link_->hopeless(clock::now())) {
            broken = {errc::store_unavailable, name_ + ": the server does not answer any more"};
        }
    } else {
        broken = link_->accept_answers([&](request& answered) { end(answered, {}, after); });
    }
    if (result.lost()) {
        broken = std::move(result.error);
    }
    if (broken) {
        drop(broken, after);
    } else if (link_->collected()) {
        write(lock, clock::now(), after);
    }
}

void connection::state::write(guard& lock, clock::time_point now, aftermath& after) {
    const auto on = link_;
    if (on->writing || !on->due(now)) {
        return;
    }
    on->writing = true;
    on->take_for_writing(now);
    write_on(lock, on, after);
}

void connection::state::write_on(guard& lock, const std::shared_ptr<link>& on, aftermath& after) {
    for (;;) {
        lock.unlock();
        const net::io_result result = on->write_taken();
        lock.lock();
        if (on != link_) {
            return;
        }
        if (result.lost()) {
            on->not_written();
            drop(result.error, after);
            return;
        }
        on->stuck = result.outcome == net::io_result::status::again;
        if (on->stuck) {
            wake_background();
            return;
        }
        // What came meanwhile goes along only if too little is under way, so that no caller is kept
        // busy with others' requests.
        if (!on->due(on->last_write())) {
            on->writing = false;
            return;
        }
        on->take_for_writing(on->last_write());
    }
}

void connection::state::pass_on(aftermath& after) {
    if (link_->idle()) {
        link_->reading = link::reader::none;
        return;
    }
    if (request* const next = link_->next_reader(); next != nullptr) {
        link_->reading = link::reader::caller;
        if (next->tell(request::turn::leads)) {
            // First, so that answers are read while the others wake up.
            after.to_wake.insert(after.to_wake.begin(), &next->spot);
        }
        return;
    }
    link_->reading = link::reader::background;
    wake_background();
}

failure connection::state::unanswered(link::reach how_far) const {
    if (how_far == link::reach::sent) {
        return {errc::outcome_unknown, name_ + ": no answer in time"};
    }
    return {errc::store_unavailable, name_ + ": the request could not be sent in time"};
}

void connection::state::drop(const failure& why, aftermath& after) {
    const auto on = std::exchange(link_, nullptr);
    if (phase_ == phase::closed) {
        on->socket().shut();
    } else {
        on->socket().discard();
    }
    commands_before_ += on->commands();
    on->each([&](request& pending, link::reach how_far) {
        if (phase_ == phase::closed) {
            end(pending, why, after);
            return;
        }
        const bool sent = how_far == link::reach::sent;
        end(pending, {sent ? errc::outcome_unknown : errc::store_unavailable, why.detail}, after);
    });
    if (phase_ == phase::closed) {
        return;
    }
    last_failure_ = {errc::store_unavailable, why.detail};
    losses_.push_back(last_failure_);
    const auto now = clock::now();
    const auto pause = backoff_.after_loss(now);
    pause_ends_ = now + pause;
    phase_ = pause > clock::duration::zero() ? phase::pausing : phase::connecting;
    wake_background();
}

void connection::state::expire(request& late, aftermath& after) {
    if (std::erase(waiting_, &late) > 0) {
        std::string words = name_ + ": no connection in time";
        if (last_failure_) {
            words += " (" + last_failure_.detail + ")";
        }
        end(late, {errc::store_unavailable, std::move(words)}, after);
        return;
    }
    const auto how_far = link_ ? link_->abandon(late) : link::reach::unsent;
    end(late, unanswered(how_far), after);
}

void connection::state::expire_all(clock::time_point now, aftermath& after) {
    const auto is_late = [&](const request& each) {
        return each.from == caller::must_not_block && each.deadline <= now;
    };
    auto next = clock::time_point::max();
    const auto look_at = [&](const request& each) {
        if (each.from == caller::must_not_block) {
            next = std::min(next, each.deadline);
        }
    };
    std::vector<request*> late;
    std::erase_if(waiting_, [&](request* each) {
        if (is_late(*each)) {
            late.push_back(each);
            return true;
        }
        look_at(*each);
        return false;
    });
    for (request* const each : late) {
        end(*each, {errc::store_unavailable, name_ + ": no connection in time"}, after);
    }
    if (link_) {
        link_->abandon_all(is_late, [&](request& each, link::reach how_far) {
            end(each, unanswered(how_far), after);
        });
        link_->each([&](const request& each, link::reach) { look_at(each); });
    }
    // Not too often: every look goes through all of them.
    next_expiry_ = std::max(next, now + 1ms);
}

void connection::state::end(request& over, failure why, aftermath& after) {
    running_.fetch_add(1, std::memory_order_relaxed);
    if (why) {
        over.outcome.replies.clear();
        over.outcome.error = std::move(why);
    }
    if (over.from == caller::must_not_block) {
        after.to_run.emplace_back(&over);
        return;
    }
    threading::parking_spot* const spot = &over.spot;
    if (over.tell(request::turn::ended)) {
        after.to_wake.push_back(spot);
    }
}

void connection::state::end_waiting(const failure& why, aftermath& after) {
    for (request* const each : std::exchange(waiting_, {})) {
        end(*each, why, after);
    }
}

void connection::state::settle(aftermath& after) {
    for (threading::parking_spot* const sleeper : after.to_wake) {
        threading::parking_spot::wake(sleeper);
    }
    after.to_wake.clear();
    if (after.to_run.empty()) {
        return;
    }
    auto due = std::exchange(after.to_run, {});
    // Run here, a callback that asks again whenever it is refused would never return.
    if (inside_callback::depth(this) > 0 && defer(due)) {
        return;
    }
    for (const auto& each : due) {
        run(*each);
    }
}

bool connection::state::defer(std::vector<std::unique_ptr<request>>& due) {
    const guard lock{mutex_};
    if (phase_ == phase::closed) {
        return false;
    }
    for (auto& each : due) {
        deferred_.push_back(std::move(each));
    }
    wake_background();
    return true;
}

void connection::state::run(request& over) {
    {
        const inside_callback mark{this};
        over.finished(std::move(over.outcome));
        over.finished = nullptr;
        over.encode = nullptr;
    }
    running_.fetch_sub(1);
    running_.notify_all();
}

}  // namespace holdfast::engines::redis
