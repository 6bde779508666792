#include <redis/permissions.hpp>

#include <redis/errors.hpp>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

namespace holdfast::engines::redis {

namespace {

using part = permission::part;

constexpr std::array all{
    permission{"auth"},
    permission{"ping", "PING"},
    permission{"select"},  // needed, and tried, only when the address names a database
    permission{"client|setname", "CLIENT SETNAME holdfast"},
    permission{"client|info", "CLIENT INFO"},
    permission{"client|kill", "CLIENT KILL ID 9223372036854775807"},
    permission{"time", "TIME"},
    permission{"role", "ROLE"},
    permission{"info", "INFO server"},
    permission{"evalsha", "EVALSHA 0000000000000000000000000000000000000000 0"},
    permission{"eval", "EVAL return 0"},
    permission{"wait", "WAIT 0 1"},
    permission{"scan", "SCAN 0 COUNT 1"},
    permission{"pubsub", "PUBSUB NUMSUB $channel"},
    permission{"publish", "PUBLISH $channel 0"},
    permission{"spublish", "SPUBLISH $channel 0", part::sharded},
    permission{"subscribe"},
    permission{"unsubscribe"},
    permission{"ssubscribe", {}, part::sharded},
    permission{"sunsubscribe", {}, part::sharded},
    permission{"asking", "ASKING", part::clustered},
    permission{"cluster|slots", "CLUSTER SLOTS", part::clustered},
    permission{"cluster|info", "CLUSTER INFO", part::clustered},
    permission{"decrby", "DECRBY $key 0", part::writes},
    permission{"del", "DEL $key:none"},
    permission{"exists", "EXISTS $key"},
    permission{"get", "GET $key"},
    permission{"getrange", "GETRANGE $key 0 0"},
    permission{"hdel", "HDEL $key x"},
    permission{"hexists", "HEXISTS $key x"},
    permission{"hget", "HGET $key x"},
    permission{"hgetall", "HGETALL $key"},
    permission{"hkeys", "HKEYS $key"},
    permission{"hlen", "HLEN $key"},
    permission{"hmget", "HMGET $key x"},
    permission{"hscan", "HSCAN $key 0"},
    permission{"hset", "HSET $key x x", part::writes},
    permission{"incrby", "INCRBY $key 0", part::writes},
    permission{"lindex", "LINDEX $key 0"},
    permission{"llen", "LLEN $key"},
    permission{"lpop", "LPOP $key"},
    permission{"lrange", "LRANGE $key 0 0"},
    permission{"lrem", "LREM $key 0 x"},
    permission{"lset", "LSET $key 0 x"},
    permission{"pexpire", "PEXPIRE $key 60000"},
    permission{"pttl", "PTTL $key"},
    permission{"rpush", "RPUSH $key x", part::writes},
    permission{"set"},
    permission{"type", "TYPE $key"},
    permission{"zadd", "ZADD $key 1 x", part::writes},
    permission{"zcard", "ZCARD $key"},
    permission{"zrange", "ZRANGE $key 0 0"},
    permission{"zrangebyscore", "ZRANGEBYSCORE $key 0 0"},
    permission{"zrem", "ZREM $key x"},
    permission{"zscore", "ZSCORE $key x"},
};

constexpr std::string_view redisson_keys = "~redisson_*";
constexpr std::string_view own_keys = "~holdfast_*";
constexpr std::string_view redisson_channels = "&redisson_*";
constexpr std::string_view own_channels = "&holdfast_*";

[[nodiscard]] std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const auto& each : names) {
        text += (text.empty() ? "+" : " +") + each;
    }
    return text;
}

}  // namespace

std::span<const permission> permissions() noexcept {
    return all;
}

permission_trial::permission_trial(std::string user, const std::string& tag, bool clustered,
                                   bool sharded)
    : user_{user.empty() ? "default" : std::move(user)},
      key_{"holdfast_doctor" + tag},
      line_key_{"redisson_lock_queue" + (tag.empty() ? ":{holdfast_doctor}" : tag)},
      lock_channel_{"redisson_lock__channel" + (tag.empty() ? ":{holdfast_doctor}" : tag)},
      own_channel_{"holdfast_doctor" + tag},
      clustered_{clustered},
      sharded_{sharded} {}

std::vector<permission_trial::command> permission_trial::opening() const {
    std::vector<command> words{{"SET", key_, "x", "PX", "60000"}, {"UNSUBSCRIBE", own_channel_}};
    if (sharded_) {
        words.push_back({"SUNSUBSCRIBE", own_channel_});
    }
    return words;
}

void permission_trial::plan(const trial& tried, command words) {
    planned_.push_back(tried);
    commands_.push_back(std::move(words));
}

/// A connection that may not unsubscribe would be of no use for anything else afterwards.
void permission_trial::plan_subscription(const value& unsubscribed, std::string_view on,
                                         std::string_view off) {
    judge({off, own_channels}, unsubscribed);
    if (unsubscribed.error_code() == "NOPERM") {
        untried_.emplace_back(on);
        return;
    }
    plan({on, own_channels}, {std::string{on}, own_channel_});
    plan({}, {std::string{off}, own_channel_});
}

std::vector<permission_trial::command> permission_trial::commands(std::span<const value> replies) {
    const value& made = replies[0];
    judge({"set", own_keys}, made);
    for (const auto& each : all) {
        const bool concerns = (each.needed != part::clustered || clustered_) &&
                              (each.needed != part::sharded || sharded_);
        if (each.trial.empty() || !concerns) {
            continue;
        }
        if (each.needed == part::writes && made.is_error()) {
            untried_.emplace_back(each.name);
            continue;
        }
        command words;
        std::istringstream text{std::string{each.trial}};
        for (std::string word; text >> word;) {
            if (word.starts_with("$key")) {
                word.replace(0, 4, key_);
            }
            words.push_back(word == "$channel" ? lock_channel_ : word);
        }
        const bool to_channel = each.trial.find("$channel") != std::string_view::npos;
        plan({each.name, to_channel ? redisson_channels : own_keys}, std::move(words));
    }
    plan({{}, redisson_keys}, {"PEXPIRE", line_key_, "1"});
    plan_subscription(replies[1], "subscribe", "unsubscribe");
    if (sharded_) {
        plan_subscription(replies[2], "ssubscribe", "sunsubscribe");
    }
    if (!made.is_error()) {
        plan({}, {"DEL", key_});
    }
    return commands_;
}

void permission_trial::note_refused_write(const value& reply) {
    constexpr std::array<std::string_view, 4> refusals{"OOM", "MISCONF", "NOREPLICAS", "READONLY"};
    const auto code = reply.error_code();
    if (refused_write_.empty() && std::find(refusals.begin(), refusals.end(), code) != refusals.end()) {
        refused_write_ = meaning_of(reply).detail;
    }
}

void permission_trial::judge(const trial& tried, const value& reply) {
    if (reply.error_code() != "NOPERM") {
        note_refused_write(reply);
        return;
    }
    // "this user has no permissions to run the 'hset' command or its subcommand", "… to access one of
    // the keys used as arguments", and the like
    if (refuses_keys(reply)) {
        no_access_.insert(tried.pattern);
    } else if (!tried.name.empty()) {
        missing_.emplace_back(tried.name);
    }
}

std::vector<finding> permission_trial::findings(std::span<const value> replies) {
    using level = finding::severity;
    for (std::size_t index = 0; index < planned_.size() && index < replies.size(); ++index) {
        judge(planned_[index], replies[index]);
    }
    std::string grant = joined(missing_);
    std::string lacks = grant.empty() ? "" : " commands";
    for (const auto pattern : {redisson_keys, own_keys, redisson_channels, own_channels}) {
        if (!no_access_.contains(pattern)) {
            continue;
        }
        grant += " " + std::string{pattern};
        const std::string_view kind = pattern.front() == '~' ? "keys" : "channels";
        if (lacks.find(kind) == std::string::npos) {
            lacks += (lacks.empty() ? " " : ", ") + std::string{kind};
        }
    }
    std::vector<finding> found;
    if (!grant.empty()) {
        found.push_back({level::warning,
                         {},
                         "the user " + user_ + " lacks permissions (" + lacks.substr(1) +
                             ") that locks need; run: ACL SETUSER " + user_ +
                             (grant.front() == ' ' ? "" : " ") + grant});
    }
    if (!refused_write_.empty()) {
        found.push_back({level::warning, {}, "no lock can be had now: " + refused_write_});
    }
    if (!untried_.empty()) {
        found.push_back({level::unchecked,
                         {},
                         "not checked, because another permission is missing or the server refuses "
                         "writes: " +
                             joined(untried_)});
    }
    if (grant.empty() && untried_.empty()) {
        found.push_back(
            {level::fact, {}, "the user " + user_ + " has all permissions that locks need"});
    }
    return found;
}

}  // namespace holdfast::engines::redis
