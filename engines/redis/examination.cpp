#include <redis/examination.hpp>

#include <redis/layout/keys.hpp>
#include <redis/permissions.hpp>
#include <redis/resp/info.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <iterator>
#include <span>
#include <sstream>
#include <utility>

namespace holdfast::engines::redis {

namespace {

using level = finding::severity;

/// The settings that INFO does not tell, or not always.
constexpr std::array<std::string_view, 4> settings{"appendonly", "appendfsync", "timeout",
                                                   "tcp-keepalive"};

/// The answers of several servers, on their way in.
struct survey {
    explicit survey(std::size_t servers) : found(servers), errors(servers), missing{servers + 1} {}

    /// Of the store as a whole.
    std::vector<finding> first;
    std::vector<std::vector<finding>> found;
    std::vector<failure> errors;
    std::vector<finding> of_sentinels;
    /// Servers, and the sentinels together.
    std::atomic<std::size_t> missing;
    completion<examine_reply> done;

    /// A server that does not answer is a finding, unless none does.
    void arrived() {
        if (missing.fetch_sub(1) != 1) {
            return;
        }
        examine_reply all;
        all.findings = std::move(first);
        const bool none = std::all_of(errors.begin(), errors.end(),
                                      [](const failure& why) { return static_cast<bool>(why); });
        if (none) {
            all.error = errors.front();
        }
        for (std::size_t index = 0; index < found.size(); ++index) {
            if (errors[index] && !none) {
                all.findings.push_back(
                    {level::warning, {}, "a server does not answer: " + errors[index].detail});
            }
            std::move(found[index].begin(), found[index].end(), std::back_inserter(all.findings));
        }
        std::move(of_sentinels.begin(), of_sentinels.end(), std::back_inserter(all.findings));
        done(std::move(all));
    }
};

/// Whether INFO is that of a server that has not read its data yet. It calls its append-only file
/// switched off meanwhile, whatever the setting is, and its replicas are not connected.
[[nodiscard]] bool says_loading(const std::string& info) {
    return info_field(info, "loading") == "1";
}

/// CONFIG GET answers [name, value]; users may lack the permission.
[[nodiscard]] std::optional<std::string> setting_in(const value& answer) {
    const bool pair = answer.type == value::kind::array && answer.items.size() == 2;
    return pair ? std::optional{answer.items[1].text} : std::nullopt;
}

void append_all(std::string& out, const std::vector<permission_trial::command>& all) {
    for (const auto& words : all) {
        append_command(out, std::vector<std::string_view>{words.begin(), words.end()});
    }
}

/// What one server is, and what we may do there.
class server_visit : public std::enable_shared_from_this<server_visit> {
public:
    server_visit(std::shared_ptr<const catalogue> from, std::uint16_t slot, const address& store,
                 std::shared_ptr<survey> into, std::size_t index)
        : from_{std::move(from)},
          slot_{slot},
          fails_over_{store.topology != topology_kind::standalone},
          trial_{store.connection.login.user, tag(), from_->words.clustered,
                 from_->words.publish == "spublish"},
          into_{std::move(into)},
          index_{index} {}

    void start(call limits) {
        until_ = limits.deadline;
        from_->servers.send(
            slot_, router::lane::common,
            [questions = questions()](std::string& out, const server_facts&) {
                append_all(out, questions);
                return connection::expected{questions.size()};
            },
            limits,
            [self = shared_from_this()](const connection::result& result) { self->looked(result); });
    }

private:
    /// For keys and channels in the server's slot.
    [[nodiscard]] std::string tag() const {
        return from_->words.clustered ? token_counter(slot_).substr(token_counter().size())
                                      : std::string{};
    }

    /// About the server, then the opening of the trial.
    [[nodiscard]] std::vector<permission_trial::command> questions() {
        std::vector<permission_trial::command> all{{"INFO"}};
        for (const auto name : settings) {
            all.push_back({"CONFIG", "GET", std::string{name}});
        }
        if (from_->words.clustered) {
            all.push_back({"CLUSTER", "INFO"});
            all.push_back({"CLUSTER", "NODES"});
        }
        opening_at_ = all.size();
        const auto opening = trial_.opening();
        all.insert(all.end(), opening.begin(), opening.end());
        return all;
    }

    void looked(const connection::result& result) {
        if (result.error) {
            finish(result.error);
            return;
        }
        const auto& info = result.replies[0];
        if (info.is_error()) {
            add({{level::unchecked,
                  {},
                  "version, persistence, memory and replicas were not checked: INFO was refused (" +
                      info.text + ")"}});
        } else {
            server_ = "port " + info_field(info.text, "tcp_port");
            add(judge_server(info.text, {.appendonly = setting_in(result.replies[1]),
                                         .appendfsync = setting_in(result.replies[2]),
                                         .timeout = setting_in(result.replies[3]),
                                         .keepalive = setting_in(result.replies[4]),
                                         .fails_over = fails_over_}));
        }
        // While it loads it refuses nearly all that the trial consists of.
        const auto& opening = result.replies[opening_at_];
        if (says_loading(info.text) || opening.error_code() == "LOADING") {
            add({{level::warning,
                  {},
                  "the server is loading its data; no lock can be had until it is done. The "
                  "permissions were not checked: ask again then"}});
            finish({});
            return;
        }
        if (from_->words.clustered) {
            add(judge_cluster(result.replies[opening_at_ - 2], result.replies[opening_at_ - 1]));
        }
        auto commands = trial_.commands(std::span{result.replies}.subspan(opening_at_));
        from_->servers.send(
            slot_, router::lane::common,
            [commands = std::move(commands)](std::string& out, const server_facts&) {
                append_all(out, commands);
                return connection::expected{commands.size()};
            },
            {until_, caller::must_not_block},
            [self = shared_from_this()](const connection::result& tried) {
                if (!tried.error) {
                    self->add(self->trial_.findings(tried.replies));
                }
                self->finish(tried.error);
            });
    }

    void add(std::vector<finding> some) {
        for (auto& each : some) {
            each.server = server_;
            into_->found[index_].push_back(std::move(each));
        }
    }

    void finish(failure why) {
        into_->errors[index_] = std::move(why);
        into_->arrived();
    }

    std::shared_ptr<const catalogue> from_;
    std::uint16_t slot_;
    bool fails_over_;
    permission_trial trial_;
    std::shared_ptr<survey> into_;
    std::size_t index_;
    clock::time_point until_;
    std::size_t opening_at_{};
    std::string server_;
};

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

/// "slave0:ip=10.0.0.7,port=6379,state=online,offset=1234,lag=1"
[[nodiscard]] std::string part_of(const std::string& line, const std::string& name) {
    const auto found = ("," + line).find("," + name + "=");
    if (found == std::string::npos) {
        return {};
    }
    const auto begin = found + name.size() + 1;
    return line.substr(begin, line.find(',', begin) - begin);
}

[[nodiscard]] long number_in(const std::string& text) {
    long number{};
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

/// Longer than a replica is silent when all is well: it reports once a second.
constexpr long longest_lag = 3;

void judge_replicas(const std::string& info, bool fails_over, std::vector<finding>& found) {
    const auto warn = [&found](std::string text) {
        found.push_back({level::warning, {}, std::move(text)});
    };
    const auto count = number_in(info_field(info, "connected_slaves"));
    if (count == 0 && fails_over) {
        warn(
            "no replica is connected: nobody takes this master's place when it fails, and its locks "
            "cannot be used until it is back; add a replica");
    }
    if (count > 0 && info_field(info, "min_slaves_good_slaves").empty()) {
        warn(
            "min-replicas-to-write is 0: a master that is cut off from its replicas goes on granting "
            "locks, which are lost when a replica takes its place; set it to 1 or more. The master "
            "then "
            "stops granting and renewing locks while it has fewer replicas: leases that are held end");
    }
    for (long number = 0; number < count; ++number) {
        const auto line = info_field(info, "slave" + std::to_string(number));
        const auto name = part_of(line, "ip") + ":" + part_of(line, "port");
        const auto state = part_of(line, "state");
        if (state != "online") {
            warn("the replica " + name + " is not in step (" + state +
                 "): locks that are granted now are not there after a fail-over");
        } else if (const auto lag = number_in(part_of(line, "lag")); lag > longest_lag) {
            warn("the replica " + name + " is " + std::to_string(lag) +
                 " s behind: locks that were granted meanwhile are not there after a fail-over");
        }
    }
}

/// A line of CLUSTER NODES: "<id> <ip:port@bus,…> <flags> … <slots>", cut at the blanks.
using node_line = std::vector<std::string>;

[[nodiscard]] std::vector<node_line> lines_of(const std::string& nodes) {
    std::vector<node_line> all;
    std::istringstream text{nodes};
    for (std::string line; std::getline(text, line);) {
        std::istringstream words{line};
        node_line parts{std::istream_iterator<std::string>{words}, {}};
        constexpr std::size_t without_slots = 8;
        if (parts.size() >= without_slots) {
            all.push_back(std::move(parts));
        }
    }
    return all;
}

[[nodiscard]] std::string address_in(const node_line& node) {
    return node[1].substr(0, node[1].find('@'));
}

/// A slot that is on its way from or to the server that was asked.
struct open_slot {
    std::uint16_t number{};
    bool leaves{};
    std::string other;

    [[nodiscard]] std::string text() const {
        return std::to_string(number) + (leaves ? " (MIGRATING to " : " (IMPORTING from ") + other +
               ")";
    }
};

/// "[77->-<id>]" is on its way to that node, "[77-<-<id>]" from it.
[[nodiscard]] open_slot read_move(const std::string& word, const std::vector<node_line>& all) {
    const auto dash = word.find('-');
    constexpr std::size_t arrow = 3;
    const auto id = word.substr(dash + arrow, word.size() - dash - arrow - 1);
    const auto other =
        std::find_if(all.begin(), all.end(), [&](const node_line& node) { return node[0] == id; });
    return {static_cast<std::uint16_t>(number_in(word.substr(1, dash - 1))),
            word.substr(dash, arrow) == "->-", other == all.end() ? id : address_in(*other)};
}

/// A move that was cancelled may have left the slot's counter on the server that imported it. The
/// counter of the other server is the one in use. A counter that is missing starts from the server's
/// clock.
[[nodiscard]] std::string advice_on(const open_slot& slot, const std::string& self) {
    return "finish it: redis-cli --cluster fix " + self +
           ". If that stops at \"Target key exists\", an earlier move of the slot was cancelled: send "
           "ASKING, DEL " +
           token_counter(slot.number) + " in one connection to " + (slot.leaves ? slot.other : self) +
           " (each slot has such a counter) and try again; not --cluster-replace, which puts old keys "
           "over those in use";
}

void judge_moves(const std::string& nodes, std::vector<finding>& found) {
    const auto all = lines_of(nodes);
    const auto self = std::find_if(all.begin(), all.end(), [](const node_line& node) {
        return node[2].find("myself") != std::string::npos;
    });
    if (self == all.end()) {
        return;
    }
    constexpr std::size_t most_named = 10;
    std::vector<open_slot> open;
    for (const auto& word : *self) {
        if (word.starts_with('[') && word.find('-') != std::string::npos) {
            open.push_back(read_move(word, all));
        }
    }
    if (open.empty()) {
        return;
    }
    std::string named;
    for (const auto& slot : std::span{open}.first(std::min(open.size(), most_named))) {
        named += (named.empty() ? "" : ", ") + slot.text();
    }
    named +=
        open.size() > most_named ? " and " + std::to_string(open.size() - most_named) + " more" : "";
    const bool blocked =
        std::any_of(open.begin(), open.end(), [](const open_slot& slot) { return slot.leaves; });
    found.push_back({level::warning,
                     {},
                     "open slots, whose move to another server has not ended: " + named + "; " +
                         (blocked ? "nothing is granted in slots that are MIGRATING"
                                  : "locks are granted in them unless they are MIGRATING at the server "
                                    "that they come from") +
                         ". If no move is under way, " + advice_on(open.front(), address_in(*self))});
}

constexpr std::string_view all_slots = "16384";

/// What is to be known of a sentinel that is in the address.
void judge_silence(const sentinel_checkup& one, const std::string& server,
                   std::vector<finding>& found) {
    const auto name = one.where.text() + ": ";
    const bool named = one.silence.detail.starts_with(name);
    const auto reason = one.silence.detail.substr(named ? name.size() : 0);
    const bool away =
        one.silence.code == errc::store_unavailable || one.silence.code == errc::outcome_unknown;
    constexpr std::string_view no_answer = "does not answer";
    found.push_back({level::warning, server,
                     (!away                 ? "is of no use: " + reason
                      : reason == no_answer ? reason
                                            : std::string{no_answer} + " (" + reason + ")") +
                         "; it cannot help to replace the master, nor tell clients where it is"});
}

void judge_quorum(const sentinel_checkup& one, const std::string& server, std::string_view user,
                  std::vector<finding>& found) {
    const auto& answer = one.quorum;
    const auto code = answer.error_code();
    if (code == "NOQUORUM") {
        found.push_back({level::warning, server,
                         "the sentinels cannot agree on a new master when this one fails (" +
                             answer.text + "); bring back those that are missing"});
    } else if (code == "NOPERM") {
        found.push_back(
            {level::unchecked, server,
             "whether the sentinels can agree on a new master was not checked: the user lacks "
             "a permission; run: ACL SETUSER " +
                 std::string{user.empty() ? "default" : user} + " +sentinel|ckquorum"});
    } else if (answer.is_error()) {
        found.push_back(
            {level::unchecked, server,
             "whether the sentinels can agree on a new master was not checked (" + answer.text + ")"});
    } else {
        found.push_back(
            {level::fact, server, "the sentinels can agree on a new master (" + answer.text + ")"});
    }
}

}  // namespace

std::vector<finding> judge_sentinels(const std::vector<sentinel_checkup>& all, std::string_view user) {
    std::vector<finding> found;
    for (const auto& each : all) {
        const auto server = "sentinel " + each.where.text();
        if (each.silence.code == errc::shut_down) {
            continue;
        }
        if (each.silence) {
            judge_silence(each, server, found);
            continue;
        }
        judge_quorum(each, server, user, found);
        if (each.others == 0U) {
            found.push_back({level::advice, server,
                             "knows of no other sentinel: while it is away nobody replaces a master "
                             "that fails, and nobody tells clients where it is; run three or more, and "
                             "name all of them in the address"});
        } else if (all.size() == 1) {
            found.push_back({level::advice, server,
                             "is the only one in the address: while it is away clients that start do "
                             "not find the master; name all of them"});
        }
    }
    return found;
}

std::vector<finding> judge_cluster(const value& info, const value& nodes) {
    std::vector<finding> found;
    const auto state = info_field("\n" + info.text, "cluster_state");
    const auto served = info_field("\n" + info.text, "cluster_slots_ok");
    if (!info.is_error() && (state != "ok" || served != all_slots)) {
        found.push_back({level::warning,
                         {},
                         "the cluster is not whole (cluster_state:" + state + ", " + served + " of " +
                             std::string{all_slots} +
                             " slots are served): locks in the other slots cannot be used" +
                             (state == "ok" ? "" : ", and no others either while it is down") +
                             "; bring its servers back"});
    }
    if (nodes.is_error()) {
        found.push_back(
            {level::unchecked,
             {},
             "open slots were not checked: CLUSTER NODES was refused (" + nodes.text + ")"});
    } else {
        judge_moves(nodes.text, found);
    }
    return found;
}

std::vector<finding> judge_server(const std::string& info, const server_setup& setup) {
    const auto& [appendonly, appendfsync, timeout, keepalive, fails_over] = setup;
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
    const bool loading = says_loading(info);
    const bool keeps_log = loading ? appendonly == "yes" : info_field(info, "aof_enabled") == "1";
    const bool log_known = !loading || appendonly;
    if (!keeps_log && log_known) {
        found.push_back({level::warning,
                         {},
                         "appendonly is off: a restart forgets locks that are held; set appendonly yes",
                         true});
    } else if (keeps_log && appendfsync && *appendfsync != "always") {
        const bool every_second = *appendfsync == "everysec";
        found.push_back({every_second ? level::advice : level::warning,
                         {},
                         "appendfsync is " + *appendfsync +
                             ": a crash of its host forgets the grants of " +
                             (every_second ? "the last second" : "half a minute or more") +
                             "; set it to always to keep them all",
                         true});
    }
    if (info_field(info, "aof_last_write_status") == "err") {
        found.push_back({level::warning,
                         {},
                         "the server cannot write its append-only file: it refuses new locks, and a "
                         "restart forgets those that are held"});
    }
    if (!loading) {
        judge_replicas(info, fails_over, found);
    }
    if (timeout && *timeout != "0") {
        found.push_back({level::warning,
                         {},
                         "timeout is " + *timeout +
                             ": connections that were idle for so many seconds are cut, and the next "
                             "request on them has to be sent again; set it to 0"});
    }
    if (keepalive && *keepalive == "0") {
        found.push_back({level::warning,
                         {},
                         "tcp-keepalive is 0: the server keeps the connections of hosts that vanished, "
                         "and takes those who waited there to be alive; set it to 60"});
    }
    if (!timeout || !keepalive || !log_known || (keeps_log && !appendfsync)) {
        found.push_back({level::unchecked,
                         {},
                         std::string{log_known ? "" : "appendonly, "} +
                             (!log_known || (keeps_log && !appendfsync) ? "appendfsync, " : "") +
                             "timeout and tcp-keepalive were not checked: this user may not run CONFIG "
                             "GET"});
    }
    return found;
}

void examine_servers(const std::shared_ptr<const catalogue>& from, const address& store, call limits,
                     completion<examine_reply> done) {
    const auto slots = from->servers.a_slot_of_each_master();
    if (slots.empty()) {
        done({{}, {errc::store_unavailable, "no server is known"}});
        return;
    }
    auto all = std::make_shared<survey>(slots.size());
    all->done = std::move(done);
    if (store.connection.tls && !store.connection.tls->verify) {
        all->first.push_back(
            {level::warning,
             {},
             "verify=no: TLS without a look at the certificate; whoever answers at this "
             "address is believed, and told the password. Name the authority with "
             "ca=FILE instead"});
    }
    from->servers.check_sentinels(limits.deadline,
                                  [all, user = store.sentinel_login.user](const auto& checkups) {
                                      all->of_sentinels = judge_sentinels(checkups, user);
                                      all->arrived();
                                  });
    for (std::size_t index = 0; index < slots.size(); ++index) {
        std::make_shared<server_visit>(from, slots[index], store, all, index)->start(limits);
    }
}

}  // namespace holdfast::engines::redis
