#include <redis/net/subscriber.hpp>

#include <common/backoff.hpp>
#include <common/net/stream.hpp>
#include <common/poll_timeout.hpp>
#include <common/quiet_thread.hpp>
#include <redis/net/foreign.hpp>
#include <redis/net/handshake.hpp>
#include <redis/net/subscriptions.hpp>
#include <redis/resp/reply_reader.hpp>
#include <threading/bell.hpp>
#include <threading/primitives.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>

namespace holdfast::engines::redis {

/// Anybody writes, with the lock held. One thread at a time reads, and tells what it read:
///
///     background ◀──(one attends)──▶ attendant ──(left, others listen)──▶ background
///                                        │ ▲
///                              (left)    ▼ │  (attends again)
///                                     nobody ──(a moment later)──▶ background
///
/// Whoever waits for a lock in turns with another process attends a thousand times a second. Our own
/// thread would be woken each time if it read in between; so it waits a moment before it does.
struct subscriber::state : std::enable_shared_from_this<subscriber::state> {
public:
    state(node_address where, connection_settings settings, events told)
        : where_{std::move(where)}, settings_{std::move(settings)}, told_{std::move(told)} {}

    void subscribe(const std::string& channel, channel_style style);
    void unsubscribe(const std::string& channel);
    [[nodiscard]] bool active(const std::string& channel) const;
    void attend(idle_thread& visitor, const std::function<bool()>& others_listen);
    [[nodiscard]] const node_address& where() const noexcept { return where_; }
    void close();

private:
    using guard = std::unique_lock<threading::mutex>;
    enum class reader : std::uint8_t { background, attendant, nobody };

    /// Silence that is believed; then the server has as long again to answer a PING.
    static constexpr std::chrono::seconds believed_silence{1};
    /// A connection that carries no channel any more is kept for a while.
    static constexpr std::chrono::seconds kept_without_channels{10};
    /// So long may what the server says lie there when nobody is known to wait for it.
    static constexpr std::chrono::milliseconds unread_for{5};
    /// Between looks whether an attendant has left, before it is asked to say so.
    static constexpr std::chrono::milliseconds longest_pause{20};

    struct session {
        std::unique_ptr<net::stream> connected;
        /// Guarded by the lock, like all that follows.
        reply_reader answers;
        std::string out;
        bool lost{};
        /// Read, and still to be told by the reader.
        std::vector<subscriptions::news> untold;
        clock::time_point last_heard{};
        clock::time_point last_needed{};
        /// When the PING that has not been followed by any word was sent.
        std::optional<clock::time_point> asked_at;
    };

    void work();
    [[nodiscard]] bool has_work();
    [[nodiscard]] bool is_closed();
    /// Whether `descriptor` is ready. Comes back early when the bell rings.
    [[nodiscard]] bool sleep(int descriptor, short events, clock::time_point until);
    [[nodiscard]] bool wait(int descriptor, short events, clock::time_point until);
    [[nodiscard]] bool open(session& made);
    void talk(session& current);
    [[nodiscard]] bool read(session& current, const idle_thread* attendant);
    void tell(const subscriptions::news& each);

    // With the lock held, which they let go of while they sleep.
    void rest(guard& lock, session& current);
    void stand_by(guard& lock, session& current);
    [[nodiscard]] bool sit_down(guard& lock, idle_thread& visitor);
    void sleep(guard& lock, int descriptor, short events, clock::time_point until);
    // With the lock held.
    void look_after(session& current);
    void give_up(session& current);
    [[nodiscard]] bool alive(const session& current, clock::time_point now) const;
    [[nodiscard]] clock::time_point next_look(const session& current) const;
    [[nodiscard]] bool send_changes(session& current);
    [[nodiscard]] bool take_in(session& current, std::string_view said,
                               std::vector<subscriptions::news>& into);
    void catch_up(session& current);

    const node_address where_;
    const connection_settings settings_;
    const events told_;

    mutable threading::mutex mutex_;
    subscriptions book_;
    bool closed_{};
    bool started_{};
    threading::jthread thread_;
    threading::bell bell_;
    backoff backoff_;

    /// The connection that is up.
    session* current_{};
    reader reading_{reader::background};
    /// Our thread sleeps until there is something to read, which another may do in its place.
    bool dozes_{};
    /// Who attends, or waits for our thread to let it.
    threading::thread::id attendant_;
    threading::bell offered_;
    threading::condition_variable left_;
    std::uint64_t visits_{};
    clock::time_point left_at_{};
    /// When our thread looks whether anybody attends; `max`: when it is told.
    clock::time_point looks_at_{};
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

bool subscriber::state::sleep(int descriptor, short events, clock::time_point until) {
    return bell_.sleep(descriptor, events, poll_timeout(until, clock::now())) != 0;
}

bool subscriber::state::wait(int descriptor, short events, clock::time_point until) {
    while (!is_closed()) {
        if (sleep(descriptor, events, until)) {
            return true;
        }
        if (clock::now() >= until) {
            break;
        }
    }
    return false;
}

bool subscriber::state::open(session& made) {
    const auto deadline = clock::now() + settings_.connect_timeout;
    const net::waiting patience = [this](int descriptor, short events, clock::time_point until) {
        return wait(descriptor, events, until);
    };
    auto opened = net::stream::open(where_, settings_.tls, redis_without_tls, deadline, patience);
    if (opened.error) {
        return false;
    }
    made.connected = std::move(opened.connected);
    const introduction said =
        introduce(*made.connected, made.answers, where_, settings_, {}, {}, deadline, patience);
    return !said.error;
}

void subscriber::state::talk(session& current) {
    guard lock{mutex_};
    current.last_heard = clock::now();
    current.last_needed = current.last_heard;
    book_.start_anew();
    current_ = &current;
    for (look_after(current); !current.lost; look_after(current)) {
        // Read before polling: bytes that TLS has already taken from the socket do not show there.
        lock.unlock();
        const bool well = read(current, nullptr);
        lock.lock();
        if (!well) {
            break;
        }
        rest(lock, current);
    }
    current_ = nullptr;
    offered_.ring();
}

void subscriber::state::sleep(guard& lock, int descriptor, short events, clock::time_point until) {
    lock.unlock();
    static_cast<void>(sleep(descriptor, events, until));
    lock.lock();
}

void subscriber::state::give_up(session& current) {
    current.lost = true;
    current.connected->shut();  // so that whoever reads notices
}

void subscriber::state::look_after(session& current) {
    const auto now = clock::now();
    if (!book_.empty()) {
        current.last_needed = now;
    }
    if (!current.lost && (closed_ || !alive(current, now) || !send_changes(current))) {
        give_up(current);
    }
}

bool subscriber::state::alive(const session& current, clock::time_point now) const {
    if (now - current.last_needed >= kept_without_channels) {
        return false;
    }
    return !current.asked_at || now - *current.asked_at < believed_silence;
}

clock::time_point subscriber::state::next_look(const session& current) const {
    return current.lost ? clock::time_point::max()
                        : current.asked_at.value_or(current.last_heard) + believed_silence;
}

bool subscriber::state::send_changes(session& current) {
    const auto now = clock::now();
    book_.append_changes(current.out);
    if (!current.asked_at && now - current.last_heard >= believed_silence) {
        book_.append_ping(current.out);
        current.asked_at = now;
    }
    while (!current.out.empty()) {
        const net::io_result result = current.connected->write_now(current.out);
        if (result.lost()) {
            return false;
        }
        current.out.erase(0, result.bytes);
        if (result.outcome == net::io_result::status::again) {
            break;
        }
    }
    return true;
}

bool subscriber::state::read(session& current, const idle_thread* attendant) {
    std::array<char, 16 * 1024> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    for (;;) {
        const net::io_result result = current.connected->read_now(buffer);
        if (result.lost()) {
            return false;
        }
        std::vector<subscriptions::news> all;
        {
            const guard lock{mutex_};
            all.swap(current.untold);
            if (!take_in(current, {buffer.data(), result.bytes}, all)) {
                return false;
            }
        }
        for (const auto& each : all) {
            tell(each);
        }
        if (is_closed()) {
            return false;
        }
        // What is left then, the next reader finds before it sleeps.
        const bool called_away = attendant != nullptr && attendant->called_away();
        if (result.outcome == net::io_result::status::again || called_away) {
            return true;
        }
    }
}

bool subscriber::state::take_in(session& current, std::string_view said,
                                std::vector<subscriptions::news>& into) {
    if (said.empty()) {
        return true;
    }
    current.last_heard = clock::now();
    current.asked_at.reset();
    current.answers.feed(said);
    value answer;
    auto progress = current.answers.next(answer);
    for (; progress == reply_reader::progress::complete; progress = current.answers.next(answer)) {
        if (book_.take(std::exchange(answer, {}), into)) {
            return false;
        }
    }
    return progress != reply_reader::progress::broken &&
           (!book_.must_ask_again() || send_changes(current));
}

/// Takes note of what was said while nobody read, before somebody wants to hear more: it is not news
/// to whoever listens only from now on.
void subscriber::state::catch_up(session& current) {
    std::array<char, 16 * 1024> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    net::io_result result;
    while (result.outcome == net::io_result::status::done && !current.lost) {
        result = current.connected->read_now(buffer);
        if (result.lost() || !take_in(current, {buffer.data(), result.bytes}, current.untold)) {
            give_up(current);
        }
    }
    std::erase_if(current.untold, [&](const subscriptions::news& each) {
        return each.type == subscriptions::news::kind::heard && !book_.wanted(each.channel);
    });
    if (!current.untold.empty() || current.lost) {
        reading_ = reader::background;
        bell_.ring();
    }
}

void subscriber::state::tell(const subscriptions::news& each) {
    using kind = subscriptions::news::kind;
    if (each.type == kind::moved_away) {
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
    if (each.type == kind::refused && told_.refused) {
        told_.refused(each.channel, each.message);
    }
    if (each.type == kind::heard && told_.heard) {
        told_.heard(each.channel, each.message);
    }
    if (each.type == kind::subscribed && told_.subscribed) {
        told_.subscribed(each.channel);
    }
}

void subscriber::state::rest(guard& lock, session& current) {
    if (attendant_ != threading::thread::id{}) {
        reading_ = reader::nobody;
        left_at_ = clock::now();
        offered_.ring();
    } else {
        dozes_ = true;
        const auto wanted = static_cast<short>(POLLIN | (current.out.empty() ? 0 : POLLOUT));
        sleep(lock, current.connected->socket(), wanted, next_look(current));
        dozes_ = false;
    }
    stand_by(lock, current);
}

/// Until it is up to our thread again to read, it writes and sees to it that the server is alive.
void subscriber::state::stand_by(guard& lock, session& current) {
    std::uint64_t seen = 0;
    clock::duration pause = unread_for;
    while (reading_ != reader::background) {
        const auto now = clock::now();
        if (reading_ == reader::nobody && (closed_ || now - left_at_ >= unread_for)) {
            reading_ = reader::background;
            break;
        }
        if (now >= next_look(current) || !current.out.empty()) {
            look_after(current);
        }
        looks_at_ = clock::time_point::max();
        if (reading_ == reader::nobody) {
            looks_at_ = left_at_ + unread_for;
        } else if (std::exchange(seen, visits_) != visits_) {
            pause = unread_for;
            looks_at_ = now + pause;
        } else if (pause < longest_pause) {
            pause *= 2;
            looks_at_ = now + pause;
        }
        const int stuck = current.out.empty() || current.lost ? -1 : current.connected->socket();
        sleep(lock, stuck, POLLOUT, std::min(looks_at_, next_look(current)));
    }
}

/// True when it is up to the visitor to read.
bool subscriber::state::sit_down(guard& lock, idle_thread& visitor) {
    // Without a descriptor nobody could tell it to go on.
    if (!offered_ || closed_ || current_ == nullptr || attendant_ != threading::thread::id{}) {
        return false;
    }
    attendant_ = threading::this_thread::get_id();
    while (reading_ == reader::background && !dozes_) {
        lock.unlock();
        if (visitor.sleep(offered_.descriptor())) {
            offered_.silence();
        }
        lock.lock();
        if (closed_ || current_ == nullptr || visitor.called_away()) {
            attendant_ = {};
            left_.notify_all();
            return false;
        }
    }
    if (reading_ == reader::background) {
        bell_.ring();  // our thread must not wake up for what it need not read
    }
    reading_ = reader::attendant;
    ++visits_;
    return true;
}

void subscriber::state::attend(idle_thread& visitor, const std::function<bool()>& others_listen) {
    guard lock{mutex_};
    if (!sit_down(lock, visitor)) {
        return;
    }
    session& current = *current_;  // stays until we leave
    lock.unlock();
    bool well = true;
    while (well && !visitor.called_away()) {
        well = read(current, &visitor);
        if (well && !visitor.called_away()) {
            static_cast<void>(visitor.sleep(current.connected->socket()));
        }
    }
    const bool others = others_listen();
    lock.lock();
    if (!well) {
        give_up(current);
    }
    const bool urgent = others || current.lost || closed_;
    reading_ = urgent ? reader::background : reader::nobody;
    left_at_ = clock::now();
    const bool looks_late = looks_at_ > left_at_ + unread_for;
    if (urgent || looks_late) {
        bell_.ring();
    }
    attendant_ = {};
    left_.notify_all();
}

void subscriber::state::subscribe(const std::string& channel, channel_style style) {
    const guard lock{mutex_};
    if (!started_) {
        thread_ = quiet_thread([shared = shared_from_this()] { shared->work(); });
        started_ = true;
    }
    if (current_ != nullptr && reading_ == reader::nobody && !current_->lost) {
        catch_up(*current_);
    }
    const bool asks = book_.want(channel, style);
    if (asks && current_ != nullptr && !current_->lost && !send_changes(*current_)) {
        give_up(*current_);
    }
    const bool written = current_ != nullptr && current_->out.empty();
    // The answer, too, must be read soon.
    const bool unread = reading_ == reader::nobody && looks_at_ > clock::now() + unread_for;
    if ((asks && !written) || unread) {
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
    guard lock{mutex_};
    closed_ = true;
    if (current_ != nullptr) {
        give_up(*current_);
    }
    offered_.ring();
    bell_.ring();
    const auto self = threading::this_thread::get_id();
    left_.wait(lock, [&] { return attendant_ == threading::thread::id{} || attendant_ == self; });
    const bool called_back = attendant_ == self || thread_.get_id() == self;
    threading::jthread thread = std::move(thread_);
    lock.unlock();
    if (!thread.joinable()) {
        return;
    }
    if (called_back) {
        thread.detach();
    } else {
        thread.join();
    }
}

subscriber::subscriber(node_address where, connection_settings settings, events told)
    : state_{std::make_shared<state>(std::move(where), std::move(settings), std::move(told))} {}

subscriber::~subscriber() {
    state_->close();
}

void subscriber::subscribe(const std::string& channel, channel_style style) {
    state_->subscribe(channel, style);
}

void subscriber::unsubscribe(const std::string& channel) {
    state_->unsubscribe(channel);
}

void subscriber::attend(idle_thread& visitor, const std::function<bool()>& others_listen) {
    const auto alive = state_;
    alive->attend(visitor, others_listen);
}

bool subscriber::active(const std::string& channel) const {
    return state_->active(channel);
}

const node_address& subscriber::where() const noexcept {
    return state_->where();
}

}  // namespace holdfast::engines::redis
