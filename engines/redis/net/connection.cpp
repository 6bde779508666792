#include <redis/net/connection.hpp>

#include <common/backoff.hpp>
#include <common/poll_timeout.hpp>
#include <common/quiet_thread.hpp>
#include <redis/net/callback_mark.hpp>
#include <redis/net/foreign.hpp>
#include <redis/net/handshake.hpp>
#include <redis/net/link.hpp>
#include <redis/net/request.hpp>
#include <threading/bell.hpp>
#include <threading/primitives.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

namespace holdfast::engines::redis {

using namespace std::chrono_literals;

namespace {

constexpr clock::duration a_long_time = 1h;

/// A socket that is still connecting has none.
bool has_peer(int socket) noexcept {
    ::sockaddr_storage peer{};
    ::socklen_t size = sizeof peer;
    return ::getpeername(socket, reinterpret_cast<::sockaddr*>(&peer), &size) == 0;
}

}  // namespace

/// Callers use the link while there is one. The background thread makes it, serves it when no caller
/// does, and runs completions that could not be run elsewhere.
struct connection::state final : link::keeper {
public:
    state(node_address where, connection_settings settings, commands greeting, events told)
        : where_{std::move(where)},
          settings_{std::move(settings)},
          greeting_{std::move(greeting)},
          told_{std::move(told)},
          name_{where_.text()} {}

    void send(encode encoder, call terms, done finished);
    [[nodiscard]] failure connect(clock::time_point deadline);
    void reset(const failure& reason);
    void close();
    [[nodiscard]] const node_address& where() const noexcept { return where_; }
    [[nodiscard]] std::uint64_t commands_sent();

private:
    using guard = link::guard;
    enum class phase : std::uint8_t { idle, connecting, ready, pausing, closed };

    /// The most requests that may be under way, or wait for a connection.
    static constexpr std::size_t most_requests = 65'536;
    /// A connection that was silent for longer is checked before it is used.
    static constexpr std::chrono::seconds trusted_for{1};

    // Asking and waiting.
    void submit(std::unique_ptr<request> asked);
    void await_end(request& own);
    void follow(request& own, clock::time_point now, clock::duration until_written);
    void add(request& added, aftermath& after);
    void add_to_link(request& added, aftermath& after);

    // Ending requests.
    void end(request& over, failure error, aftermath& after) override;
    void end_waiting(const failure& reason, aftermath& after);
    void expire(request& late, aftermath& after);
    void expire_all(clock::time_point now, aftermath& after);
    void drop(const failure& reason, aftermath& after) override;
    void settle(aftermath& after) override;
    [[nodiscard]] bool defer(std::vector<std::unique_ptr<request>>& due);
    void run(request& over);

    // The background.
    void start_background();
    void wake_background() override;
    void expect_expiry(clock::time_point deadline);
    void work();
    void serve(guard& lock);
    void attempt(guard& lock);
    [[nodiscard]] failure make_link(std::shared_ptr<link>& made);
    [[nodiscard]] std::string not_ready_in_time() const;
    [[nodiscard]] bool wait_in_attempt(int descriptor, short events, clock::time_point deadline);
    void attempt_failed(const failure& reason, aftermath& after);
    void attempt_succeeded(guard& lock, std::shared_ptr<link> made, aftermath& after);
    short sleep(guard& lock, int descriptor, short events, clock::time_point until);
    void tidy(guard& lock);

    const node_address where_;
    const connection_settings settings_;
    const commands greeting_;
    const events told_;
    const std::string name_;

    threading::mutex mutex_;
    phase phase_{phase::idle};
    std::shared_ptr<link> link_;
    /// Requests that wait for a connection. Nothing of them is encoded yet.
    std::deque<request*> waiting_;
    failure last_failure_;
    backoff backoff_;
    clock::time_point pause_ends_{};
    std::uint64_t generation_{};
    /// Sent over connections that are gone.
    std::uint64_t commands_before_{};
    std::uint64_t attempts_{};
    /// The server has taken the connection of the attempt under way, or of the last one that failed.
    bool taken_{};
    threading::condition_variable attempted_;

    threading::jthread thread_;
    bool started_{};
    bool sleeping_{};
    threading::bell bell_;
    /// What the server called the last connection. Only for the background.
    peer_name peer_name_;
    /// When the background looks for overdue requests.
    clock::time_point next_expiry_{clock::time_point::max()};
    /// Completions that could not be run where they became due.
    std::vector<std::unique_ptr<request>> deferred_;
    std::vector<failure> losses_;

    /// Requests that are over and whose completion has not returned yet.
    threading::atomic<int> running_{0};
};

void connection::state::send(encode encoder, call terms, done finished) {
    // A callback must not wait for what only its own thread could read.
    if (terms.from == caller::may_block && callback_mark::depth(this) == 0) {
        request own{.encode = std::move(encoder),
                    .finished = std::move(finished),
                    .deadline = terms.deadline,
                    .from = caller::may_block};
        await_end(own);
        run(own);
        return;
    }
    auto asked = std::make_unique<request>();
    asked->encode = std::move(encoder);
    asked->finished = std::move(finished);
    asked->deadline = terms.deadline;
    submit(std::move(asked));
}

void connection::state::submit(std::unique_ptr<request> asked) {
    aftermath after;
    guard lock{mutex_};
    start_background();
    add(*asked.release(), after);
    if (link_) {
        link_->write(lock, clock::now(), after);
    }
    if (link_) {
        link_->let_others_read();
    }
    lock.unlock();
    settle(after);
}

void connection::state::await_end(request& own) {
    const callback_mark mark{&running_};
    aftermath after;
    guard lock{mutex_};
    start_background();
    add(own, after);
    if (link_) {
        link_->write(lock, own.made, after);
    }
    if (link_) {
        link_->let_caller_read(own);
    }
    auto now = own.made;
    while (own.told() != request::turn::ended) {
        if (own.told() == request::turn::leads) {
            link_->read_as_caller(lock, own, now, after);
            continue;
        }
        // Whoever is at work takes what was collected along. If that takes long, the caller of the
        // first request that was collected writes.
        const bool writes = own.first_collected && link_ && link_->requests().unsent(own);
        const auto until_written = writes ? clock::duration{pipeline::longest_collection} : a_long_time;
        lock.unlock();
        settle(after);
        follow(own, now, until_written);
        if (own.told() == request::turn::leads) {
            now = clock::now();
            lock.lock();
        }
    }
    if (lock.owns_lock()) {
        lock.unlock();
    }
    settle(after);
}

/// Waits until the caller must read, or its request is over. Writes after each `until_written`, until
/// the request is written.
void connection::state::follow(request& own, clock::time_point now, clock::duration until_written) {
    for (;;) {
        own.wait(std::min(own.deadline, now + until_written), now);
        if (own.told() != request::turn::none) {
            return;
        }
        aftermath after;
        guard lock{mutex_};
        now = clock::now();
        if (own.told() == request::turn::none && now >= own.deadline) {
            expire(own, after);
        }
        if (link_ && link_->requests().unsent(own)) {
            link_->write(lock, now, after);
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
    if (phase_ == phase::ready && link_->requests().idle() &&
        added.made - link_->requests().last_write() > trusted_for && link_->socket().stale()) {
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
    if (link_->requests().size() >= most_requests) {
        end(added, {errc::store_unavailable, name_ + ": too many requests wait for an answer"}, after);
        return;
    }
    if (added.from == caller::must_not_block) {
        expect_expiry(added.deadline);
    }
    if (!link_->requests().append(added)) {
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
    // deadline may still say what is wrong.
    constexpr auto last_words = 100ms;
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
    return {errc::store_unavailable, not_ready_in_time() + "; is the server up?"};
}

void connection::state::reset(const failure& reason) {
    aftermath after;
    guard lock{mutex_};
    if (link_) {
        drop(reason, after);
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
    const failure reason{errc::shut_down, name_ + ": the connection was closed"};
    phase_ = phase::closed;
    if (link_) {
        drop(reason, after);
    }
    end_waiting(reason, after);
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
    // Called from a callback, it cannot wait for that callback, nor for a call that reads for everybody
    // and runs that callback.
    const int own = callback_mark::depth(this) + callback_mark::depth(&running_);
    for (int count = running_.load(); count > own; count = running_.load()) {
        running_.wait(count);
    }
}

std::uint64_t connection::state::commands_sent() {
    const guard lock{mutex_};
    return commands_before_ + (link_ ? link_->requests().commands() : 0);
}

void connection::state::end(request& over, failure error, aftermath& after) {
    running_.fetch_add(1, std::memory_order_relaxed);
    if (error) {
        over.outcome.replies.clear();
        over.outcome.error = std::move(error);
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

std::string connection::state::not_ready_in_time() const {
    return name_ + (taken_ ? ": no answer in time" : ": no connection in time");
}

void connection::state::end_waiting(const failure& reason, aftermath& after) {
    for (request* const each : std::exchange(waiting_, {})) {
        end(*each, reason, after);
    }
}

void connection::state::expire(request& late, aftermath& after) {
    if (std::erase(waiting_, &late) == 0) {
        link_->expire(late, after);
        return;
    }
    std::string words = not_ready_in_time();
    if (last_failure_) {
        words += " (" + last_failure_.detail + ")";
    }
    end(late, {errc::store_unavailable, std::move(words)}, after);
}

void connection::state::expire_all(clock::time_point now, aftermath& after) {
    auto next = clock::time_point::max();
    for (request* const each : std::exchange(waiting_, {})) {
        if (each->overdue(now)) {
            end(*each, {errc::store_unavailable, not_ready_in_time()}, after);
            continue;
        }
        waiting_.push_back(each);
        if (each->from == caller::must_not_block) {
            next = std::min(next, each->deadline);
        }
    }
    if (link_) {
        next = std::min(next, link_->expire_all(now, after));
    }
    // Not too often: every look goes through all of them.
    next_expiry_ = std::max(next, now + 1ms);
}

void connection::state::drop(const failure& reason, aftermath& after) {
    const auto lost = std::exchange(link_, nullptr);
    const bool closing = phase_ == phase::closed;
    lost->close(!closing);
    commands_before_ += lost->requests().commands();
    lost->requests().each([&](request& pending, pipeline::reach reached) {
        const bool sent = reached == pipeline::reach::sent;
        const auto code = sent ? errc::outcome_unknown : errc::store_unavailable;
        end(pending, closing ? reason : failure{code, reason.detail}, after);
    });
    if (closing) {
        return;
    }
    last_failure_ = {errc::store_unavailable, reason.detail};
    losses_.push_back(last_failure_);
    const auto now = clock::now();
    const auto pause = backoff_.after_loss(now);
    pause_ends_ = now + pause;
    phase_ = pause > clock::duration::zero() ? phase::pausing : phase::connecting;
    wake_background();
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
    if (callback_mark::depth(this) > 0 && defer(due)) {
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
        const callback_mark mark{this};
        over.finished(std::move(over.outcome));
        over.finished = nullptr;
        over.encode = nullptr;
    }
    running_.fetch_sub(1);
    running_.notify_all();
}

void connection::state::start_background() {
    if (started_ || phase_ == phase::closed) {
        return;
    }
    thread_ = quiet_thread([self = std::shared_ptr<state>{shared_from_this(), this}] { self->work(); });
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

void connection::state::work() {
    guard lock{mutex_};
    while (phase_ != phase::closed) {
        // Answers may be there for overdue requests: they are read first.
        if (!link_ || !link_->take_over_reading(next_expiry_)) {
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
            const callback_mark mark{this};
            told_.lost(each);
        }
    }
    lock.lock();
}

short connection::state::sleep(guard& lock, int descriptor, short events, clock::time_point until) {
    const bool busy = phase_ == phase::closed || !deferred_.empty() || !losses_.empty();
    const auto now = clock::now();
    const auto next_look = link_ ? link_->next_look() : clock::time_point::max();
    const auto wake_at = busy ? now : std::min({until, next_expiry_, next_look});
    sleeping_ = true;
    lock.unlock();
    const short ready = bell_.sleep(descriptor, events, poll_timeout(wake_at, now));
    lock.lock();
    sleeping_ = false;
    return ready;
}

void connection::state::serve(guard& lock) {
    const auto current = link_;
    aftermath after;
    // Read before polling: bytes that TLS has already taken from the socket do not show there.
    if (!current->read_as_background(lock, after)) {
        const bool reads = current->reading() == link::reader::background;
        const auto events = static_cast<short>((reads ? POLLIN : 0) | (current->stuck() ? POLLOUT : 0));
        const auto until = reads ? clock::now() + net::stream::longest_read : clock::time_point::max();
        const short ready = sleep(lock, events != 0 ? current->socket().socket() : -1, events, until);
        if (current == link_ && current->stuck() && (ready & ~POLLIN) != 0) {
            current->write_on(lock, after);
        }
    }
    lock.unlock();
    settle(after);
    lock.lock();
}

void connection::state::attempt(guard& lock) {
    std::shared_ptr<link> made;
    taken_ = false;
    lock.unlock();
    const failure reason = make_link(made);
    lock.lock();
    if (phase_ == phase::closed) {
        return;
    }
    aftermath after;
    if (reason) {
        attempt_failed(reason, after);
    } else {
        attempt_succeeded(lock, std::move(made), after);
    }
    lock.unlock();
    settle(after);
    lock.lock();
}

failure connection::state::make_link(std::shared_ptr<link>& made) {
    const auto deadline = clock::now() + settings_.connect_timeout;
    const net::waiting wait = [this](int descriptor, short events, clock::time_point until) {
        return wait_in_attempt(descriptor, events, until);
    };
    auto opened = net::stream::open(where_, settings_.tls, redis_without_tls, deadline, wait);
    if (opened.error) {
        return std::move(opened.error);
    }
    auto answers = std::make_unique<reply_reader>();
    introduction said = introduce(*opened.connected, *answers, where_, settings_, peer_name_, greeting_,
                                  deadline, wait);
    if (said.error) {
        return std::move(said.error);
    }
    peer_name_ = std::move(said.name);
    if (told_.check_greeting) {
        const callback_mark mark{this};
        if (failure reason = told_.check_greeting(said.replies)) {
            return reason;
        }
    }
    const server_facts facts{.time = said.time, .read_at = clock::now(), .generation = generation_ + 1};
    made = std::make_shared<link>(std::move(opened.connected), std::move(answers), facts, name_, *this,
                                  mutex_);
    return {};
}

bool connection::state::wait_in_attempt(int descriptor, short events, clock::time_point deadline) {
    guard lock{mutex_};
    for (;;) {
        taken_ = taken_ || has_peer(descriptor);
        tidy(lock);
        if (phase_ == phase::closed) {
            return false;
        }
        if (sleep(lock, descriptor, events, deadline) != 0) {
            return true;
        }
        if (clock::now() >= deadline) {
            return false;
        }
    }
}

void connection::state::attempt_failed(const failure& reason, aftermath& after) {
    ++attempts_;
    last_failure_ = reason;
    losses_.push_back(reason);
    pause_ends_ = clock::now() + backoff_.next();
    phase_ = phase::pausing;
    end_waiting(reason, after);
    attempted_.notify_all();
}

void connection::state::attempt_succeeded(guard& lock, std::shared_ptr<link> made, aftermath& after) {
    ++attempts_;
    taken_ = false;
    ++generation_;
    backoff_.succeeded();
    last_failure_ = {};
    link_ = std::move(made);
    phase_ = phase::ready;
    attempted_.notify_all();
    for (request* const each : std::exchange(waiting_, {})) {
        add_to_link(*each, after);
    }
    link_->write(lock, clock::now(), after);
    if (link_ && link_->reading() == link::reader::none) {
        link_->pass_on(after);
    }
}

connection::connection(node_address where, connection_settings settings,
                       std::vector<std::vector<std::string>> greeting, events told)
    : state_{std::make_shared<state>(std::move(where), std::move(settings), std::move(greeting),
                                     std::move(told))} {}

connection::~connection() {
    state_->close();
}

failure connection::connect(clock::time_point deadline) {
    return state_->connect(deadline);
}

void connection::send(encode encoder, call terms, done finished) {
    // A completion may destroy the connection.
    const auto alive = state_;
    alive->send(std::move(encoder), terms, std::move(finished));
}

void connection::reset(const failure& reason) {
    const auto alive = state_;
    alive->reset(reason);
}

const node_address& connection::where() const noexcept {
    return state_->where();
}

std::uint64_t connection::commands_sent() const noexcept {
    return state_->commands_sent();
}

}  // namespace holdfast::engines::redis
