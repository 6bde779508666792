#include <redis/topology/cluster.hpp>

#include <utility>

namespace holdfast::engines::redis {

channel_style cluster::style_of(const channel_place& where) const {
    return sharded_ ? where.style : channel_style::classic;
}

void cluster::subscribe(const channel_place& where) {
    const guard lock{mutex_};
    if (channels_.empty()) {
        wake_.notify_all();  // from now on it looks after channels
    }
    auto& added = channels_[where.channel];
    added.where = where;
    attach(added);
}

void cluster::unsubscribe(const channel_place& where) {
    const guard lock{mutex_};
    const auto found = channels_.find(where.channel);
    if (found == channels_.end()) {
        return;
    }
    if (found->second.at) {
        if (const auto server = nodes_.find(*found->second.at); server != nodes_.end()) {
            server->second->pubsub().unsubscribe(where.channel);
        }
    }
    channels_.erase(found);
}

bool cluster::subscribed(const channel_place& where) const {
    const guard lock{mutex_};
    const auto found = channels_.find(where.channel);
    return found != channels_.end() && serves(found->second);
}

/// Where the slot's master was given up as deaf, channels are elsewhere, and nobody attends there.
void cluster::attend(std::uint16_t slot, idle_thread& who, const std::function<bool()>& others_listen) {
    std::shared_ptr<node> home;
    {
        const guard lock{mutex_};
        if (const auto* const owner = map_.owner(slot); owner != nullptr) {
            const auto found = nodes_.find(*owner);
            home = found == nodes_.end() ? nullptr : found->second;
        }
    }
    if (home) {
        home->pubsub().attend(who, others_listen);
    }
}

bool cluster::serves(const attachment& what) const {
    if (!what.at) {
        return false;
    }
    const auto server = nodes_.find(*what.at);
    return server != nodes_.end() && server->second->pubsub().active(what.where.channel);
}

bool cluster::deaf(const node_address& which) const {
    const auto found = deaf_since_.find(which);
    return found != deaf_since_.end() && clock::now() - found->second >= channel_patience;
}

/// A master that is gone does not say so, and whoever waits for a notification may ask nothing.
void cluster::look_for_deaf_ones() {
    std::map<node_address, bool> hearing;
    for (const auto& [name, each] : channels_) {
        if (each.at) {
            bool& well = hearing[*each.at];
            well = well || serves(each);
        }
    }
    std::erase_if(deaf_since_, [&](const auto& each) {
        const auto found = hearing.find(each.first);
        return found == hearing.end() || found->second;
    });
    for (const auto& [where, well] : hearing) {
        if (!well) {
            deaf_since_.try_emplace(where, clock::now());
        }
        if (deaf(where)) {
            want_refresh();
        }
    }
}

/// The slot's master, also for those channels that every server would serve: it spreads them. These
/// leave it for the next when it does not serve them.
std::optional<node_address> cluster::home_of(const attachment& what) const {
    const auto* const owner = map_.owner(what.where.slot);
    if (style_of(what.where) == channel_style::sharded) {
        return owner == nullptr ? std::nullopt : std::optional{*owner};
    }
    if (what.at && map_.is_master(*what.at) && !deaf(*what.at)) {
        return what.at;
    }
    if (owner != nullptr && !deaf(*owner)) {
        return *owner;
    }
    for (const auto& each : map_.masters()) {
        if (!deaf(each)) {
            return each;
        }
    }
    return what.at;
}

void cluster::attach(attachment& what) {
    const auto home = home_of(what);
    if (what.at && what.at != home) {
        if (const auto before = nodes_.find(*what.at); before != nodes_.end()) {
            before->second->pubsub().unsubscribe(what.where.channel);
        }
    }
    if (!home) {
        what.at.reset();
        want_refresh();
        return;
    }
    if (what.at != home) {
        what.at = home;
        node_at(*home)->pubsub().subscribe(what.where.channel, style_of(what.where));
    }
}

void cluster::attach_all() {
    for (auto& [name, each] : channels_) {
        attach(each);
    }
}

/// The server has forgotten the channel; where it went, the map has to tell.
void cluster::moved_away(const std::string& channel, const node_address& from) {
    const guard lock{mutex_};
    const auto found = channels_.find(channel);
    if (found != channels_.end() && found->second.at == from) {
        found->second.at.reset();
        want_refresh();
    }
}

}  // namespace holdfast::engines::redis
