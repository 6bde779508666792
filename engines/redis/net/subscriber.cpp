#include <algorithm>
#include <array>
#include <common/quiet_thread.hpp>
#include <mutex>
#include <optional>
#include <redis/net/backoff.hpp>
#include <redis/net/descriptor.hpp>
#include <redis/net/handshake.hpp>
#include <redis/net/subscriber.hpp>
#include <redis/net/subscriptions.hpp>
#include <thread>
#include <utility>

#include <poll.h>

namespace holdfast::engines::redis {

using namespace std::chrono_literals;

struct subscriber::state : std::enable_shared_from_this<subscriber::state> {
public:
    state(node_address where, connection_settings how, events told)
        : where_{std::move(where)}, how_{std::move(how)}, told_{std::move(told)} {}

    void subscribe(const std::string& channel, channel_style style);
    void unsubscribe(const std::string& channel);
    [[nodiscard]] bool active(const std::string& channel) const;
    [[nodiscard]] const node_address& where() const noexcept { return where_; }
    void close();

private:
    using guard = std::unique_lock<std::mutex>;

    /// Silence that is believed; then the server has as long again to answer a PING.
    static constexpr std::chrono::seconds believed_silence{1};
    /// A connection that carries no channel any more is kept for a while.
    static constexpr std::chrono::seconds kept_without_channels{10};

    struct session {
        std::unique_ptr<stream> connected;
        reply_reader answers;
        std::string out;
        clock::time_point last_heard{};
        clock::time_point last_needed{};
        /// When the PING that has not been followed by any word was sent.
        std::optional<clock::time_point> asked_at;
    };

    void work();
    [[nodiscard]] bool has_work();
    [[nodiscard]] bool is_closed();
    [[nodiscard]] bool must_ask_again();
    /// Whether `descriptor` is ready. Comes back early when the bell rings.
    [[nodiscard]] bool sleep(int descriptor, short wanted, clock::time_point until);
    [[nodiscard]] bool wait(int descriptor, short wanted, clock::time_point until);
    [[nodiscard]] bool open(session& made);
    void talk(session& on);
    [[nodiscard]] bool send_changes(session& on);
    [[nodiscard]] bool read(session& on);
    [[nodiscard]] bool alive(session& on, clock::time_point now) const;
    void tell(const subscriptions::news& each);

    const node_address where_;
    const connection_settings how_;
    const events told_;

    mutable std::mutex mutex_;
    subscriptions book_;
    bool closed_{};
    bool started_{};
    std::jthread thread_;
    bell bell_;
    backoff backoff_;
};

void subscriber::state::work() {
    while (!is_closed()) {
        if (!has_work()) {
            static_cast<void>(sleep(-1, 0, clock::time_point::max()));
            continue;
        }
        session current;
        auto pause = clock::duration::zero();
        if (open(current)) {
            backoff_.succeeded();
            talk(current);
            pause = backoff_.after_loss(clock::now());
        } else {
            pause = backoff_.next();
        }
        {
            const guard lock{mutex_};
            book_.disconnected();
        }
        const auto until = clock::now() + pause;
        while (!is_closed() && clock::now() < until) {
            static_cast<void>(sleep(-1, 0, until));
        }
    }
}

bool subscriber::state::has_work() {
    const guard lock{mutex_};
    return !book_.empty();
}

bool subscriber::state::is_closed() {
    const guard lock{mutex_};
    return closed_;
}

bool subscriber::state::must_ask_again() {
    const guard lock{mutex_};
    return book_.must_ask_again();
}

bool subscriber::state::sleep(int descriptor, short wanted, clock::time_point until) {
    std::array<::pollfd, 2> watched{{{.fd = bell_.get(), .events = POLLIN, .revents = 0},
                                     {.fd = descriptor, .events = wanted, .revents = 0}}};
    if (::poll(watched.data(), watched.size(), poll_timeout(until, clock::now())) <= 0) {
        return false;
    }
    if (watched[0].revents != 0) {
        bell_.silence();
    }
    return watched[1].revents != 0;
}

bool subscriber::state::wait(int descriptor, short wanted, clock::time_point until) {
    while (!is_closed()) {
        if (sleep(descriptor, wanted, until)) {
            return true;
        }
        if (clock::now() >= until) {
            break;
        }
    }
    return false;
}

bool subscriber::state::open(session& made) {
    const auto deadline = clock::now() + how_.connect_timeout;
    const waiting patience = [this](int descriptor, short wanted, clock::time_point until) {
        return wait(descriptor, wanted, until);
    };
    auto opened = stream::open(where_, how_.tls, deadline, patience);
    if (opened.error) {
        return false;
    }
    made.connected = std::move(opened.connected);
    const introduction said =
        introduce(*made.connected, made.answers, where_, how_, {}, deadline, patience);
    return !said.error;
}

void subscriber::state::talk(session& on) {
    on.last_heard = clock::now();
    on.last_needed = on.last_heard;
    {
        const guard lock{mutex_};
        book_.start_anew();
    }
    while (!is_closed() && alive(on, clock::now()) && send_changes(on)) {
        // Read before polling: bytes that TLS has already taken from the socket do not show there.
        if (!read(on)) {
            return;
        }
        if (must_ask_again()) {
            continue;
        }
        const auto wanted = static_cast<short>(POLLIN | (on.out.empty() ? 0 : POLLOUT));
        const auto until = on.asked_at.value_or(on.last_heard) + believed_silence;
        static_cast<void>(sleep(on.connected->socket(), wanted, until));
    }
}

bool subscriber::state::alive(session& on, clock::time_point now) const {
    if (now - on.last_needed >= kept_without_channels) {
        return false;
    }
    return !on.asked_at || now - *on.asked_at < believed_silence;
}

bool subscriber::state::send_changes(session& on) {
    const auto now = clock::now();
    {
        const guard lock{mutex_};
        book_.append_changes(on.out);
        if (!book_.empty()) {
            on.last_needed = now;
        }
        if (!on.asked_at && now - on.last_heard >= believed_silence) {
            book_.append_ping(on.out);
            on.asked_at = now;
        }
    }
    while (!on.out.empty()) {
        const io_result result = on.connected->write_now(on.out);
        if (result.lost()) {
            return false;
        }
        on.out.erase(0, result.bytes);
        if (result.what == io_result::outcome::again) {
            break;
        }
    }
    return true;
}

bool subscriber::state::read(session& on) {
    std::array<char, 16 * 1024> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    for (;;) {
        const io_result result = on.connected->read_now(buffer);
        if (result.what == io_result::outcome::again) {
            return true;
        }
        if (result.lost()) {
            return false;
        }
        on.last_heard = clock::now();
        on.asked_at.reset();
        on.answers.feed({buffer.data(), result.bytes});
        value answer;
        std::vector<subscriptions::news> all;
        auto progress = on.answers.next(answer);
        for (; progress == reply_reader::progress::complete; progress = on.answers.next(answer)) {
            const guard lock{mutex_};
            if (book_.take(std::exchange(answer, {}), all)) {
                return false;
            }
        }
        for (const auto& each : all) {
            tell(each);
        }
        if (progress == reply_reader::progress::broken || is_closed()) {
            return false;
        }
    }
}

void subscriber::state::tell(const subscriptions::news& each) {
    using kind = subscriptions::news::kind;
    if (each.what == kind::moved_away) {
        if (told_.moved_away) {
            told_.moved_away(each.channel);
        }
        return;
    }
    {
        const guard lock{mutex_};
        if (closed_ || !book_.wanted(each.channel)) {
            return;
        }
    }
    if (each.what == kind::heard && told_.heard) {
        told_.heard(each.channel, each.message);
    }
    if (each.what == kind::subscribed && told_.subscribed) {
        told_.subscribed(each.channel);
    }
}

void subscriber::state::subscribe(const std::string& channel, channel_style style) {
    const guard lock{mutex_};
    if (!started_) {
        thread_ = quiet_thread([shared = shared_from_this()] { shared->work(); });
        started_ = true;
    }
    if (book_.want(channel, style)) {
        bell_.ring();
    }
}

void subscriber::state::unsubscribe(const std::string& channel) {
    const guard lock{mutex_};
    book_.unwant(channel);
}

bool subscriber::state::active(const std::string& channel) const {
    const guard lock{mutex_};
    return book_.active(channel);
}

void subscriber::state::close() {
    std::jthread thread;
    {
        const guard lock{mutex_};
        closed_ = true;
        thread.swap(thread_);
    }
    bell_.ring();
    if (thread.joinable() && thread.get_id() == std::this_thread::get_id()) {
        thread.detach();
    } else if (thread.joinable()) {
        thread.join();
    }
}

subscriber::subscriber(node_address where, connection_settings how, events told)
    : state_{std::make_shared<state>(std::move(where), std::move(how), std::move(told))} {}

subscriber::~subscriber() {
    state_->close();
}

void subscriber::subscribe(const std::string& channel, channel_style style) {
    state_->subscribe(channel, style);
}

void subscriber::unsubscribe(const std::string& channel) {
    state_->unsubscribe(channel);
}

bool subscriber::active(const std::string& channel) const {
    return state_->active(channel);
}

const node_address& subscriber::where() const noexcept {
    return state_->where();
}

}  // namespace holdfast::engines::redis
