#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include <holdfast/clock.hpp>
#include <redis/net/settings.hpp>
#include <redis/net/subscriber.hpp>
#include <redis/topology/router.hpp>
#include <redis/topology/slot_map.hpp>

namespace holdfast::engines::redis {

/// The channels that a client of a cluster listens to, and the server where it is subscribed to each.
///
/// Thread safety: none; the cluster's lock guards it.
class cluster_channels {
public:
    /// For a server to serve the channels it should, and between looks whether it does.
    static constexpr std::chrono::seconds patience{1};

    /// What it needs of the cluster.
    class servers {
    public:
        servers() = default;
        servers(const servers&) = delete;
        servers& operator=(const servers&) = delete;

        /// Null: the server is not known.
        [[nodiscard]] virtual subscriber* known_subscriber(const node_address& server) const = 0;
        [[nodiscard]] virtual subscriber& subscriber_at(const node_address& server) = 0;
        virtual void want_refresh() = 0;

    protected:
        ~servers() = default;
    };

    cluster_channels(const slot_map& map, servers& owner) : map_{map}, owner_{owner} {}

    /// Before the first subscription.
    void use_sharded_channels(bool sharded) noexcept { sharded_ = sharded; }
    [[nodiscard]] bool empty() const noexcept { return channels_.empty(); }
    void subscribe(const channel_place& place);
    void unsubscribe(const channel_place& place);
    [[nodiscard]] bool subscribed(const channel_place& place) const;
    /// The map has changed: every channel moves to its home.
    void attach_all();
    /// Looks for servers that serve none of their channels. A master that is gone does not say so, and
    /// the waiter for a notification may ask nothing.
    void look_for_deaf_servers();
    /// The server has forgotten the channel. The map has to tell where it went.
    void moved_away(const std::string& channel, const node_address& from);

private:
    /// A channel, and where we are subscribed to it. Nowhere: the next look at the map will tell.
    struct attachment {
        channel_place place;
        std::optional<node_address> server;
    };

    [[nodiscard]] channel_style style_of(const channel_place& place) const;
    void attach(attachment& channel);
    [[nodiscard]] std::optional<node_address> home_of(const attachment& channel) const;
    [[nodiscard]] bool serves(const attachment& channel) const;
    [[nodiscard]] bool deaf(const node_address& server) const;

    const slot_map& map_;
    servers& owner_;
    bool sharded_{};
    std::map<std::string, attachment> channels_;
    /// Since when none of the channels at a server has been served.
    std::map<node_address, clock::time_point> deaf_since_;
};

}  // namespace holdfast::engines::redis
