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

/// The connection on which a server publishes everything that this client waits for.
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
        /// Notifications for this channel flow from now on; earlier ones may have been missed. Called
        /// after every connect, and after the server has confirmed a new subscription.
        std::function<void(const std::string& channel)> subscribed;
        /// The server ended the subscription by itself: its slot has moved (cluster). The channel is
        /// forgotten here.
        std::function<void(const std::string& channel)> moved_away;
        /// The user may not listen to the channel. Its notifications will be missed.
        std::function<void(const std::string& channel, const std::string& words)> refused{};
    };

    subscriber(node_address where, connection_settings settings, events told);
    subscriber(const subscriber&) = delete;
    subscriber& operator=(const subscriber&) = delete;
    ~subscriber();

    void subscribe(const std::string& channel, channel_style style);
    void unsubscribe(const std::string& channel);
    /// Lets the visiting thread read in place of the subscriber's, until it is called away. So it hears
    /// itself what it waits for. Returns at once when there is no connection, or when another thread
    /// attends. `others_listen` says, when the thread leaves, whether somebody must go on reading at
    /// once. Otherwise nobody may read for a few milliseconds.
    void attend(idle_thread& visitor, const std::function<bool()>& others_listen);
    /// Whether the server has confirmed the subscription on the connection that is up now.
    [[nodiscard]] bool active(const std::string& channel) const;
    [[nodiscard]] const node_address& where() const noexcept;

private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace holdfast::engines::redis
