#include <algorithm>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <holdfast/testing/blocking_engine.hpp>
#include <integration/redis/redis_stage.hpp>
#include <redis/layout/keys.hpp>
#include <redis/permissions.hpp>

/// Every operation, by a user who lacks one of the permissions that docs/redis.md asks for, and on a
/// server that is full of other people's keys.
namespace holdfast::testing {

namespace {

/// The line that docs/redis.md tells operators to use.
std::string documented_user() {
    std::ifstream page{HOLDFAST_SOURCE_DIR "/docs/redis.md"};
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("user locker ")) {
            return line;
        }
    }
    throw std::runtime_error{"docs/redis.md has no ACL line"};
}

/// The commands that are sent, or run by scripts, once a connection is there.
std::vector<std::string> commands_in_use() {
    const std::set<std::string> of_connections{
        "+auth",        "+select",     "+time",         "+role", "+asking",  "+subscribe",
        "+unsubscribe", "+ssubscribe", "+sunsubscribe", "+ping", "+spublish"};
    std::vector<std::string> all;
    std::istringstream line{documented_user()};
    for (std::string word; line >> word;) {
        const bool command = word.starts_with('+') && word.find('|') == std::string::npos;
        if (command && !of_connections.contains(word)) {
            all.push_back(word.substr(1));
        }
    }
    return all;
}

/// All that the engine can be asked to do, by a user who may do what docs/redis.md says.
class redis_operations : public redis_stage {
protected:
    redis_operations() : redis_stage{{.acl = "user default off\n" + documented_user()}} {}

    struct operation {
        std::string name;
        /// With all permissions.
        std::function<void()> prepare;
        /// With one missing.
        std::function<failure()> run;
        /// Of a release that was refused: whether another has the lock when it is sent again.
        std::function<bool()> gives_back{};
    };

    [[nodiscard]] owner_id owner(std::int64_t number) const {
        auto made = identity_.client;
        made.sequence = number;
        return made;
    }
    [[nodiscard]] engines::acquire_request claim(lock_kind kind, claim_mode mode,
                                                 std::int64_t who = 1) const {
        engines::acquire_request request;
        request.name = "stock";
        request.mode = mode;
        request.kind = kind;
        request.limit = mode == claim_mode::permit ? 1 : 0;
        request.owner = owner(who);
        request.ttl = 60s;
        request.queue = true;
        return request;
    }

    /// All that can be done with one kind of lock.
    void add_operations(std::vector<operation>& to, const std::string& kind, lock_kind locks,
                        claim_mode mode) {
        const auto take = [=, this](std::int64_t who) {
            return store_.acquire(claim(locks, mode, who)).error;
        };
        const auto leave = [=, this](std::int64_t who, std::chrono::milliseconds linger) {
            return store_.release({"stock", mode, owner(who), linger, locks});
        };
        const auto release = [=](std::int64_t who, std::chrono::milliseconds linger) {
            const auto reply = leave(who, linger);
            const bool gone = reply.result == engines::release_reply::outcome::gone;
            return gone ? failure{errc::lost, "what was held is gone"} : reply.error;
        };
        const auto gives_back = [=, this] {
            EXPECT_FALSE(leave(1, 0ms).error);
            static_cast<void>(leave(2, 0ms));
            return store_.acquire(claim(locks, mode, 3)).result ==
                   engines::acquire_reply::outcome::granted;
        };
        const auto held = [=] { EXPECT_FALSE(take(1)); };
        const auto nothing = [] {};
        to.push_back({kind + " acquire", nothing, [=] { return take(1); }});
        to.push_back({kind + " acquire again", held, [=] { return take(1); }});
        to.push_back({kind + " acquire what another has", held, [=] { return take(2); }});
        to.push_back({kind + " release", held, [=] { return release(1, 0ms); }, gives_back});
        to.push_back(
            {kind + " release what is not held", nothing, [=] { return leave(1, 0ms).error; }});
        to.push_back({kind + " linger", held, [=] { return release(1, 60s); }});
        to.push_back({kind + " release while another waits",
                      [=] {
                          held();
                          static_cast<void>(take(2));
                      },
                      [=] { return release(1, 0ms); }, gives_back});
        to.push_back({kind + " renew", held, [=, this] {
                          return store_.renew({{"stock", mode, owner(1), 60s, locks}}).front().error;
                      }});
        to.push_back({kind + " inspect", held, [this] { return store_.inspect("stock").error; }});
        to.push_back({kind + " list", held, [this] { return store_.list({}).error; }});
        to.push_back({kind + " revoke",
                      [=, this] { token_ = store_.acquire(claim(locks, mode)).first_token; },
                      [this] {
                          return store_.revoke({"stock", owner(1), token_, "me", "why"}).error;
                      }});
    }

    [[nodiscard]] std::vector<operation> operations() {
        std::vector<operation> all;
        add_operations(all, "mutex", lock_kind::mutex, claim_mode::exclusive);
        add_operations(all, "fair", lock_kind::fair_mutex, claim_mode::exclusive);
        add_operations(all, "write", lock_kind::shared_mutex, claim_mode::exclusive);
        add_operations(all, "read", lock_kind::shared_mutex, claim_mode::shared);
        add_operations(all, "permit", lock_kind::semaphore, claim_mode::permit);
        const auto convert = [this](claim_mode to) {
            return store_.acquire(claim(lock_kind::shared_mutex, to)).error;
        };
        const auto hold = [=](claim_mode mode) { return [=] { EXPECT_FALSE(convert(mode)); }; };
        all.push_back(
            {"upgrade", hold(claim_mode::shared), [=] { return convert(claim_mode::exclusive); }});
        all.push_back(
            {"downgrade", hold(claim_mode::exclusive), [=] { return convert(claim_mode::shared); }});
        all.push_back({"acquire together", [] {},
                       [this] {
                           auto other = claim(lock_kind::mutex, claim_mode::exclusive, 2);
                           other.name = "other";
                           return store_
                               .acquire_all({claim(lock_kind::mutex, claim_mode::exclusive), other})
                               .error;
                       }});
        using of_latch = engines::latch_request::operation;
        const auto latch = [this](of_latch what) {
            return store_.latch({what, "latch", 2, 60s, owner(++last_latch_)}).error;
        };
        const auto set = [=] { EXPECT_FALSE(latch(of_latch::set)); };
        all.push_back({"latch set", [] {}, [=] { return latch(of_latch::set); }});
        all.push_back({"latch count down", set, [=] { return latch(of_latch::count_down); }});
        all.push_back({"latch read", set, [=] { return latch(of_latch::read); }});
        return all;
    }

    engines::client_identity identity_{engines::make_identity()};
    blocking_engine store_{
        engines::open("redis://locker:secret@127.0.0.1:" + std::to_string(server_.port()), identity_)};
    redis_client admin_{server_.connect()};
    fencing_token token_{};
    std::int64_t last_latch_{1000};
};

class redis_permissions : public redis_operations {
protected:
    /// Locks, lines and our own notes that stay for ever.
    [[nodiscard]] std::set<std::string> keys_without_expiry() {
        std::set<std::string> found;
        for (const auto& key : admin_.command({"KEYS", "*"}).items) {
            if (admin_.command({"PTTL", key.text}).integer == -1) {
                found.insert(key.text);
            }
        }
        return found;
    }
    /// All keys and what is in them; tokens may be skipped, and cards are written now and then.
    [[nodiscard]] std::string contents() {
        std::set<std::string> all;
        for (const auto& key : admin_.command({"KEYS", "*"}).items) {
            if (!key.text.starts_with("holdfast_token") && !key.text.starts_with("holdfast_card")) {
                const auto type = admin_.command({"TYPE", key.text}).text;
                auto content = type == "hash"   ? server_.cli({"HGETALL", key.text})
                               : type == "zset" ? server_.cli({"ZRANGE", key.text, "0", "-1"})
                               : type == "list" ? server_.cli({"LRANGE", key.text, "0", "-1"})
                                                : server_.cli({"GET", key.text});
                all.insert(key.text + ": " + std::move(content));
            }
        }
        std::string text;
        for (const auto& each : all) {
            text += each + "\n";
        }
        return text;
    }
    /// A permission that is missing is named. What one may not look for is not lost for that.
    static void expect_named(const failure& why, const std::string& command) {
        if (!why) {
            return;
        }
        EXPECT_EQ(why.code, errc::unauthorised) << why.detail;
        const auto advice = why.detail.substr(0, why.detail.find(';')) + " ";
        EXPECT_NE(advice.find(" +" + command + " "), std::string::npos) << why.detail;
    }
};

TEST_F(redis_permissions, one_that_is_missing_is_named_and_leaves_nothing_for_ever) {
    for (const auto& each : operations()) {
        admin_.command({"FLUSHALL"});
        each.prepare();
        auto usual = keys_without_expiry();
        EXPECT_FALSE(each.run()) << each.name;
        usual.merge(keys_without_expiry());
        for (const auto& command : commands_in_use()) {
            SCOPED_TRACE(each.name + " without " + command);
            admin_.command({"FLUSHALL"});
            each.prepare();
            const auto before = contents();
            const auto lock_before = server_.cli({"HGETALL", "stock"});
            admin_.command({"ACL", "SETUSER", "locker", "-" + command});
            const auto why = each.run();
            admin_.command({"ACL", "SETUSER", "locker", "+" + command});
            expect_named(why, command);
            // What is given back may be so only in part; and what is left of a place in
            // line nobody waits for.
            if (why && each.gives_back) {
                EXPECT_TRUE(each.gives_back()) << contents();
            } else if (why && each.name.starts_with("fair acquire")) {
                EXPECT_EQ(server_.cli({"HGETALL", "stock"}), lock_before)
                    << "after a refusal nothing is held";
            } else if (why) {
                EXPECT_EQ(contents(), before) << "a refusal means that nothing was changed";
            }
            for (const auto& key : keys_without_expiry()) {
                EXPECT_TRUE(usual.contains(key)) << key << " stays: " << server_.cli({"TYPE", key});
            }
        }
    }
}

TEST_F(redis_permissions, keys_may_be_narrowed_to_the_names_as_documented) {
    const std::vector<std::string> keys{"~stock*", "~{stock*", "~other*",     "~{other*",
                                        "~latch*", "~{latch*", "~redisson_*", "~holdfast_*"};
    std::vector<std::string> words{"ACL", "SETUSER", "locker", "resetkeys"};
    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), {"resetchannels", "&redisson_*", "&holdfast_*"});
    for (const auto& each : operations()) {
        SCOPED_TRACE(each.name);
        admin_.command({"ACL", "SETUSER", "locker", "allkeys", "allchannels"});
        admin_.command({"FLUSHALL"});
        each.prepare();
        admin_.command(words);
        const auto why = each.run();
        EXPECT_FALSE(why) << why.detail;
    }
}

class redis_renewal_together : public redis_operations,
                               public ::testing::WithParamInterface<std::pair<lock_kind, claim_mode>> {
protected:
    [[nodiscard]] failure hold(const std::string& name) {
        auto request = claim(GetParam().first, GetParam().second);
        request.name = name;
        return store_.acquire(request).error;
    }
    [[nodiscard]] engines::renew_request renewal_of(const std::string& name) const {
        return {name, GetParam().second, owner(1), 60s, GetParam().first};
    }
};

TEST_P(redis_renewal_together, is_not_refused_for_a_name_that_is_not_allowed_any_more) {
    for (const auto* name : {"private", "stock", "stock2"}) {
        ASSERT_FALSE(hold(name));
    }
    admin_.command({"ACL", "SETUSER", "locker", "resetkeys", "~stock*", "~{stock*",
                    "~redisson_*:{stock*", "~holdfast_*:{stock*", "~holdfast_card*"});
    const auto replies =
        store_.renew({renewal_of("stock"), renewal_of("private"), renewal_of("stock2")});
    ASSERT_EQ(replies.size(), 3U);
    EXPECT_EQ(replies[0].result, engines::renew_reply::outcome::renewed) << replies[0].error.detail;
    EXPECT_EQ(replies[1].error.code, errc::unauthorised) << replies[1].error.detail;
    EXPECT_EQ(replies[2].result, engines::renew_reply::outcome::renewed) << replies[2].error.detail;
}

TEST_P(redis_renewal_together, is_not_refused_for_a_key_of_another_type) {
    for (const std::string key : {"stock", "{stock}:timeout", "holdfast_holds:{stock}"}) {
        SCOPED_TRACE(key);
        admin_.command({"FLUSHALL"});
        ASSERT_FALSE(hold("stock"));
        ASSERT_FALSE(hold("other"));
        admin_.command({"DEL", key});
        admin_.command({"SET", key, "somebody else's"});
        const auto replies = store_.renew({renewal_of("stock"), renewal_of("other")});
        ASSERT_EQ(replies.size(), 2U);
        EXPECT_EQ(replies[1].result, engines::renew_reply::outcome::renewed) << replies[1].error.detail;
        // Of a permit nobody knows the ids then. Of a lock only the tokens are forgotten.
        if (key.starts_with("holdfast_holds") && GetParam().second != claim_mode::permit) {
            EXPECT_EQ(replies[0].result, engines::renew_reply::outcome::renewed)
                << replies[0].error.detail;
        }
    }
}

/// All that a client holds is renewed together, also what is on several servers.
TEST(redis_renewal_in_a_cluster, is_not_held_up_by_a_server_that_hangs) {
    testing_support::redis_cluster cluster{{.masters = 2, .replicas_each = 0, .node_timeout = 60s}};
    client holder{"redis+cluster://127.0.0.1:" + std::to_string(cluster.node(0).port())};
    std::vector<lease> held;
    std::vector<lease> hung;
    for (int number = 0; number < 8; ++number) {
        const auto name = "lock-" + std::to_string(number);
        const bool hangs = &cluster.node_of_slot(engines::redis::slot_of(name)) == &cluster.node(1);
        (hangs ? hung : held).push_back(mutex{holder, name, {.ttl = 3s}}.acquire());
    }
    ASSERT_FALSE(held.empty());
    ASSERT_FALSE(hung.empty());
    cluster.node(1).pause();
    ASSERT_TRUE(eventually([&] { return !hung.back(); }));
    const auto later = clock::now() + 2s;
    for (const auto& each : held) {
        static_cast<void>(eventually([&] { return !each || each.valid_until() > later; }));
        EXPECT_TRUE(each) << each.name() << ": " << each.loss_detail();
    }
    cluster.node(1).resume();
}

INSTANTIATE_TEST_SUITE_P(kinds, redis_renewal_together,
                         ::testing::Values(std::pair{lock_kind::mutex, claim_mode::exclusive},
                                           std::pair{lock_kind::fair_mutex, claim_mode::exclusive},
                                           std::pair{lock_kind::shared_mutex, claim_mode::exclusive},
                                           std::pair{lock_kind::shared_mutex, claim_mode::shared},
                                           std::pair{lock_kind::mixed_mutex, claim_mode::shared},
                                           std::pair{lock_kind::semaphore, claim_mode::permit}));

TEST_F(redis_permissions, the_documented_line_is_what_the_doctor_asks_for) {
    std::set<std::string> documented;
    std::istringstream line{documented_user()};
    for (std::string word; line >> word;) {
        if (word.starts_with('+')) {
            documented.insert(word.substr(1));
        }
    }
    std::set<std::string> tried;
    for (const auto& each : engines::redis::permissions()) {
        tried.emplace(each.name);
    }
    EXPECT_EQ(tried, documented);
}

TEST_F(redis_permissions, the_doctor_names_what_is_missing_and_leaves_nothing) {
    client store{"redis://locker:secret@127.0.0.1:" + std::to_string(server_.port())};
    const auto said = [&store](const std::string& word) {
        std::string all;
        for (const auto& each : store.examine()) {
            const bool fact = each.level == finding::severity::fact;
            all += fact ? "" : each.text + "\n";
        }
        return all.find(word) != std::string::npos ? "" : "no \"" + word + "\" in:\n" + all;
    };
    const auto before = admin_.command({"KEYS", "*"}).items.size();
    EXPECT_EQ(said("timeout and tcp-keepalive were not checked"), "");
    EXPECT_NE(said("lacks permissions"), "") << "nothing is missing";
    const std::set<std::string> of_connections{"auth",     "select",        "time",
                                               "spublish", "ssubscribe",    "sunsubscribe",
                                               "asking",   "cluster|slots", "cluster|info"};
    for (const auto& each : engines::redis::permissions()) {
        const std::string name{each.name};
        if (of_connections.contains(name)) {
            continue;
        }
        SCOPED_TRACE(name);
        admin_.command({"ACL", "SETUSER", "locker", "-" + name});
        const auto missed =
            name == "info" ? said("INFO was refused") : said("ACL SETUSER locker +" + name);
        EXPECT_EQ(missed, "");
        admin_.command({"ACL", "SETUSER", "locker", "+" + name});
    }
    admin_.command({"ACL", "SETUSER", "locker", "resetkeys", "~stock:*", "resetchannels"});
    EXPECT_EQ(said("ACL SETUSER locker ~redisson_* ~holdfast_* &redisson_* &holdfast_*"), "");
    admin_.command({"ACL", "SETUSER", "locker", "allkeys", "allchannels"});
    EXPECT_NE(said("lacks permissions"), "");
    // A key that could not be removed ends by itself.
    for (const auto& key : admin_.command({"KEYS", "holdfast_doctor*"}).items) {
        EXPECT_GT(admin_.command({"PTTL", key.text}).integer, 0) << key.text;
    }
    admin_.command({"DEL", "holdfast_doctor"});
    EXPECT_EQ(admin_.command({"KEYS", "*"}).items.size(), before);
}

TEST_F(redis_permissions, a_client_that_may_not_subscribe_says_so_once_and_works) {
    admin_.command({"ACL", "SETUSER", "locker", "-subscribe"});
    const auto events = std::make_shared<recorder>();
    client store{"redis://locker:secret@127.0.0.1:" + std::to_string(server_.port()),
                 {.events = events}};
    client other{"redis://locker:secret@127.0.0.1:" + std::to_string(server_.port())};
    mutex stock{store, "stock"};
    mutex same{other, "stock"};
    auto held = std::optional{same.acquire()};
    EXPECT_FALSE(stock.try_acquire_for(100ms));
    ASSERT_TRUE(events->wait_for(event_kind::degraded));
    held.reset();
    EXPECT_TRUE(stock.try_acquire_for(10s));
    EXPECT_EQ(events->count(event_kind::degraded), 1U);
}

TEST_F(redis_permissions, keys_and_channels_that_are_not_allowed_are_named) {
    admin_.command({"ACL", "SETUSER", "locker", "resetkeys", "~stock"});
    const auto of_key = store_.acquire(claim(lock_kind::mutex, claim_mode::exclusive)).error;
    EXPECT_EQ(of_key.code, errc::unauthorised) << of_key.detail;
    EXPECT_NE(of_key.detail.find("holdfast_holds:{stock}"), std::string::npos) << of_key.detail;
    admin_.command({"ACL", "SETUSER", "locker", "allkeys", "resetchannels"});
    const auto of_channel =
        store_.latch({engines::latch_request::operation::set, "stock", 2, 60s, owner(1)}).error;
    EXPECT_EQ(of_channel.code, errc::unauthorised) << of_channel.detail;
    EXPECT_NE(of_channel.detail.find("redisson_countdownlatch__channel__{stock}"), std::string::npos)
        << of_channel.detail;
}

TEST_F(redis_permissions, what_nobody_can_be_told_of_is_given_back_all_the_same) {
    for (const auto& each : operations()) {
        if (each.name.find("release") == std::string::npos) {
            continue;
        }
        for (const std::string without : {"-publish", "resetchannels"}) {
            SCOPED_TRACE(each.name + ", " + without);
            admin_.command({"FLUSHALL"});
            each.prepare();
            admin_.command({"ACL", "SETUSER", "locker", without});
            const auto why = each.run();
            admin_.command({"ACL", "SETUSER", "locker", "+publish", "allchannels"});
            EXPECT_FALSE(why) << why.detail;
        }
    }
}

TEST_F(redis_permissions, a_client_that_may_not_publish_says_so_once_and_works) {
    admin_.command({"ACL", "SETUSER", "peer", "on", ">secret", "~*", "&*", "+@all"});
    const auto events = std::make_shared<recorder>();
    const auto at_server = "secret@127.0.0.1:" + std::to_string(server_.port());
    client store{"redis://locker:" + at_server, {.events = events}};
    client other{"redis://peer:" + at_server, {.events = events}};
    admin_.command({"ACL", "SETUSER", "locker", "-publish"});
    for (int round = 0; round < 2; ++round) {
        auto held = mutex{store, "stock"}.acquire();
        auto waiting = in_background([&] { return mutex{other, "stock"}.try_acquire_for(10s); });
        ASSERT_TRUE(eventually([&] { return other.inspect("stock").waiters.value_or(0) > 0; }));
        EXPECT_EQ(held.release(), release_outcome::released);
        EXPECT_TRUE(waiting.get().has_value()) << "it asks once a second";
    }
    ASSERT_TRUE(events->wait_for(event_kind::degraded));
    EXPECT_EQ(events->count(event_kind::degraded), 1U);
    EXPECT_EQ(events->count(event_kind::release_unconfirmed), 0U);
    const auto told = events->last(event_kind::degraded).error;
    EXPECT_EQ(told.code, errc::unauthorised);
    EXPECT_NE(told.detail.find("+publish"), std::string::npos) << told.detail;
}

class redis_neighbours : public redis_operations {
protected:
    /// Somebody else's key of every type, under names that locks and latches are asked for by.
    [[nodiscard]] std::vector<std::function<void(const std::string& key)>> occupants() {
        const auto with = [this](std::vector<std::string> words) {
            return [this, words = std::move(words)](const std::string& key) {
                auto command = words;
                command.insert(command.begin() + 1, key);
                EXPECT_FALSE(admin_.command(command).is_error());
            };
        };
        return {with({"SET", "precious"}),
                with({"RPUSH", "precious"}),
                with({"SADD", "precious"}),
                with({"ZADD", "1", "precious"}),
                with({"HSET", "precious", "x"}),
                with({"XADD", "*", "precious", "x"}),
                with({"SETBIT", "70000", "1"}),
                with({"HSET", "mode", "precious"}),
                with({"HSET", "user:42", "1"}),
                with({"HSET", "mode", "write", "precious", "1"}),
                with({"HSET", owner(9).text(), "precious"}),
                with({"HSET", owner(9).text(), "1", owner(8).text(), "1"}),
                with({"HSET", "mode", "read", "precious", "1"}),
                with({"HSET", "mode", "read"}),
                with({"HSET", "mode", "write"}),
                with({"HSET", "mode", "write", owner(9).text(), "1"}),
                with({"HSET", "mode", "read", owner(9).text() + ":write", "1"}),
                with({"HSET", owner(9).text() + ":write", "1"})};
    }
    void clear_locks() {
        for (const auto& key : admin_.command({"KEYS", "*{*}*"}).items) {
            admin_.command({"DEL", key.text});
        }
        admin_.command({"DEL", "stock", "other", "latch"});
    }
    /// That the operation keeps no server busy beside a copy of `precious` at `key`.
    void expect_quick(const operation& each, const std::string& key, bool held) {
        // On a machine that has other things to do, once may be by chance.
        std::size_t slow = 0;
        for (int attempt = 0; attempt < 3 && slow == static_cast<std::size_t>(attempt); ++attempt) {
            admin_.command({"CONFIG", "SET", "slowlog-log-slower-than", "-1"});
            clear_locks();
            if (held) {
                each.prepare();
            }
            if (admin_.command({"COPY", "precious", key}).integer == 0) {
                return;  // the lock itself needs this key
            }
            admin_.command({"CONFIG", "SET", "slowlog-log-slower-than", "5000"});
            admin_.command({"SLOWLOG", "RESET"});
            static_cast<void>(each.run());
            slow += admin_.command({"SLOWLOG", "LEN"}).integer > 0 ? 1 : 0;
        }
        EXPECT_LT(slow, 3U) << "it takes more than 5 ms:\n"
                            << server_.cli({"SLOWLOG", "GET"}).substr(0, 600);
    }
    [[nodiscard]] std::string content_of(const std::string& key) {
        return admin_.command({"DUMP", key}).text;
    }
    [[nodiscard]] std::vector<std::string> contents_of(const std::vector<std::string>& keys) {
        std::vector<std::string> all;
        for (const auto& key : keys) {
            all.push_back(content_of(key));
        }
        return all;
    }
};

TEST_F(redis_neighbours, what_somebody_else_keeps_under_a_locks_name_is_not_touched) {
    const auto occupy = occupants();
    for (const auto& each : operations()) {
        for (std::size_t type = 0; type < occupy.size(); ++type) {
            SCOPED_TRACE(each.name + ", type " + std::to_string(type));
            admin_.command({"FLUSHALL"});
            for (const auto* key : {"stock", "latch"}) {
                occupy[type](key);
            }
            const auto stock = content_of("stock");
            const auto latch = content_of("latch");
            const auto why = each.run();
            EXPECT_NE(why.code, errc::store_error) << why.detail;
            EXPECT_NE(why.code, errc::outcome_unknown) << why.detail;
            const bool asks = each.name.find("acquire") != std::string::npos ||
                              each.name.find("inspect") != std::string::npos ||
                              each.name.find("latch") != std::string::npos;
            if (asks) {
                EXPECT_EQ(why.code, errc::wrong_kind) << why.detail;
            }
            EXPECT_EQ(content_of("stock"), stock);
            EXPECT_EQ(content_of("latch"), latch);
        }
    }
}

/// An operation needs what is in a key beside the lock's own, or does without it.
TEST_F(redis_neighbours, what_somebody_else_keeps_beside_a_lock_is_named) {
    const std::vector<std::string> beside{"holdfast_holds:{stock}",
                                          "holdfast_wishes:{stock}",
                                          "holdfast_turn:{stock}",
                                          "holdfast_waiters:{stock}",
                                          "holdfast_revoked:{stock}",
                                          "redisson_lock_queue:{stock}",
                                          "{stock}:timeout",
                                          "redisson_lock_timeout:{stock}",
                                          "holdfast_token",
                                          "{stock}:" + owner(1).text() + ":rwlock_timeout:1",
                                          "holdfast_is_latch:{stock}",
                                          "holdfast_is_latch:{latch}",
                                          "holdfast_holds:{latch}"};
    const auto occupy = occupants();
    for (const auto& each : operations()) {
        for (const auto& key : beside) {
            for (std::size_t type = 0; type < 6; ++type) {
                SCOPED_TRACE(each.name + ", " + key + ", type " + std::to_string(type));
                admin_.command({"FLUSHALL"});
                each.prepare();
                admin_.command({"DEL", key});
                occupy[type](key);
                const auto before = contents_of({key, "stock", "latch"});
                const auto why = each.run();
                EXPECT_TRUE(!why || why.code == errc::wrong_kind || why.code == errc::lost)
                    << why.detail;
                if (why.code == errc::wrong_kind) {
                    const bool named = why.detail.find(key) != std::string::npos ||
                                       why.detail.find("ends in :timeout") != std::string::npos;
                    EXPECT_TRUE(named) << why.detail;
                    EXPECT_EQ(contents_of({key, "stock", "latch"}), before);
                }
            }
        }
    }
}

/// What is under the name itself, however large, is no lock, and is not read.
TEST_F(redis_neighbours, a_large_key_under_a_locks_name_keeps_no_server_busy) {
    const std::vector<std::string> large{
        "for i = 1, 30000 do redis.call('HSET', KEYS[1], i, 'x') end",
        "for i = 1, 30000 do redis.call('HSET', KEYS[1], i, 'x', 'mode', 'read') end",
        "redis.call('HSET', KEYS[1], 'x', string.rep('x', 10000000))",
        "for i = 1, 30000 do redis.call('RPUSH', KEYS[1], i) end",
        "for i = 1, 30000 do redis.call('ZADD', KEYS[1], i, i) end",
        "for i = 1, 30000 do redis.call('SADD', KEYS[1], i) end",
        "redis.call('SETRANGE', KEYS[1], 10000000, 'x')"};
    for (const auto& script : large) {
        SCOPED_TRACE(script);
        admin_.command({"FLUSHALL"});
        admin_.command({"CONFIG", "SET", "slowlog-log-slower-than", "-1"});
        ASSERT_FALSE(admin_.command({"EVAL", script, "1", "stock"}).is_error());
        ASSERT_FALSE(admin_.command({"EVAL", script, "1", "latch"}).is_error());
        admin_.command({"CONFIG", "SET", "slowlog-log-slower-than", "5000"});
        for (const auto& each : operations()) {
            // On a machine that has other things to do, once may be by chance.
            std::size_t slow = 0;
            for (int attempt = 0; attempt < 3 && slow == static_cast<std::size_t>(attempt); ++attempt) {
                admin_.command({"SLOWLOG", "RESET"});
                static_cast<void>(each.run());
                slow += admin_.command({"SLOWLOG", "LEN"}).integer > 0 ? 1 : 0;
            }
            EXPECT_LT(slow, 3U) << each.name << " takes more than 5 ms:\n"
                                << server_.cli({"SLOWLOG", "GET"}).substr(0, 2000);
        }
    }
}

/// The same beside a lock that is free, and beside one that is held.
TEST_F(redis_neighbours, a_large_key_beside_a_lock_keeps_no_server_busy) {
    const std::vector<std::pair<std::string, std::string>> large{
        {"holdfast_holds:{stock}", "'HSET', KEYS[1], i, 'x'"},
        {"holdfast_wishes:{stock}", "'RPUSH', KEYS[1], i"},
        {"holdfast_waiters:{stock}", "'HSET', KEYS[1], i, 'x'"},
        {"redisson_lock_timeout:{stock}", "'ZADD', KEYS[1], i, i"}};
    for (const auto& [key, command] : large) {
        admin_.command({"CONFIG", "SET", "slowlog-log-slower-than", "-1"});
        admin_.command({"FLUSHALL"});
        const auto fill = "for i = 1, 60000 do redis.call(" + command + ") end";
        ASSERT_FALSE(admin_.command({"EVAL", fill, "1", "precious"}).is_error());
        for (const auto& each : operations()) {
            for (const bool held : {false, true}) {
                SCOPED_TRACE(each.name + (held ? ", held, " : ", free, ") + key);
                expect_quick(each, key, held);
            }
        }
    }
}

/// What others keep must cost locks nothing: a server runs one script at a time.
TEST_F(redis_neighbours, a_full_server_is_not_kept_busy_by_any_script) {
    const std::string fill{R"(
        for i = 1, 20000 do
            redis.call('SET', 'neighbour:' .. i, 'x')
            redis.call('HSET', 'neighbours:hash', i, 'x')
            redis.call('HSET', 'neighbours:modes', i, 'x', 'mode', 'read')
            redis.call('ZADD', 'neighbours:sorted', i, i)
            redis.call('RPUSH', 'neighbours:list', i)
        end)"};
    ASSERT_FALSE(admin_.command({"EVAL", fill, "0"}).is_error());
    admin_.command({"CONFIG", "SET", "slowlog-log-slower-than", "10000"});
    for (const auto& each : operations()) {
        // On a machine that has other things to do, once may be by chance.
        std::size_t slow = 0;
        for (int attempt = 0; attempt < 3 && slow == static_cast<std::size_t>(attempt); ++attempt) {
            clear_locks();
            each.prepare();
            admin_.command({"SLOWLOG", "RESET"});
            EXPECT_FALSE(each.run()) << each.name;
            slow += admin_.command({"SLOWLOG", "LEN"}).integer > 0 ? 1 : 0;
        }
        EXPECT_LT(slow, 3U) << each.name << " takes more than 10 ms:\n"
                            << server_.cli({"SLOWLOG", "GET"}).substr(0, 2000);
    }
}

}  // namespace

}  // namespace holdfast::testing
