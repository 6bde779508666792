#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <holdfast/engine.hpp>
#include <redis/net/settings.hpp>

namespace holdfast::engines::redis {

/// SUBSCRIBE, or SSUBSCRIBE in a cluster that has it.
enum class channel_style : std::uint8_t { classic, sharded };

/// The one connection through which a server tells us of everything that we wait for.
///
/// Starts its thread and its connection with the first channel. After a loss it reconnects with
/// growing, jittered pauses and subscribes to everything again. PINGs the server when it has been
/// silent for a while, so that a connection that died without a word is noticed within two seconds.
///
/// Thread safety: all functions may be called from any thread; callbacks run on the subscriber's
/// thread or on one that attends, one at a time, with no lock held. The destructor returns when no
/// callback is running.
class subscriber {
public:
    struct events {
        std::function<void(const std::string& channel, std::string_view message)> heard;
        /// Notifications for this channel flow from now on; what came before may have been missed.
        /// After every (re)connection, and after the server has confirmed a new subscription.
        std::function<void(const std::string& channel)> subscribed;
        /// The server ended the subscription by itself: its slot has moved (cluster). The channel is
        /// forgotten here.
        std::function<void(const std::string& channel)> moved_away;
        /// The user may not listen to the channel: what is told there will be missed.
        std::function<void(const std::string& channel, const std::string& words)> refused{};
    };

    subscriber(node_address where, connection_settings how, events told);
    subscriber(const subscriber&) = delete;
    subscriber& operator=(const subscriber&) = delete;
    ~subscriber();

    void subscribe(const std::string& channel, channel_style style);
    void unsubscribe(const std::string& channel);
    /// Lets `who` read in place of the subscriber's thread, until it is called away: what it waits for
    /// is then told on the very thread that waits. Returns at once when there is no connection, or when
    /// another attends already. `others_listen` says, when it leaves, whether somebody else must go on
    /// reading at once; otherwise nobody may for a few milliseconds.
    void attend(idle_thread& who, const std::function<bool()>& others_listen);
    /// Whether the server has confirmed the subscription on the connection that is up now.
    [[nodiscard]] bool active(const std::string& channel) const;
    [[nodiscard]] const node_address& where() const noexcept;

private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace holdfast::engines::redis
