#include <algorithm>
#include <common/poll_timeout.hpp>
#include <common/quiet_thread.hpp>
#include <redis/net/connection_state.hpp>
#include <redis/net/foreign.hpp>
#include <utility>

#include <poll.h>

namespace holdfast::engines::redis {

void connection::state::start_background() {
    if (started_ || phase_ == phase::closed) {
        return;
    }
    thread_ = quiet_thread([self = shared_from_this()] { self->background(); });
    started_ = true;
}

void connection::state::wake_background() {
    if (std::exchange(sleeping_, false)) {
        bell_.ring();
    }
}

void connection::state::expect_expiry(clock::time_point deadline) {
    if (deadline < next_expiry_) {
        next_expiry_ = deadline;
        wake_background();
    }
}

void connection::state::background() {
    guard lock{mutex_};
    while (phase_ != phase::closed) {
        // Answers may be there for requests whose time is over: they are read first.
        if (!mind_what_was_put_off()) {
            tidy(lock);
        }
        switch (phase_) {
            case phase::connecting:
                attempt(lock);
                break;
            case phase::ready:
                serve(lock);
                break;
            case phase::pausing:
                sleep(lock, -1, 0, pause_ends_);
                if (phase_ == phase::pausing && clock::now() >= pause_ends_) {
                    phase_ = phase::connecting;
                }
                break;
            case phase::idle:
                sleep(lock, -1, 0, clock::time_point::max());
                break;
            case phase::closed:
                break;
        }
    }
}

void connection::state::tidy(guard& lock) {
    aftermath after;
    if (next_expiry_ != clock::time_point::max()) {
        if (const auto now = clock::now(); now >= next_expiry_) {
            expire_all(now, after);
        }
    }
    for (auto& each : std::exchange(deferred_, {})) {
        after.to_run.push_back(std::move(each));
    }
    const auto losses = std::exchange(losses_, {});
    if (after.to_run.empty() && after.to_wake.empty() && losses.empty()) {
        return;
    }
    lock.unlock();
    settle(after);
    for (const failure& each : losses) {
        if (told_.lost) {
            const inside_callback mark{this};
            told_.lost(each);
        }
    }
    lock.lock();
}

short connection::state::sleep(guard& lock, int descriptor, short wanted, clock::time_point until) {
    const bool busy = phase_ == phase::closed || !deferred_.empty() || !losses_.empty();
    const auto now = clock::now();
    const auto wake_at = busy ? now : std::min({until, next_expiry_, next_minding_});
    sleeping_ = true;
    lock.unlock();
    const short ready = bell_.sleep(descriptor, wanted, poll_timeout(wake_at, now));
    lock.lock();
    sleeping_ = false;
    return ready;
}

void connection::state::serve(guard& lock) {
    const auto on = link_;
    aftermath after;
    // Read before polling: bytes that TLS has already taken from the socket do not show there.
    if (on->reading == link::reader::background) {
        lock.unlock();
        net::io_result result = on->read_now();
        lock.lock();
        if (on != link_) {
            return;
        }
        const bool nothing = result.outcome == net::io_result::status::again;
        absorb(lock, std::move(result), after);
        if (on == link_ && !nothing) {
            pass_on(after);
        }
        if (!nothing || on != link_) {
            lock.unlock();
            settle(after);
            lock.lock();
            return;
        }
    }
    const bool reads = on->reading == link::reader::background;
    const auto wanted = static_cast<short>((reads ? POLLIN : 0) | (on->stuck ? POLLOUT : 0));
    const auto until = reads ? clock::now() + net::stream::longest_read : clock::time_point::max();
    const short seen = sleep(lock, wanted != 0 ? on->socket().socket() : -1, wanted, until);
    if (on == link_ && on->stuck && (seen & ~POLLIN) != 0) {
        write_on(lock, on, after);
    }
    lock.unlock();
    settle(after);
    lock.lock();
}

void connection::state::attempt(guard& lock) {
    std::shared_ptr<link> made;
    lock.unlock();
    const failure why = make_link(made);
    lock.lock();
    if (phase_ == phase::closed) {
        return;
    }
    aftermath after;
    if (why) {
        attempt_failed(why, after);
    } else {
        attempt_succeeded(lock, std::move(made), after);
    }
    lock.unlock();
    settle(after);
    lock.lock();
}

failure connection::state::make_link(std::shared_ptr<link>& made) {
    const auto deadline = clock::now() + how_.connect_timeout;
    const net::waiting wait = [this](int descriptor, short wanted, clock::time_point until) {
        return wait_in_attempt(descriptor, wanted, until);
    };
    auto opened = net::stream::open(where_, how_.tls, redis_without_tls, deadline, wait);
    if (opened.error) {
        return std::move(opened.error);
    }
    auto answers = std::make_unique<reply_reader>();
    introduction said =
        introduce(*opened.connected, *answers, where_, how_, peer_name_, greeting_, deadline, wait);
    if (said.error) {
        return std::move(said.error);
    }
    peer_name_ = std::move(said.name);
    if (told_.check_greeting) {
        const inside_callback mark{this};
        if (failure why = told_.check_greeting(said.replies)) {
            return why;
        }
    }
    const server_facts facts{.time = said.time, .read_at = clock::now(), .generation = generation_ + 1};
    made = std::make_shared<link>(std::move(opened.connected), std::move(answers), facts);
    return {};
}

bool connection::state::wait_in_attempt(int descriptor, short wanted, clock::time_point until) {
    guard lock{mutex_};
    for (;;) {
        tidy(lock);
        if (phase_ == phase::closed) {
            return false;
        }
        if (sleep(lock, descriptor, wanted, until) != 0) {
            return true;
        }
        if (clock::now() >= until) {
            return false;
        }
    }
}

void connection::state::attempt_failed(const failure& why, aftermath& after) {
    ++attempts_;
    last_failure_ = why;
    losses_.push_back(why);
    pause_ends_ = clock::now() + backoff_.next();
    phase_ = phase::pausing;
    end_waiting(why, after);
    attempted_.notify_all();
}

void connection::state::attempt_succeeded(guard& lock, std::shared_ptr<link> made, aftermath& after) {
    ++attempts_;
    ++generation_;
    backoff_.succeeded();
    last_failure_ = {};
    link_ = std::move(made);
    phase_ = phase::ready;
    attempted_.notify_all();
    for (request* const each : std::exchange(waiting_, {})) {
        add_to_link(*each, after);
    }
    write(lock, clock::now(), after);
    if (link_ && link_->reading == link::reader::none) {
        pass_on(after);
    }
}

}  // namespace holdfast::engines::redis
