#include <redis/topology/cluster_channels.hpp>

namespace holdfast::engines::redis {

channel_style cluster_channels::style_of(const channel_place& place) const {
    return sharded_ ? place.style : channel_style::classic;
}

void cluster_channels::subscribe(const channel_place& place) {
    auto& added = channels_[place.channel];
    added.place = place;
    attach(added);
}

void cluster_channels::unsubscribe(const channel_place& place) {
    const auto found = channels_.find(place.channel);
    if (found == channels_.end()) {
        return;
    }
    if (found->second.server) {
        if (auto* const before = owner_.known_subscriber(*found->second.server)) {
            before->unsubscribe(place.channel);
        }
    }
    channels_.erase(found);
}

bool cluster_channels::subscribed(const channel_place& place) const {
    const auto found = channels_.find(place.channel);
    return found != channels_.end() && serves(found->second);
}

bool cluster_channels::serves(const attachment& channel) const {
    if (!channel.server) {
        return false;
    }
    const auto* const at = owner_.known_subscriber(*channel.server);
    return at != nullptr && at->active(channel.place.channel);
}

bool cluster_channels::deaf(const node_address& server) const {
    const auto found = deaf_since_.find(server);
    return found != deaf_since_.end() && clock::now() - found->second >= patience;
}

void cluster_channels::look_for_deaf_servers() {
    std::map<node_address, bool> hearing;
    for (const auto& [name, each] : channels_) {
        if (each.server) {
            bool& well = hearing[*each.server];
            well = well || serves(each);
        }
    }
    std::erase_if(deaf_since_, [&](const auto& each) {
        const auto found = hearing.find(each.first);
        return found == hearing.end() || found->second;
    });
    for (const auto& [server, well] : hearing) {
        if (!well) {
            deaf_since_.try_emplace(server, clock::now());
        }
        if (deaf(server)) {
            owner_.want_refresh();
        }
    }
}

/// The slot's master, also for channels that every server would serve: this spreads them. Such a
/// channel leaves the master for another server when the master does not serve it.
std::optional<node_address> cluster_channels::home_of(const attachment& channel) const {
    const auto* const owner = map_.owner(channel.place.slot);
    if (style_of(channel.place) == channel_style::sharded) {
        return owner == nullptr ? std::nullopt : std::optional{*owner};
    }
    if (channel.server && map_.is_master(*channel.server) && !deaf(*channel.server)) {
        return channel.server;
    }
    if (owner != nullptr && !deaf(*owner)) {
        return *owner;
    }
    for (const auto& each : map_.masters()) {
        if (!deaf(each)) {
            return each;
        }
    }
    return channel.server;
}

void cluster_channels::attach(attachment& channel) {
    const auto home = home_of(channel);
    if (channel.server == home && home) {
        return;
    }
    if (channel.server) {
        if (auto* const before = owner_.known_subscriber(*channel.server)) {
            before->unsubscribe(channel.place.channel);
        }
    }
    channel.server = home;
    if (home) {
        owner_.subscriber_at(*home).subscribe(channel.place.channel, style_of(channel.place));
    } else {
        owner_.want_refresh();
    }
}

void cluster_channels::attach_all() {
    for (auto& [name, each] : channels_) {
        attach(each);
    }
}

void cluster_channels::moved_away(const std::string& channel, const node_address& from) {
    const auto found = channels_.find(channel);
    if (found != channels_.end() && found->second.server == from) {
        found->second.server.reset();
        owner_.want_refresh();
    }
}

}  // namespace holdfast::engines::redis
