#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <common/backoff.hpp>
#include <common/net/stream.hpp>
#include <redis/net/subscriber.hpp>
#include <redis/net/subscriptions.hpp>
#include <redis/resp/reply_reader.hpp>
#include <threading/bell.hpp>
#include <threading/primitives.hpp>

namespace holdfast::engines::redis {

/// What a subscriber is made of. The functions are in two files: the connection and what is said on it
/// (subscriber.cpp), who reads (subscriber_attendance.cpp).
///
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
    state(node_address where, connection_settings how, events told)
        : where_{std::move(where)}, how_{std::move(how)}, told_{std::move(told)} {}

    void subscribe(const std::string& channel, channel_style style);
    void unsubscribe(const std::string& channel);
    [[nodiscard]] bool active(const std::string& channel) const;
    void attend(idle_thread& who, const std::function<bool()>& others_listen);
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
    [[nodiscard]] bool sleep(int descriptor, short wanted, clock::time_point until);
    [[nodiscard]] bool wait(int descriptor, short wanted, clock::time_point until);
    [[nodiscard]] bool open(session& made);
    void talk(session& on);
    [[nodiscard]] bool read(session& on, const idle_thread* attendant);
    void tell(const subscriptions::news& each);

    // With the lock held, which they let go of while they sleep.
    void rest(guard& lock, session& on);
    void stand_by(guard& lock, session& on);
    [[nodiscard]] bool sit_down(guard& lock, idle_thread& who);
    void sleep(guard& lock, int descriptor, short wanted, clock::time_point until);
    // With the lock held.
    void look_after(session& on);
    void give_up(session& on);
    [[nodiscard]] bool alive(const session& on, clock::time_point now) const;
    [[nodiscard]] clock::time_point next_look(const session& on) const;
    [[nodiscard]] bool send_changes(session& on);
    [[nodiscard]] bool take_in(session& on, std::string_view said,
                               std::vector<subscriptions::news>& into);
    void catch_up(session& on);

    const node_address where_;
    const connection_settings how_;
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

}  // namespace holdfast::engines::redis
