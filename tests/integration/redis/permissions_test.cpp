#include <algorithm>
#include <cctype>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <holdfast/testing/blocking_engine.hpp>
#include <integration/redis/redis_stage.hpp>

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

[[nodiscard]] std::string in_lower_case(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char each) { return static_cast<char>(std::tolower(each)); });
    return text;
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
        const auto held = [=] { EXPECT_FALSE(take(1)); };
        const auto nothing = [] {};
        to.push_back({kind + " acquire", nothing, [=] { return take(1); }});
        to.push_back({kind + " acquire again", held, [=] { return take(1); }});
        to.push_back({kind + " acquire what another has", held, [=] { return take(2); }});
        to.push_back({kind + " release", held, [=] { return release(1, 0ms); }});
        to.push_back(
            {kind + " release what is not held", nothing, [=] { return leave(1, 0ms).error; }});
        to.push_back({kind + " linger", held, [=] { return release(1, 60s); }});
        to.push_back({kind + " release while another waits",
                      [=] {
                          held();
                          static_cast<void>(take(2));
                      },
                      [=] { return release(1, 0ms); }});
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
    /// A permission that is missing is named. What one may not look for is not lost for that.
    static void expect_named(const failure& why, const std::string& command) {
        if (!why) {
            return;
        }
        EXPECT_EQ(why.code, errc::unauthorised) << why.detail;
        EXPECT_NE(in_lower_case(why.detail).find(command), std::string::npos) << why.detail;
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
            admin_.command({"ACL", "SETUSER", "locker", "-" + command});
            const auto why = each.run();
            admin_.command({"ACL", "SETUSER", "locker", "+" + command});
            expect_named(why, command);
            for (const auto& key : keys_without_expiry()) {
                EXPECT_TRUE(usual.contains(key)) << key << " stays: " << server_.cli({"TYPE", key});
            }
        }
    }
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
        return {with({"SET", "precious"}),       with({"RPUSH", "precious"}),
                with({"SADD", "precious"}),      with({"ZADD", "1", "precious"}),
                with({"HSET", "precious", "x"}), with({"XADD", "*", "precious", "x"}),
                with({"SETBIT", "70000", "1"}),  with({"HSET", "mode", "precious"})};
    }
    void clear_locks() {
        for (const auto& key : admin_.command({"KEYS", "*{*}*"}).items) {
            admin_.command({"DEL", key.text});
        }
        admin_.command({"DEL", "stock", "other", "latch"});
    }
    [[nodiscard]] std::string content_of(const std::string& key) {
        return admin_.command({"DUMP", key}).text;
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
            EXPECT_EQ(content_of("stock"), stock);
            EXPECT_EQ(content_of("latch"), latch);
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
