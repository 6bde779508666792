#include <redis/waiting_line.hpp>

#include <utility>

namespace holdfast::engines::redis {

std::int64_t waiting_line::enter(const owner_id& owner, watches& channels, channel_place channel,
                                 std::string key, turn_told told) {
    const std::lock_guard lock{guard_};
    auto& own = places_[owner];
    own.asked_at = clock::now();
    if (!own.channel) {
        own.channel =
            channels.listen(std::move(channel), watches::beginning::told,
                            [this, owner, key = std::move(key), told = std::move(told)](
                                std::string_view message) { heard(owner, key, message, told); });
    }
    return own.asked_at.time_since_epoch().count();
}

bool waiting_line::on_reply(const owner_id& owner, const acquire_reply& reply, bool listened) {
    const bool stays =
        reply.result == acquire_reply::outcome::busy || reply.error.code == errc::outcome_unknown;
    if (!stays) {
        leave(owner);
        return false;
    }
    const std::lock_guard lock{guard_};
    const auto found = places_.find(owner);
    if (found == places_.end() || found->second.listened) {
        return false;
    }
    found->second.listened = listened;
    return found->second.began && !listened;
}

/// The channel begins to flow. True: that is no reason to ask again, because the server knew of it when
/// it answered. While it has not answered yet, `on_reply` sees to it.
bool waiting_line::missed_nothing(const owner_id& owner) {
    const std::lock_guard lock{guard_};
    const auto found = places_.find(owner);
    return found != places_.end() && !std::exchange(found->second.began, true) &&
           found->second.listened.value_or(true);
}

void waiting_line::heard(const owner_id& owner, const std::string& key, std::string_view message,
                         const turn_told& told) {
    if (message.empty() && missed_nothing(owner)) {
        return;
    }
    std::optional<turn_grant> granted;
    std::unique_ptr<watches::listening> left;
    const auto turn = read_turn(message);
    if (turn && turn->owner == owner.text() && turn->key == key) {
        const std::lock_guard lock{guard_};
        const auto found = places_.find(owner);
        // The core knows whether the question was its last, and gives back what nobody waits for.
        granted = grant_in(*turn);
        if (found != places_.end() && found->second.asked_at == granted->asked_at) {
            left = std::move(found->second.channel);
            places_.erase(found);
        }
    }
    told(owner, granted);
}

void waiting_line::leave(const owner_id& owner) {
    std::unique_ptr<watches::listening> left;
    const std::lock_guard lock{guard_};
    if (const auto found = places_.find(owner); found != places_.end()) {
        left = std::move(found->second.channel);
        places_.erase(found);
    }
}

bool waiting_line::contains(const owner_id& owner) const {
    const std::lock_guard lock{guard_};
    return places_.contains(owner);
}

void waiting_line::clear() {
    const std::lock_guard lock{guard_};
    places_.clear();
}

}  // namespace holdfast::engines::redis
