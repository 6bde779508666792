#include <algorithm>
#include <redis/net/connection.hpp>
#include <redis/net/connection_state.hpp>
#include <utility>

namespace holdfast::engines::redis {

namespace {

/// What this thread is inside of.
[[nodiscard]] inside_callback*& innermost() noexcept {
    return threading::per_thread<inside_callback*, connection>();
}

constexpr clock::duration a_long_time = std::chrono::hours{1};

}  // namespace

inside_callback::inside_callback(const void* whose) noexcept
    : whose_{whose}, outer_{std::exchange(innermost(), this)} {}

inside_callback::~inside_callback() {
    innermost() = outer_;
}

int inside_callback::depth(const void* whose) noexcept {
    int count = 0;
    for (const inside_callback* each = innermost(); each != nullptr; each = each->outer_) {
        count += each->whose_ == whose ? 1 : 0;
    }
    return count;
}

connection::state::state(node_address where, connection_settings how, commands greeting, events told)
    : where_{std::move(where)},
      how_{std::move(how)},
      greeting_{std::move(greeting)},
      told_{std::move(told)},
      name_{where_.text()} {}

void connection::state::send(encode what, call how, done finished) {
    // A callback must not wait for what only its own thread could read.
    if (how.from == caller::may_block && inside_callback::depth(this) == 0) {
        request mine{.encode = std::move(what),
                     .finished = std::move(finished),
                     .deadline = how.deadline,
                     .from = caller::may_block};
        await_end(mine);
        run(mine);
        return;
    }
    auto asked = std::make_unique<request>();
    asked->encode = std::move(what);
    asked->finished = std::move(finished);
    asked->deadline = how.deadline;
    submit(std::move(asked));
}

void connection::state::submit(std::unique_ptr<request> asked) {
    aftermath after;
    guard lock{mutex_};
    start_background();
    request& added = *asked.release();
    add(added, after);
    if (link_) {
        write(lock, clock::now(), after);
    }
    if (link_ && !link_->idle() && link_->reading == link::reader::none && !leave_to_gatherer()) {
        link_->reading = link::reader::background;
        wake_background();
    }
    lock.unlock();
    settle(after);
}

void connection::state::await_end(request& mine) {
    const inside_callback mark{&running_};
    aftermath after;
    guard lock{mutex_};
    start_background();
    add(mine, after);
    if (link_) {
        write(lock, mine.made, after);
    }
    if (link_ && mine.told() == request::turn::none && link_->reading == link::reader::none &&
        !link_->idle()) {
        link_->reading = link::reader::caller;
        static_cast<void>(mine.tell(request::turn::leads));
    }
    auto now = mine.made;
    while (mine.told() != request::turn::ended) {
        if (mine.told() == request::turn::leads) {
            drive(lock, mine, now, after);
            continue;
        }
        // Whoever is at work takes what was collected along; if that takes long, the first of those
        // whose requests were collected sees to it.
        const bool looks_after = mine.first_collected && link_ && link_->unsent(mine);
        const auto until_written =
            looks_after ? clock::duration{link::longest_collection} : a_long_time;
        lock.unlock();
        settle(after);
        follow(mine, now, until_written);
        if (mine.told() == request::turn::leads) {
            now = clock::now();
            lock.lock();
        }
    }
    if (lock.owns_lock()) {
        lock.unlock();
    }
    settle(after);
}

void connection::state::follow(request& mine, clock::time_point now, clock::duration until_written) {
    for (;;) {
        mine.wait(std::min(mine.deadline, now + until_written), now);
        if (mine.told() != request::turn::none) {
            return;
        }
        aftermath after;
        guard lock{mutex_};
        now = clock::now();
        if (mine.told() == request::turn::none && now >= mine.deadline) {
            expire(mine, after);
        }
        if (link_ && link_->unsent(mine)) {
            write(lock, now, after);
        } else {
            until_written = a_long_time;
        }
        lock.unlock();
        settle(after);
    }
}

void connection::state::add(request& added, aftermath& after) {
    added.made = clock::now();
    if (phase_ == phase::closed) {
        end(added, {errc::shut_down, name_ + ": the connection was closed"}, after);
        return;
    }
    if (added.deadline <= added.made) {
        end(added, {errc::store_unavailable, name_ + ": the time was over before it could be asked"},
            after);
        return;
    }
    if (phase_ == phase::ready && link_->idle() && added.made - link_->last_write() > trusted_for &&
        link_->socket().stale()) {
        drop({errc::store_unavailable, name_ + ": the server closed the idle connection"}, after);
    }
    if (phase_ == phase::ready) {
        add_to_link(added, after);
        return;
    }
    if (phase_ == phase::pausing) {
        end(added, last_failure_, after);
        return;
    }
    if (waiting_.size() >= most_requests) {
        end(added, {errc::store_unavailable, name_ + ": too many requests wait for a connection"},
            after);
        return;
    }
    waiting_.push_back(&added);
    if (added.from == caller::must_not_block) {
        expect_expiry(added.deadline);
    }
    if (phase_ == phase::idle) {
        phase_ = phase::connecting;
        wake_background();
    }
}

void connection::state::add_to_link(request& added, aftermath& after) {
    if (link_->size() >= most_requests) {
        end(added, {errc::store_unavailable, name_ + ": too many requests wait for an answer"}, after);
        return;
    }
    if (added.from == caller::must_not_block) {
        expect_expiry(added.deadline);
    }
    if (!link_->append(added)) {
        end(added, {}, after);
    }
}

failure connection::state::connect(clock::time_point deadline) {
    guard lock{mutex_};
    if (phase_ == phase::closed) {
        return {errc::shut_down, name_ + ": the connection was closed"};
    }
    start_background();
    if (phase_ == phase::idle || phase_ == phase::pausing) {
        phase_ = phase::connecting;
        wake_background();
    }
    const std::uint64_t before = attempts_;
    // The far future would overflow on the way to the system's clock. An attempt that ends at the
    // deadline, too, may still say what is wrong.
    constexpr std::chrono::milliseconds last_words{100};
    const auto until = std::min(deadline, clock::now() + 24 * a_long_time) + last_words;
    attempted_.wait_until(lock, until, [&] {
        return phase_ == phase::ready || phase_ == phase::closed || attempts_ != before;
    });
    if (phase_ == phase::ready) {
        return {};
    }
    if (phase_ == phase::closed) {
        return {errc::shut_down, name_ + ": the connection was closed"};
    }
    if (attempts_ != before) {
        return last_failure_;
    }
    return {errc::store_unavailable, name_ + ": no connection in time; is the server up?"};
}

void connection::state::reset(const failure& why) {
    aftermath after;
    guard lock{mutex_};
    if (link_) {
        drop(why, after);
    }
    if (phase_ == phase::pausing) {
        phase_ = phase::connecting;
        wake_background();
    }
    lock.unlock();
    settle(after);
}

void connection::state::close() {
    aftermath after;
    guard lock{mutex_};
    const failure why{errc::shut_down, name_ + ": the connection was closed"};
    phase_ = phase::closed;
    if (link_) {
        drop(why, after);
    }
    end_waiting(why, after);
    wake_background();
    attempted_.notify_all();
    threading::jthread thread = std::move(thread_);
    lock.unlock();
    settle(after);
    if (thread.joinable() && thread.get_id() == threading::this_thread::get_id()) {
        thread.detach();
    } else if (thread.joinable()) {
        thread.join();
    }
    lock.lock();
    after.to_run = std::exchange(deferred_, {});
    lock.unlock();
    settle(after);
    // Called from a callback, it cannot wait for that one, nor for a call that reads for everybody and
    // has come by the callback in doing so.
    const int own = inside_callback::depth(this) + inside_callback::depth(&running_);
    for (int count = running_.load(); count > own; count = running_.load()) {
        running_.wait(count);
    }
}

std::uint64_t connection::state::commands_sent() {
    const guard lock{mutex_};
    return commands_before_ + (link_ ? link_->commands() : 0);
}

connection::connection(node_address where, connection_settings how,
                       std::vector<std::vector<std::string>> greeting, events told)
    : state_{std::make_shared<state>(std::move(where), std::move(how), std::move(greeting),
                                     std::move(told))} {}

connection::~connection() {
    state_->close();
}

failure connection::connect(clock::time_point deadline) {
    return state_->connect(deadline);
}

void connection::send(encode what, call how, done finished) {
    // A completion may destroy the connection.
    const auto alive = state_;
    alive->send(std::move(what), how, std::move(finished));
}

void connection::reset(const failure& why) {
    const auto alive = state_;
    alive->reset(why);
}

const node_address& connection::where() const noexcept {
    return state_->where();
}

std::uint64_t connection::commands_sent() const noexcept {
    return state_->commands_sent();
}

}  // namespace holdfast::engines::redis
