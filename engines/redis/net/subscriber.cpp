#include <array>
#include <common/poll_timeout.hpp>
#include <common/quiet_thread.hpp>
#include <redis/net/foreign.hpp>
#include <redis/net/handshake.hpp>
#include <redis/net/subscriber_state.hpp>
#include <utility>

#include <poll.h>

namespace holdfast::engines::redis {

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

bool subscriber::state::sleep(int descriptor, short wanted, clock::time_point until) {
    return bell_.sleep(descriptor, wanted, poll_timeout(until, clock::now())) != 0;
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
    const net::waiting patience = [this](int descriptor, short wanted, clock::time_point until) {
        return wait(descriptor, wanted, until);
    };
    auto opened = net::stream::open(where_, how_.tls, redis_without_tls, deadline, patience);
    if (opened.error) {
        return false;
    }
    made.connected = std::move(opened.connected);
    const introduction said =
        introduce(*made.connected, made.answers, where_, how_, {}, {}, deadline, patience);
    return !said.error;
}

void subscriber::state::talk(session& on) {
    guard lock{mutex_};
    on.last_heard = clock::now();
    on.last_needed = on.last_heard;
    book_.start_anew();
    current_ = &on;
    for (look_after(on); !on.lost; look_after(on)) {
        // Read before polling: bytes that TLS has already taken from the socket do not show there.
        lock.unlock();
        const bool well = read(on, nullptr);
        lock.lock();
        if (!well) {
            break;
        }
        rest(lock, on);
    }
    current_ = nullptr;
    offered_.ring();
}

void subscriber::state::sleep(guard& lock, int descriptor, short wanted, clock::time_point until) {
    lock.unlock();
    static_cast<void>(sleep(descriptor, wanted, until));
    lock.lock();
}

void subscriber::state::give_up(session& on) {
    on.lost = true;
    on.connected->shut();  // so that whoever reads notices
}

void subscriber::state::look_after(session& on) {
    const auto now = clock::now();
    if (!book_.empty()) {
        on.last_needed = now;
    }
    if (!on.lost && (closed_ || !alive(on, now) || !send_changes(on))) {
        give_up(on);
    }
}

bool subscriber::state::alive(const session& on, clock::time_point now) const {
    if (now - on.last_needed >= kept_without_channels) {
        return false;
    }
    return !on.asked_at || now - *on.asked_at < believed_silence;
}

clock::time_point subscriber::state::next_look(const session& on) const {
    return on.lost ? clock::time_point::max() : on.asked_at.value_or(on.last_heard) + believed_silence;
}

bool subscriber::state::send_changes(session& on) {
    const auto now = clock::now();
    book_.append_changes(on.out);
    if (!on.asked_at && now - on.last_heard >= believed_silence) {
        book_.append_ping(on.out);
        on.asked_at = now;
    }
    while (!on.out.empty()) {
        const net::io_result result = on.connected->write_now(on.out);
        if (result.lost()) {
            return false;
        }
        on.out.erase(0, result.bytes);
        if (result.outcome == net::io_result::status::again) {
            break;
        }
    }
    return true;
}

bool subscriber::state::read(session& on, const idle_thread* attendant) {
    std::array<char, 16 * 1024> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    for (;;) {
        const net::io_result result = on.connected->read_now(buffer);
        if (result.lost()) {
            return false;
        }
        std::vector<subscriptions::news> all;
        {
            const guard lock{mutex_};
            all.swap(on.untold);
            if (!take_in(on, {buffer.data(), result.bytes}, all)) {
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

bool subscriber::state::take_in(session& on, std::string_view said,
                                std::vector<subscriptions::news>& into) {
    if (said.empty()) {
        return true;
    }
    on.last_heard = clock::now();
    on.asked_at.reset();
    on.answers.feed(said);
    value answer;
    auto progress = on.answers.next(answer);
    for (; progress == reply_reader::progress::complete; progress = on.answers.next(answer)) {
        if (book_.take(std::exchange(answer, {}), into)) {
            return false;
        }
    }
    return progress != reply_reader::progress::broken && (!book_.must_ask_again() || send_changes(on));
}

/// Takes note of what was said while nobody read, before somebody wants to hear more: it is not news
/// to whoever listens only from now on.
void subscriber::state::catch_up(session& on) {
    std::array<char, 16 * 1024> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    net::io_result result;
    while (result.outcome == net::io_result::status::done && !on.lost) {
        result = on.connected->read_now(buffer);
        if (result.lost() || !take_in(on, {buffer.data(), result.bytes}, on.untold)) {
            give_up(on);
        }
    }
    std::erase_if(on.untold, [&](const subscriptions::news& each) {
        return each.what == subscriptions::news::kind::heard && !book_.wanted(each.channel);
    });
    if (!on.untold.empty() || on.lost) {
        reading_ = reader::background;
        bell_.ring();
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
    if (each.what == kind::refused && told_.refused) {
        told_.refused(each.channel, each.message);
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

void subscriber::attend(idle_thread& who, const std::function<bool()>& others_listen) {
    const auto alive = state_;
    alive->attend(who, others_listen);
}

bool subscriber::active(const std::string& channel) const {
    return state_->active(channel);
}

const node_address& subscriber::where() const noexcept {
    return state_->where();
}

}  // namespace holdfast::engines::redis
