#include <algorithm>
#include <array>
#include <redis/net/subscriptions.hpp>
#include <utility>

namespace holdfast::engines::redis {

namespace {

/// Channels in one command: enough to be quick, and short enough not to hold up the server.
constexpr std::size_t largest_batch = 256;

std::string_view word_for(bool subscribes, channel_style style) {
    if (style == channel_style::sharded) {
        return subscribes ? "SSUBSCRIBE" : "SUNSUBSCRIBE";
    }
    return subscribes ? "SUBSCRIBE" : "UNSUBSCRIBE";
}

bool is_pong(const value& answer) {
    if (answer.type == value::kind::text) {
        return answer.text == "PONG";
    }
    return answer.type == value::kind::array && !answer.items.empty() && answer.items[0].text == "pong";
}

}  // namespace

bool subscriptions::want(const std::string& name, channel_style style) {
    channel& entry = channels_.try_emplace(name, channel{.style = style}).first->second;
    if (std::exchange(entry.is_wanted, true) || entry.asked) {
        return false;
    }
    list_as_changed(name, entry);
    return true;
}

/// Once: whoever locks and unlocks all day wants and does not want the same channel all day.
void subscriptions::list_as_changed(const std::string& name, channel& entry) {
    if (!std::exchange(entry.is_listed, true)) {
        changed_.push_back(name);
    }
}

void subscriptions::unwant(const std::string& name) {
    const auto found = channels_.find(name);
    if (found == channels_.end() || !std::exchange(found->second.is_wanted, false)) {
        return;
    }
    if (!found->second.asked && found->second.unanswered == 0) {
        channels_.erase(found);
        return;
    }
    list_as_changed(name, found->second);
}

bool subscriptions::active(const std::string& name) const {
    const auto found = channels_.find(name);
    return found != channels_.end() && found->second.is_active && found->second.is_wanted;
}

bool subscriptions::wanted(const std::string& name) const {
    const auto found = channels_.find(name);
    return found != channels_.end() && found->second.is_wanted;
}

void subscriptions::disconnected() {
    under_way_.clear();
    alone_.clear();
    changed_.clear();
    std::erase_if(channels_, [](const auto& each) { return !each.second.is_wanted; });
    for (auto& [name, entry] : channels_) {
        entry = channel{.style = entry.style, .is_wanted = true};
    }
}

void subscriptions::start_anew() {
    disconnected();
    changed_.reserve(channels_.size());
    for (auto& [name, entry] : channels_) {
        list_as_changed(name, entry);
    }
}

void subscriptions::append_changes(std::string& out) {
    std::array<std::deque<std::string>, 2> together;  // classic: to subscribe, to unsubscribe
    for (std::string& name : std::exchange(changed_, {})) {
        const auto found = channels_.find(name);
        if (found == channels_.end()) {
            continue;
        }
        channel& entry = found->second;
        entry.is_listed = false;
        if (entry.asked == entry.is_wanted) {
            continue;
        }
        entry.asked = entry.is_wanted;
        entry.is_active = false;
        ++entry.unanswered;
        const verb action = entry.is_wanted ? verb::subscribe : verb::unsubscribe;
        if (entry.style == channel_style::sharded) {
            // Channels of one command would have to be in one slot.
            append_batch(out, action, entry.style, {std::move(name)});
            continue;
        }
        auto& batch = together.at(entry.is_wanted ? 0 : 1);
        batch.push_back(std::move(name));
        if (batch.size() == largest_batch) {
            append_batch(out, action, channel_style::classic, std::exchange(batch, {}));
        }
    }
    append_batch(out, verb::subscribe, channel_style::classic, std::move(together[0]));
    append_batch(out, verb::unsubscribe, channel_style::classic, std::move(together[1]));
    for (std::string& name : std::exchange(alone_, {})) {
        append_batch(out, verb::subscribe, channel_style::classic, {std::move(name)});
    }
}

void subscriptions::append_batch(std::string& out, verb action, channel_style style,
                                 std::deque<std::string> names) {
    if (names.empty()) {
        return;
    }
    std::vector<std::string_view> words{word_for(action == verb::subscribe, style)};
    words.insert(words.end(), names.begin(), names.end());
    append_command(out, words);
    under_way_.push_back({.action = action, .style = style, .channels = std::move(names)});
}

void subscriptions::append_ping(std::string& out) {
    const std::array<std::string_view, 1> words{"PING"};
    append_command(out, words);
    under_way_.push_back({.action = verb::ping, .style = {}, .channels = {}});
}

failure subscriptions::take(const value& answer, std::vector<news>& into) {
    if (answer.is_error()) {
        return refused(answer, into);
    }
    if (is_pong(answer)) {
        if (under_way_.empty() || under_way_.front().action != verb::ping) {
            return {errc::store_unavailable, "the server answered a question that was not asked"};
        }
        under_way_.pop_front();
        return {};
    }
    if (answer.type != value::kind::array || answer.items.size() != 3) {
        return {errc::store_unavailable, "the server's notification makes no sense"};
    }
    const std::string& kind = answer.items[0].text;
    const std::string& name = answer.items[1].text;
    if (kind == "message" || kind == "smessage") {
        into.push_back({.type = news::kind::heard, .channel = name, .message = answer.items[2].text});
        return {};
    }
    const bool subscribes = kind == "subscribe" || kind == "ssubscribe";
    const verb action = subscribes ? verb::subscribe : verb::unsubscribe;
    if (expected(action, name)) {
        confirmed(action, name, into);
    } else if (!subscribes && channels_.erase(name) > 0) {
        into.push_back({.type = news::kind::moved_away, .channel = name, .message = {}});
    }
    return {};
}

bool subscriptions::expected(verb action, const std::string& name) {
    if (under_way_.empty() || under_way_.front().action != action ||
        under_way_.front().channels.empty() || under_way_.front().channels.front() != name) {
        return false;
    }
    under_way_.front().channels.pop_front();
    if (under_way_.front().channels.empty()) {
        under_way_.pop_front();
    }
    return true;
}

void subscriptions::confirmed(verb action, const std::string& name, std::vector<news>& into) {
    const auto found = channels_.find(name);
    if (found == channels_.end()) {
        return;
    }
    channel& entry = found->second;
    --entry.unanswered;
    if (action == verb::subscribe && entry.asked && entry.unanswered == 0) {
        entry.is_active = true;
        into.push_back({.type = news::kind::subscribed, .channel = name, .message = {}});
    }
    if (action == verb::unsubscribe && !entry.asked && entry.unanswered == 0 && !entry.is_wanted) {
        channels_.erase(found);
    }
}

failure subscriptions::refused(const value& error, std::vector<news>& into) {
    if (under_way_.empty() || under_way_.front().action == verb::ping) {
        return {errc::store_unavailable, "the server refused: " + error.text};
    }
    command asked = std::move(under_way_.front());
    under_way_.pop_front();
    const std::string_view code = error.error_code();
    if (code != "MOVED" && code != "NOPERM") {
        return {errc::store_unavailable, "the server refused a subscription: " + error.text};
    }
    for (std::string& name : asked.channels) {
        if (code == "MOVED") {
            if (channels_.erase(name) > 0) {
                into.push_back(
                    {.type = news::kind::moved_away, .channel = std::move(name), .message = {}});
            }
        } else if (asked.action == verb::subscribe && asked.channels.size() > 1) {
            // One that is not allowed must not cost the others their notifications.
            alone_.push_back(std::move(name));
        } else if (const auto found = channels_.find(name); found != channels_.end()) {
            // Stays as it is until the next connection.
            --found->second.unanswered;
            if (asked.action == verb::subscribe) {
                into.push_back({.type = news::kind::refused, .channel = name, .message = error.text});
            }
        }
    }
    return {};
}

}  // namespace holdfast::engines::redis
