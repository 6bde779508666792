#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <support/redis_servers.hpp>

#include <holdfast/holdfast.hpp>
#include "fixture.hpp"

/// `list`, `inspect`, `release` and `doctor` on Redis servers that others use, too.
namespace holdfast::cli::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::redis_cluster;
using testing_support::redis_server;

/// The line of docs/redis.md.
[[nodiscard]] std::string documented_user() {
    std::ifstream page{std::filesystem::path{HOLDFAST_SOURCE_DIR} / "docs/redis.md"};
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("user locker ")) {
            return line + "\n";
        }
    }
    return {};
}

class looking : public cli_test {
protected:
    /// What a program said, and how it ended.
    struct answer {
        int status{};
        std::string output;
        std::string errors;
    };

    [[nodiscard]] answer ask(const std::string& address, const words& arguments) const {
        const auto asked = finish(arguments, {.environment = {{"HOLDFAST_STORE", address}}});
        return {asked->wait(), asked->output(), asked->errors()};
    }
    /// Holds a lock until its input is closed.
    [[nodiscard]] std::unique_ptr<program> hold_at(const std::string& address,
                                                   const std::string& name) const {
        auto holder = start(run_script(name, {}, "echo holding; read line; exit 0"),
                            {.environment = {{"HOLDFAST_STORE", address}}});
        holder->wait_for_output("holding");
        return holder;
    }
    [[nodiscard]] static std::string at(const redis_server& server, const std::string& more = {}) {
        return "redis://127.0.0.1:" + std::to_string(server.port()) + more;
    }
    [[nodiscard]] static std::string as_locker(const redis_server& server,
                                               const std::string& scheme = "redis",
                                               const std::string& more = {}) {
        return scheme + "://locker:secret@127.0.0.1:" + std::to_string(server.port()) + more;
    }
};

constexpr const char* java_lock = "9f0c1e52-4f0e-4a6e-8f0a-0123456789ab:47";

TEST_F(looking, at_what_is_not_ours_makes_no_errors_and_no_keys) {
    const redis_server server;
    server.cli(
        {"EVAL", "for i = 1, 300 do redis.call('HSET', 'foreign:' .. i, 'colour', 'red') end", "0"});
    server.cli({"HSET", "job", java_lock, "1"});
    server.cli({"RPUSH", "queue", "x"});
    server.cli({"CONFIG", "RESETSTAT"});
    const auto keys = server.cli({"DBSIZE"});
    EXPECT_THAT(ask(at(server), {"list"}).output, HasSubstr("job"));
    EXPECT_EQ(ask(at(server), {"inspect", "queue"}).status, 78);
    EXPECT_EQ(ask(at(server), {"inspect", "foreign:1"}).status, 78);
    EXPECT_EQ(ask(at(server), {"release", "foreign:1", "--force"}).status, 78);
    const auto errors = server.cli({"INFO", "errorstats"});
    EXPECT_THAT(errors, Not(HasSubstr("WRONG")));
    EXPECT_THAT(errors, Not(HasSubstr("errorstat_ERR")));
    // A script that the server has not seen is sent once in full.
    EXPECT_THAT(errors, HasSubstr("errorstat_NOSCRIPT:count=1\r"));
    EXPECT_EQ(server.cli({"DBSIZE"}), keys);
}

TEST_F(looking, by_a_user_with_keys_of_its_own_leaves_out_the_others) {
    const redis_server server{{.acl = "user default on nopass ~* &* +@all\n" + documented_user()}};
    server.cli({"HSET", "job", java_lock, "1"});
    server.cli({"HSET", "foreign", "colour", "red"});
    server.cli({"HSET", "other:job", java_lock, "1"});
    server.cli(
        {"ACL", "SETUSER", "locker", "resetkeys", "~job*", "~{job*", "~redisson_*", "~holdfast_*"});
    const auto listed = ask(as_locker(server), {"list"});
    EXPECT_EQ(listed.status, 0) << listed.errors;
    EXPECT_THAT(listed.output, AllOf(HasSubstr("job"), Not(HasSubstr("other"))));
    // What looks like an empty store is a permission that is missing.
    server.cli({"ACL", "SETUSER", "locker", "resetkeys", "~job*", "~{job*", "~redisson_*"});
    const auto refused = ask(as_locker(server), {"list"});
    EXPECT_EQ(refused.status, 77);
    EXPECT_THAT(refused.errors, HasSubstr("holdfast_holds:{job}"));
}

TEST_F(looking, without_the_permission_to_count_waiters_is_refused_once) {
    const redis_server server{{.acl = "user default on nopass ~* &* +@all\n" + documented_user()}};
    server.cli({"ACL", "SETUSER", "locker", "-pubsub"});
    server.cli(
        {"EVAL", "for i = 1, 300 do redis.call('HSET', 'job:' .. i, ARGV[1], 1) end", "0", java_lock});
    ASSERT_EQ(ask(at(server), {"list"}).status, 0);  // now the server knows the script
    server.cli({"CONFIG", "RESETSTAT"});
    const auto listed = ask(as_locker(server), {"list"});
    EXPECT_EQ(listed.status, 0) << listed.errors;
    EXPECT_THAT(listed.output, HasSubstr("job:300"));
    EXPECT_THAT(server.cli({"INFO", "errorstats"}), HasSubstr("errorstat_NOPERM:count=1\r"));
}

TEST_F(looking, for_too_short_a_time_shows_what_was_found) {
    const redis_server server;
    server.cli({"EVAL",
                "for i = 1, 20000 do redis.call('HSET', 'job:' .. i, ARGV[1], 1) "
                "redis.call('PEXPIRE', 'job:' .. i, 600000) end",
                "0", java_lock});
    // Long enough to find something, on a machine that has other things to do as well.
    answer listed;
    std::string timeout;
    for (int milliseconds = 100; listed.output.find("job:") == std::string::npos && milliseconds < 5000;
         milliseconds *= 2) {
        timeout = std::to_string(milliseconds) + "ms";
        listed = ask(at(server), {"list", "--timeout", timeout});
    }
    EXPECT_EQ(listed.status, 69);
    EXPECT_THAT(listed.output, HasSubstr("job:"));
    EXPECT_THAT(listed.errors,
                AllOf(HasSubstr("the list is not complete: "), Not(HasSubstr("may have happened"))));
    listed = ask(at(server), {"list", "--timeout", timeout, "--json"});
    const auto object = parse(listed.output);
    EXPECT_EQ(object.at("status").as_int64(), 69);
    EXPECT_EQ(object.at("error").as_string(), "unavailable");
    if (const auto* locks = object.if_contains("locks")) {
        EXPECT_LT(locks->as_array().size(), 20000U);
    }
}

TEST_F(looking, at_a_server_that_goes_away_shows_what_was_found) {
    redis_server server;
    server.cli({"EVAL",
                "for i = 1, 40000 do redis.call('HSET', 'job:' .. i, ARGV[1], 1) "
                "redis.call('PEXPIRE', 'job:' .. i, 600000) end",
                "0", java_lock});
    const auto listing = start({"list"}, {.environment = {{"HOLDFAST_STORE", at(server)}}});
    // A page has a thousand locks.
    wait_until("the first pages", [&] {
        const auto commands = server.cli({"INFO", "commandstats"});
        const std::string mark{"cmdstat_evalsha:calls="};
        const auto found = commands.find(mark);
        return found != std::string::npos && std::stol(commands.substr(found + mark.size())) > 1500;
    });
    server.kill_hard();
    EXPECT_EQ(listing->wait(), 69);
    EXPECT_THAT(listing->output(), HasSubstr("job:"));
    EXPECT_THAT(listing->errors(), HasSubstr("the list is not complete: "));
}

TEST_F(looking, at_a_cluster_that_is_down_names_what_its_servers_have) {
    redis_cluster cluster{
        {.masters = 3, .replicas_each = 0, .node_timeout = std::chrono::milliseconds{500}}};
    const auto address = "redis+cluster://127.0.0.1:" + std::to_string(cluster.node(0).port());
    const auto on_first = hold_at(address, "b");  // slot 3300
    const auto on_last = hold_at(address, "a");   // slot 15495
    const auto dead = cluster.kill_master_of(15495);
    wait_until("the cluster is down", [&] {
        return cluster.node(0).cli({"CLUSTER", "INFO"}).find("cluster_state:fail") != std::string::npos;
    });
    const auto listed = ask(address, {"list"});
    EXPECT_EQ(listed.status, 69);
    EXPECT_THAT(listed.errors,
                AllOf(HasSubstr("the list is not complete"), HasSubstr(":" + std::to_string(dead)),
                      HasSubstr("CLUSTERDOWN"), HasSubstr("\"b\"")));
    EXPECT_TRUE(parse(ask(address, {"list", "--json"}).output).at("locks").as_array().empty());
    EXPECT_EQ(ask(address, {"inspect", "b"}).status, 69);
    const auto examined = ask(address, {"doctor"});
    EXPECT_EQ(examined.status, 78);
    EXPECT_THAT(examined.output, AllOf(HasSubstr("cluster_state:fail"), HasSubstr("does not answer")));
    // Servers that go on without the others show what they have.
    for (std::size_t index = 0; index < cluster.size(); ++index) {
        if (cluster.node(index).port() != dead) {
            cluster.node(index).cli({"CONFIG", "SET", "cluster-require-full-coverage", "no"});
        }
    }
    wait_until("the rest is up",
               [&] { return ask(address, {"list"}).output.find("b  ") != std::string::npos; });
}

TEST_F(looking, names_the_kind_of_a_name_that_nobody_holds) {
    const redis_server server;
    const auto state = [&](const std::string& name) {
        const auto text = ask(at(server), {"inspect", name}).output;
        const auto begin = text.find("state ");
        return text.substr(begin, text.find('\n', begin) - begin);
    };
    EXPECT_EQ(state("nothing"), "state     free");
    ASSERT_EQ(ask(at(server), {"run", "pool", "--permits", "3", "--", "true"}).status, 0);
    EXPECT_EQ(state("pool"), "state     a semaphore, 3 of 3 permits free");
    server.cli({"DECRBY", "pool", "1"});  // an RSemaphore's user
    EXPECT_EQ(state("pool"), "state     a semaphore, 2 of 3 permits free");
    server.cli({"SET", "java", "5"});
    EXPECT_THAT(state("java"), AllOf(HasSubstr("a number, 5"), Not(HasSubstr("free"))));
    client store{at(server)};
    ASSERT_TRUE(latch(store, "door").try_set(2));
    EXPECT_EQ(state("door"), "state     a latch, 2 to go");

    const auto json = [&](const std::string& name) {
        return parse(ask(at(server), {"inspect", name, "--json"}).output);
    };
    EXPECT_EQ(json("nothing").at("kind").as_string(), "lock");
    EXPECT_TRUE(json("nothing").at("free").as_bool());
    EXPECT_EQ(json("pool").at("kind").as_string(), "semaphore");
    EXPECT_EQ(json("pool").at("count").to_number<int>(), 2);
    EXPECT_EQ(json("pool").at("limit").to_number<int>(), 3);
    EXPECT_EQ(json("door").at("kind").as_string(), "latch");
    EXPECT_FALSE(json("door").at("free").as_bool());
    EXPECT_EQ(json("java").at("kind").as_string(), "counter");

    // A lock of that name is refused, and told why.
    const auto refused = ask(at(server), {"run", "pool", "--no-wait", "--", "true"});
    EXPECT_EQ(refused.status, 78);
    EXPECT_THAT(refused.errors, AllOf(HasSubstr("semaphores (--permits)"),
                                      HasSubstr("holdfast inspect"), HasSubstr("another name")));
    const auto released = ask(at(server), {"release", "pool", "--force"});
    EXPECT_EQ(released.status, 75);
    EXPECT_THAT(released.errors,
                AllOf(HasSubstr("a semaphore, 2 of 3 permits free"), Not(HasSubstr("free already"))));
}

TEST_F(looking, never_calls_free_what_is_somebody_elses) {
    const redis_server server;
    const std::vector<std::pair<std::vector<std::string>, std::string>> occupants{
        {{"SET", "job", "hello"}, "a string that is no number"},
        {{"RPUSH", "job", "x"}, "a list"},
        {{"SADD", "job", "x"}, "a set"},
        {{"ZADD", "job", "1", "x"}, "a zset"},
        {{"XADD", "job", "*", "x", "y"}, "a stream"},
        {{"HSET", "job", "colour", "red"}, "its hash has other fields"},
    };
    for (const auto& [command, content] : occupants) {
        SCOPED_TRACE(content);
        server.cli({"DEL", "job"});
        server.cli(command);
        for (const auto& arguments : {std::vector<std::string>{"inspect", "job"},
                                      {"release", "job", "--force"},
                                      {"check", "job", "--token", "1"}}) {
            const auto seen = ask(at(server), arguments);
            EXPECT_EQ(seen.status, 78);
            EXPECT_THAT(seen.output + seen.errors, AllOf(HasSubstr(content), Not(HasSubstr("free"))));
        }
    }
}

TEST_F(looking, without_a_permission_to_open_the_store_names_it) {
    const redis_server server{{.acl = "user default on nopass ~* &* +@all\n" + documented_user()}};
    for (const auto* name : {"time", "select"}) {
        server.cli({"ACL", "SETUSER", "locker", std::string{"-"} + name});
        const auto examined = ask(as_locker(server, "redis", "/1"), {"doctor"});
        EXPECT_EQ(examined.status, 77);
        EXPECT_THAT(examined.errors, HasSubstr(std::string{"run: ACL SETUSER locker +"} + name));
        server.cli({"ACL", "SETUSER", "locker", std::string{"+"} + name});
    }
    const std::vector<std::string> patterns{"~redisson_*", "~holdfast_*", "&redisson_*", "&holdfast_*"};
    for (const auto& missing : patterns) {
        std::vector<std::string> user{"ACL",   "SETUSER", "locker",       "resetkeys",
                                      "~job*", "~{job*",  "resetchannels"};
        for (const auto& each : patterns) {
            if (each != missing) {
                user.push_back(each);
            }
        }
        server.cli(user);
        const auto examined = ask(as_locker(server), {"doctor"});
        EXPECT_EQ(examined.status, 78);
        EXPECT_THAT(examined.output, HasSubstr("run: ACL SETUSER locker " + missing + "\n"));
    }
}

/// The marker of --once-per may be on another server than the lock.
TEST_F(looking, at_a_cluster_inspect_shows_a_lock_whose_marker_is_out_of_reach) {
    redis_cluster cluster{{.masters = 2,
                           .replicas_each = 0,
                           .server = {.arguments = {"--cluster-require-full-coverage", "no"}}}};
    const auto server_of = [&](const std::string& name) -> redis_server& {
        return cluster.node_of_slot(
            static_cast<std::uint16_t>(std::stoi(cluster.node(0).cli({"CLUSTER", "KEYSLOT", name}))));
    };
    std::string name = "job";
    while (&server_of(name) == &server_of(name + ":once-per")) {
        name += "x";
    }
    const auto address = "redis+cluster://127.0.0.1:" + std::to_string(server_of(name).port());
    const auto holder = hold(name, {"--store", address});
    auto& silent = server_of(name + ":once-per");
    silent.pause();
    const auto shown = ask(address, {"inspect", name});
    EXPECT_EQ(shown.status, 0) << shown.errors;
    EXPECT_THAT(shown.output, AllOf(HasSubstr("held"), HasSubstr("once-per  unknown: ")));
    silent.resume();
}

TEST_F(looking, at_a_cluster_finds_a_missing_permission_and_slots_that_were_left_open) {
    redis_cluster cluster{{.masters = 2, .replicas_each = 0}};
    auto& from = cluster.node_of_slot(77);
    auto& to = cluster.node_without_slot(77);
    for (auto* server : {&from, &to}) {
        server->cli(
            {"ACL", "SETUSER", "locker", "on", ">secret", "~*", "&*", "+@all", "-cluster|slots"});
    }
    const auto address = as_locker(from, "redis+cluster");
    const auto refused = ask(address, {"doctor"});
    EXPECT_EQ(refused.status, 77);
    EXPECT_THAT(refused.errors, HasSubstr("run: ACL SETUSER locker +cluster|slots"));
    for (auto* server : {&from, &to}) {
        server->cli({"ACL", "SETUSER", "locker", "+cluster|slots", "-cluster|nodes"});
    }
    // What only the doctor asks may be refused.
    EXPECT_THAT(ask(address, {"doctor"}).output, HasSubstr("open slots were not checked"));
    for (const std::string name :
         {"asking", "cluster|info", "spublish", "ssubscribe", "sunsubscribe"}) {
        to.cli({"ACL", "SETUSER", "locker", "-" + name});
        EXPECT_THAT(ask(address, {"doctor"}).output,
                    HasSubstr("run: ACL SETUSER locker +" + name + "\n"));
        to.cli({"ACL", "SETUSER", "locker", "+" + name});
    }

    const auto by_default = "redis+cluster://127.0.0.1:" + std::to_string(from.port());
    EXPECT_THAT(ask(by_default, {"doctor"}).output, Not(HasSubstr("open slots")));
    cluster.begin_migration(77, to);
    const auto examined = ask(by_default, {"doctor"});
    EXPECT_EQ(examined.status, 78);
    EXPECT_THAT(examined.output,
                AllOf(HasSubstr("77 (MIGRATING to 127.0.0.1:" + std::to_string(to.port()) + ")"),
                      HasSubstr("77 (IMPORTING from 127.0.0.1:" + std::to_string(from.port()) + ")"),
                      HasSubstr("redis-cli --cluster fix 127.0.0.1:" + std::to_string(from.port()))));
}

TEST_F(looking, accepts_what_the_documentation_accepts) {
    const redis_server server{{.arguments = {"--appendonly", "yes", "--appendfsync", "everysec"}}};
    const auto examined = ask(at(server), {"doctor"});
    EXPECT_EQ(examined.status, 0) << examined.output;
    EXPECT_THAT(examined.output, HasSubstr("ADVICE   "));
    EXPECT_THAT(examined.output, HasSubstr("appendfsync is everysec"));
    // Members of a quorum vote at once when they are back.
    const auto voted = ask("quorum:" + at(server), {"doctor"});
    EXPECT_EQ(voted.status, 78) << voted.output;
    EXPECT_EQ(ask("quorum:?restart_grace=1m " + at(server), {"doctor"}).status, 0);
    server.cli({"CONFIG", "SET", "appendfsync", "no"});
    EXPECT_EQ(ask(at(server), {"doctor"}).status, 78);
}

TEST_F(looking, finds_as_much_in_json_as_in_text) {
    const redis_server server;
    const auto text = ask(at(server), {"doctor"}).output;
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    const auto object = parse(ask(at(server), {"doctor", "--json"}).output);
    const auto& findings = object.at("findings").as_array();
    EXPECT_EQ(findings.size(), lines) << text;
    EXPECT_THAT(std::string{object.at("message").as_string()},
                HasSubstr(" of " + std::to_string(lines) + " findings "));
    for (const auto& each : findings) {
        EXPECT_THAT(text, HasSubstr(std::string{each.at("text").as_string()} + "\n"));
    }
}

TEST_F(looking, advises_a_restart_grace_to_quorums_that_have_none_and_to_nobody_else) {
    const redis_server server;
    for (const auto* const keeps : {"appendonly is off", "appendfsync is everysec"}) {
        const auto alone = ask(at(server), {"doctor"});
        EXPECT_THAT(alone.output, AllOf(HasSubstr(keeps), Not(HasSubstr("restart_grace"))));
        const auto voted = ask("quorum:" + at(server), {"doctor"});
        EXPECT_EQ(voted.status, 78);
        EXPECT_THAT(voted.output,
                    AllOf(HasSubstr(keeps), HasSubstr(", or give the quorum a restart_grace of")));
        const auto careful = ask("quorum:?restart_grace=1m " + at(server), {"doctor"});
        EXPECT_EQ(careful.status, 0) << careful.output;
        EXPECT_THAT(careful.output, AllOf(HasSubstr(keeps), Not(HasSubstr("or give"))));
        server.cli({"CONFIG", "SET", "appendonly", "yes"});
    }
}

TEST_F(looking, says_which_of_two_stores_on_one_server_it_looks_at) {
    const redis_server server;
    const auto holder = hold_at(at(server, "?prefix=team1:"), "job");
    const auto prefixed = ask(at(server, "?prefix=team1:"), {"inspect", "job"});
    EXPECT_THAT(prefixed.output,
                AllOf(HasSubstr(at(server, "?prefix=team1:")),
                      HasSubstr("uses this Redis server with this prefix\n"), HasSubstr("held")));
    const auto plain = ask(at(server), {"inspect", "job"});
    EXPECT_THAT(plain.output, AllOf(HasSubstr(at(server) + ","), HasSubstr("uses this Redis server\n"),
                                    HasSubstr("free"), Not(HasSubstr("prefix"))));
    const auto refused = ask(at(server, "?prefix=holdfast_"), {"inspect", "job"});
    EXPECT_THAT(refused.errors, HasSubstr(at(server, "?prefix=holdfast_")));
    holder->close_input();
    EXPECT_EQ(holder->wait(), 0);
}

TEST_F(looking, warns_of_tls_that_believes_everybody) {
    const redis_server server{{.arguments = {"--appendonly", "yes", "--appendfsync", "always"},
                               .tls = testing_support::tls_use::server_certificate}};
    const auto address = "rediss://127.0.0.1:" + std::to_string(server.port());
    const auto trusting = ask(address + "/?verify=no", {"doctor"});
    EXPECT_EQ(trusting.status, 78);
    EXPECT_THAT(trusting.output, HasSubstr("verify=no"));
    const auto careful =
        ask(address + "/?ca=" + testing_support::test_certificates().ca.string(), {"doctor"});
    EXPECT_EQ(careful.status, 0) << careful.output << careful.errors;
}

TEST_F(looking, release_that_is_refused_is_no_outage) {
    const redis_server server{{.acl = "user default on nopass ~* &* +@all\n" + documented_user()}};
    const auto holder = hold_at(at(server), "job");
    for (const auto* command : {"del", "hmget", "publish", "set", "evalsha"}) {
        SCOPED_TRACE(command);
        server.cli({"ACL", "SETUSER", "locker", std::string{"-"} + command});
        const auto refused = ask(as_locker(server), {"release", "job", "--force"});
        server.cli({"ACL", "SETUSER", "locker", std::string{"+"} + command});
        EXPECT_EQ(refused.status, 77);
        EXPECT_THAT(refused.errors,
                    HasSubstr(std::string{"this user lacks a permission, +"} + command + "; "));
    }
    server.cli({"ACL", "SETUSER", "locker", "-del"});
    EXPECT_THAT(ask(as_locker(server), {"release", "job", "--force"}).errors,
                HasSubstr("\"job\" was left alone, and "));
    holder->close_input();
    EXPECT_EQ(holder->wait(), 0);
}

TEST_F(looking, takes_no_address_for_a_name) {
    const std::vector<words> lines{{"list", "redis://:s3cret@host"},
                                   {"list", "redis:s3cret@host"},
                                   {"list", "--redis://:s3cret@host"},
                                   {"list", "job", "rediss+sentinel://u:s3cret@host/service"},
                                   {"inspect", "REDIS://:s3cret@host"},
                                   {"release", "redis+cluster://:s3cret@host", "--force"},
                                   {"check", "quorum:redis://:s3cret@a redis://b", "--token", "1"},
                                   {"check", "job", "--token", "redis://:s3cret@host"},
                                   {"doctor", "redis://:s3cret@host"},
                                   {"run", "redis://:s3cret@host", "--", "true"},
                                   {"run", "job", "redis://:s3cret@host"},
                                   {"help", "redis://:s3cret@host"},
                                   {"redis://:s3cret@host"}};
    for (auto line : lines) {
        SCOPED_TRACE(line.front() + " " + line.back());
        const auto refused = finish(line);
        EXPECT_EQ(refused->wait(), 64);
        EXPECT_THAT(refused->errors(), Not(HasSubstr("s3cret")));
        line.insert(line.begin() + 1, "--json");
        const auto as_json = finish(line);
        EXPECT_THAT(as_json->output() + as_json->errors(), Not(HasSubstr("s3cret")));
    }
    EXPECT_THAT(finish({"list", "redis://:s3cret@host"})->errors(), HasSubstr("--store ADDRESS"));
    // Names like these are somebody's.
    for (const auto* name : {"redis:backup", "http://host/page", "redis", "mail@host"}) {
        EXPECT_EQ(finish({"inspect", name})->wait(), 0) << name;
    }
}

}  // namespace
}  // namespace holdfast::cli::testing
