#include <redis/examination.hpp>

#include <redis/errors.hpp>
#include <redis/resp/info.hpp>

#include <array>
#include <atomic>
#include <charconv>
#include <mutex>
#include <utility>

namespace holdfast::engines::redis {

namespace {

using level = finding::severity;

/// The answers of several servers, on their way in.
struct survey {
    std::mutex guard;
    examine_reply reply;
    std::atomic<std::size_t> missing;
    completion<examine_reply> done;
};

/// CONFIG GET answers [name, value]; users may lack the permission.
[[nodiscard]] std::string setting_in(const value& answer) {
    const bool pair = answer.type == value::kind::array && answer.items.size() == 2;
    return pair ? answer.items[1].text : std::string{};
}

void add_answers(examine_reply& to, const connection::result& result) {
    if (result.error) {
        to.error = result.error;
        return;
    }
    if (result.replies.size() != 2 || result.replies[0].is_error()) {
        const std::string words = result.replies.empty() ? "no answer" : result.replies[0].text;
        to.findings.push_back({level::warning, {}, "INFO was refused (" + words + ")"});
        return;
    }
    const auto& info = result.replies[0].text;
    for (auto& each : judge_server(info, setting_in(result.replies[1]))) {
        each.server = "port " + info_field(info, "tcp_port");
        to.findings.push_back(std::move(each));
    }
}

/// What the server calls itself. Successors of Redis also name the version of Redis that they behave
/// like.
struct server_version {
    std::string name{"Redis"};
    std::string number;
    std::string like_redis;

    [[nodiscard]] std::string text() const {
        return number == like_redis ? name + " " + number
                                    : name + " " + number + " (like Redis " + like_redis + ")";
    }
};

[[nodiscard]] server_version version_in(const std::string& info) {
    struct product {
        std::string_view field;
        std::string_view name;
    };
    constexpr std::array others{product{"valkey_version", "Valkey"},
                                product{"dragonfly_version", "Dragonfly"},
                                product{"kvrocks_version", "Kvrocks"}};
    server_version found;
    found.like_redis = info_field(info, "redis_version");
    found.number = found.like_redis;
    for (const auto& each : others) {
        if (auto number = info_field(info, each.field); !number.empty()) {
            found.name = each.name;
            found.number = std::move(number);
        }
    }
    return found;
}

/// "6.2.14" and the like; the rest does not count.
[[nodiscard]] std::pair<int, int> major_and_minor(const std::string& version) {
    int major{};
    int minor{};
    const char* const end = version.data() + version.size();
    const auto [dot, error] = std::from_chars(version.data(), end, major);
    if (error == std::errc{} && dot != end && *dot == '.') {
        std::from_chars(dot + 1, end, minor);
    }
    return {major, minor};
}

constexpr std::pair oldest_redis{6, 2};

/// Why holdfast is not made for this server, if so.
[[nodiscard]] std::string unsupported(const server_version& version) {
    if (version.name != "Redis" && version.name != "Valkey") {
        return version.text() +
               " is not supported: holdfast is tested with Redis 6.2 and newer, and with Valkey";
    }
    if (major_and_minor(version.like_redis) < oldest_redis) {
        return version.text() + " is not supported: holdfast needs Redis 6.2 or newer, or Valkey";
    }
    return {};
}

[[nodiscard]] std::string since_when(const std::string& info) {
    return version_in(info).text() + ", up for " + info_field(info, "uptime_in_seconds") +
           " s, run id " + info_field(info, "run_id") + ", " + info_field(info, "connected_slaves") +
           " replicas";
}

}  // namespace

std::vector<finding> judge_server(const std::string& info, const std::string& appendfsync) {
    std::vector<finding> found{{level::fact, {}, since_when(info)}};
    if (auto why = unsupported(version_in(info)); !why.empty()) {
        found.push_back({level::warning, {}, std::move(why)});
    }
    const auto policy = info_field(info, "maxmemory_policy");
    if (policy != "noeviction") {
        found.push_back({level::warning,
                         {},
                         "maxmemory-policy is " + policy +
                             ": a lock may be evicted while it is held; set it to noeviction"});
    }
    if (info_field(info, "aof_enabled") != "1") {
        found.push_back(
            {level::warning,
             {},
             "appendonly is off: a restart forgets locks that are held; set appendonly yes, or give a "
             "quorum a restart_grace of the longest ttl"});
    } else if (!appendfsync.empty() && appendfsync != "always") {
        found.push_back(
            {level::warning,
             {},
             "appendfsync is " + appendfsync +
                 ": a crash of its host forgets the last grants; set it to always, or give a quorum "
                 "a restart_grace of the longest ttl"});
    }
    return found;
}

void examine_servers(const std::shared_ptr<const catalogue>& from, call how,
                     completion<examine_reply> done) {
    const auto slots = from->servers.a_slot_of_each_master();
    auto all = std::make_shared<survey>();
    all->missing = slots.size();
    all->done = std::move(done);
    if (slots.empty()) {
        all->done({{}, {errc::store_unavailable, "no server is known"}});
        return;
    }
    for (const auto slot : slots) {
        from->servers.send(
            slot, router::lane::common,
            [](std::string& out, const server_facts&) {
                append_command(out, std::vector<std::string_view>{"INFO"});
                append_command(out, std::vector<std::string_view>{"CONFIG", "GET", "appendfsync"});
                return connection::expected{2};
            },
            how,
            [all](const connection::result& result) {
                {
                    const std::lock_guard lock{all->guard};
                    add_answers(all->reply, result);
                }
                if (all->missing.fetch_sub(1) == 1) {
                    all->done(std::move(all->reply));
                }
            });
    }
}

}  // namespace holdfast::engines::redis
