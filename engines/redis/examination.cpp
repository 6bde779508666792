#include <redis/examination.hpp>

#include <redis/errors.hpp>
#include <redis/resp/info.hpp>

#include <atomic>
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

[[nodiscard]] std::string since_when(const std::string& info) {
    return "Redis " + info_field(info, "redis_version") + ", up for " +
           info_field(info, "uptime_in_seconds") + " s, run id " + info_field(info, "run_id") + ", " +
           info_field(info, "connected_slaves") + " replicas";
}

}  // namespace

std::vector<finding> judge_server(const std::string& info, const std::string& appendfsync) {
    std::vector<finding> found{{level::fact, {}, since_when(info)}};
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
