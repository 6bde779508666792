#include <algorithm>
#include <redis/net/subscriber_state.hpp>
#include <utility>

#include <poll.h>

namespace holdfast::engines::redis {

void subscriber::state::rest(guard& lock, session& on) {
    if (attendant_ != threading::thread::id{}) {
        reading_ = reader::nobody;
        left_at_ = clock::now();
        offered_.ring();
    } else {
        dozes_ = true;
        const auto wanted = static_cast<short>(POLLIN | (on.out.empty() ? 0 : POLLOUT));
        sleep(lock, on.connected->socket(), wanted, next_look(on));
        dozes_ = false;
    }
    stand_by(lock, on);
}

/// Until it is up to our thread again to read, it writes and sees to it that the server is alive.
void subscriber::state::stand_by(guard& lock, session& on) {
    std::uint64_t seen = 0;
    clock::duration pause = unread_for;
    while (reading_ != reader::background) {
        const auto now = clock::now();
        if (reading_ == reader::nobody && (closed_ || now - left_at_ >= unread_for)) {
            reading_ = reader::background;
            break;
        }
        if (now >= next_look(on) || !on.out.empty()) {
            look_after(on);
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
        const int stuck = on.out.empty() || on.lost ? -1 : on.connected->socket();
        sleep(lock, stuck, POLLOUT, std::min(looks_at_, next_look(on)));
    }
}

/// True when it is up to `who` to read.
bool subscriber::state::sit_down(guard& lock, idle_thread& who) {
    if (closed_ || current_ == nullptr || attendant_ != threading::thread::id{}) {
        return false;
    }
    attendant_ = threading::this_thread::get_id();
    while (reading_ == reader::background && !dozes_) {
        lock.unlock();
        if (who.sleep(offered_.descriptor())) {
            offered_.silence();
        }
        lock.lock();
        if (closed_ || current_ == nullptr || who.called_away()) {
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

void subscriber::state::attend(idle_thread& who, const std::function<bool()>& others_listen) {
    guard lock{mutex_};
    if (!sit_down(lock, who)) {
        return;
    }
    session& on = *current_;  // stays until we leave
    lock.unlock();
    bool well = true;
    while (well && !who.called_away()) {
        well = read(on, &who);
        if (well && !who.called_away()) {
            static_cast<void>(who.sleep(on.connected->socket()));
        }
    }
    const bool others = others_listen();
    lock.lock();
    if (!well) {
        give_up(on);
    }
    const bool urgent = others || on.lost || closed_;
    reading_ = urgent ? reader::background : reader::nobody;
    left_at_ = clock::now();
    const bool looks_late = looks_at_ > left_at_ + unread_for;
    if (urgent || looks_late) {
        bell_.ring();
    }
    attendant_ = {};
    left_.notify_all();
}

}  // namespace holdfast::engines::redis
