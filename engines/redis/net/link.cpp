#include <algorithm>
#include <common/gathering.hpp>
#include <redis/net/link.hpp>
#include <span>
#include <utility>

namespace holdfast::engines::redis {

using status = net::io_result::status;

/// The answers that a thread reads which has asked several servers.
class link::unread_answers final : public unread {
public:
    explicit unread_answers(std::shared_ptr<link> source)
        : owner_{source->owner_.shared_from_this()}, source_{std::move(source)} {}
    unread_answers(const unread_answers&) = delete;
    unread_answers& operator=(const unread_answers&) = delete;
    ~unread_answers() override { leave(true); }

    [[nodiscard]] int descriptor() const noexcept override { return source_->socket().socket(); }
    [[nodiscard]] bool fetch() override {
        if (!source_->fetch()) {
            source_.reset();
        }
        return source_ != nullptr;
    }
    void put_off() override { leave(false); }

private:
    void leave(bool at_once) {
        if (source_) {
            source_->end_fetching(at_once);
            source_.reset();
        }
    }

    const std::shared_ptr<keeper> owner_;
    /// Null when another thread may be the reader.
    std::shared_ptr<link> source_;
};

link::link(std::unique_ptr<net::stream> connected, std::unique_ptr<reply_reader> answers,
           server_facts facts, std::string name, keeper& owner, threading::mutex& mutex)
    : name_{std::move(name)},
      owner_{owner},
      mutex_{mutex},
      socket_{std::move(connected)},
      answers_{std::move(answers)},
      requests_{facts} {}

void link::write(guard& lock, clock::time_point now, aftermath& after) {
    if (writing_ || !requests_.due(now)) {
        return;
    }
    writing_ = true;
    take_for_writing(now);
    write_on(lock, after);
}

void link::take_for_writing(clock::time_point now) {
    requests_.take_for_writing(in_writing_, now);
    written_ = 0;
}

void link::write_on(guard& lock, aftermath& after) {
    const auto alive = shared_from_this();
    for (;;) {
        lock.unlock();
        const net::io_result result = write_taken();
        lock.lock();
        if (closed_) {
            return;
        }
        if (result.lost()) {
            requests_.not_sent(in_writing_.size() - written_);
            owner_.drop(result.error, after);
            return;
        }
        stuck_ = result.outcome == status::again;
        if (stuck_) {
            owner_.wake_background();
            return;
        }
        // What came meanwhile goes along only if too little is under way, so that no caller is kept
        // busy with others' requests.
        if (!requests_.due(requests_.last_write())) {
            writing_ = false;
            return;
        }
        take_for_writing(requests_.last_write());
    }
}

net::io_result link::write_taken() {
    net::io_result result;
    while (written_ < in_writing_.size() && result.outcome == status::done) {
        result = socket_->write_now(std::span{in_writing_}.subspan(written_));
        written_ += result.bytes;
    }
    return result;
}

net::io_result link::read(clock::time_point until, clock::time_point now) {
    return take_apart(socket_->read_some(buffer_, until, now));
}

net::io_result link::read_now() {
    return take_apart(socket_->read_now(buffer_));
}

net::io_result link::take_apart(net::io_result result) {
    if (result.outcome != status::done) {
        return result;
    }
    answers_->feed({buffer_.data(), result.bytes});
    auto progress = answers_->next(arrived_.emplace_back());
    while (progress == reply_reader::progress::complete) {
        progress = answers_->next(arrived_.emplace_back());
    }
    arrived_.pop_back();
    if (progress == reply_reader::progress::broken) {
        result.outcome = status::failed;
        result.error = {errc::store_unavailable,
                        "the server's answer makes no sense: " + answers_->problem()};
    }
    return result;
}

void link::accept(guard& lock, net::io_result result, aftermath& after) {
    failure broken;
    if (result.outcome == status::again) {
        if (requests_.hopeless(clock::now())) {
            broken = {errc::store_unavailable, name_ + ": the server does not answer any more"};
        }
    } else {
        broken =
            requests_.accept(arrived_, [&](request& answered) { owner_.end(answered, {}, after); });
    }
    if (result.lost()) {
        broken = std::move(result.error);
    }
    if (broken) {
        owner_.drop(broken, after);
    } else if (requests_.collected()) {
        write(lock, clock::now(), after);
    }
}

void link::let_caller_read(request& asked) noexcept {
    if (reading_ == reader::none && !requests_.idle() && asked.told() == request::turn::none) {
        reading_ = reader::caller;
        static_cast<void>(asked.tell(request::turn::leads));
    }
}

void link::let_others_read() {
    if (reading_ == reader::none && !requests_.idle() && !let_gatherer_read()) {
        let_background_read();
    }
}

void link::let_background_read() {
    reading_ = reader::background;
    owner_.wake_background();
}

void link::read_as_caller(guard& lock, request& own, clock::time_point now, aftermath& after) {
    const auto alive = shared_from_this();
    while (own.told() == request::turn::leads) {
        lock.unlock();
        owner_.settle(after);
        net::io_result result = read(own.deadline, now);
        lock.lock();
        if (closed_) {
            return;
        }
        accept(lock, std::move(result), after);
        if (own.told() == request::turn::leads) {
            now = clock::now();
            if (now >= own.deadline) {
                expire(own, after);
            }
        }
    }
    if (!closed_) {
        pass_on(after);
    }
}

bool link::read_as_background(guard& lock, aftermath& after) {
    if (reading_ != reader::background) {
        return false;
    }
    const auto alive = shared_from_this();
    lock.unlock();
    net::io_result result = read_now();
    lock.lock();
    if (closed_) {
        return true;
    }
    const bool nothing = result.outcome == status::again;
    accept(lock, std::move(result), after);
    if (!closed_ && !nothing) {
        pass_on(after);
    }
    return closed_ || !nothing;
}

void link::pass_on(aftermath& after) {
    if (requests_.idle()) {
        reading_ = reader::none;
        return;
    }
    if (request* const next = requests_.next_reader(); next != nullptr) {
        reading_ = reader::caller;
        if (next->tell(request::turn::leads)) {
            // First, so that answers are read while the others wake up.
            after.to_wake.insert(after.to_wake.begin(), &next->spot);
        }
        return;
    }
    let_background_read();
}

bool link::let_gatherer_read() {
    auto* const here = gathering::here();
    if (here == nullptr) {
        return false;
    }
    reading_ = reader::gatherer;
    here->add(std::make_unique<unread_answers>(shared_from_this()));
    return true;
}

/// False: nothing is left to fetch. Another thread may be the reader then.
bool link::fetch() {
    aftermath after;
    // Until nothing comes: bytes that TLS has already taken from the socket do not show there.
    for (bool came = true; came;) {
        net::io_result result = read_now();
        came = result.outcome != status::again;
        guard lock{mutex_};
        if (!closed_) {
            accept(lock, std::move(result), after);
        }
        const bool over = closed_ || requests_.idle();
        if (!closed_ && over) {
            reading_ = reader::none;
        }
        lock.unlock();
        owner_.settle(after);
        if (over) {
            return false;
        }
    }
    return true;
}

void link::end_fetching(bool at_once) {
    aftermath after;
    guard lock{mutex_};
    if (closed_) {
        return;
    }
    if (at_once || requests_.collected() || requests_.next_reader() != nullptr) {
        pass_on(after);
    } else {
        reading_ = reader::none;
        put_off_at_ = clock::now();
        if (next_look_ == clock::time_point::max()) {
            next_look_ = put_off_at_ + put_off_for;
            owner_.wake_background();
        }
    }
    lock.unlock();
    owner_.settle(after);
}

/// Looks on as long as threads come and put off: waking the background each time would cost more than
/// the reading.
bool link::take_over_reading(clock::time_point next_expiry) {
    if (next_look_ == clock::time_point::max()) {
        return false;
    }
    const auto now = clock::now();
    if (reading_ == reader::none && !requests_.idle()) {
        next_look_ = put_off_at_ + put_off_for;
        if (now < next_look_ && now < next_expiry) {
            return false;
        }
        reading_ = reader::background;
        next_look_ = clock::time_point::max();
        return true;
    }
    const bool still_used = std::exchange(seen_put_off_at_, put_off_at_) != put_off_at_;
    next_look_ = still_used ? now + put_off_for : clock::time_point::max();
    return false;
}

failure link::unanswered(pipeline::reach reached) const {
    if (reached == pipeline::reach::sent) {
        return {errc::outcome_unknown, name_ + ": no answer in time"};
    }
    return {errc::store_unavailable, name_ + ": the request could not be sent in time"};
}

void link::expire(request& late, aftermath& after) {
    owner_.end(late, unanswered(requests_.abandon(late)), after);
}

clock::time_point link::expire_all(clock::time_point now, aftermath& after) {
    requests_.abandon_all(
        [now](const request& each) { return each.overdue(now); },
        [&](request& late, pipeline::reach reached) { owner_.end(late, unanswered(reached), after); });
    auto next = clock::time_point::max();
    requests_.each([&](const request& each, pipeline::reach) {
        if (each.from == caller::must_not_block) {
            next = std::min(next, each.deadline);
        }
    });
    return next;
}

void link::close(bool discards_unsent) noexcept {
    closed_ = true;
    if (discards_unsent) {
        socket_->discard();
    } else {
        socket_->shut();
    }
}

}  // namespace holdfast::engines::redis
