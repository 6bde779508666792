#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <redis/layout/keys.hpp>
#include <redis/scripts.hpp>
#include <support/redis_servers.hpp>

/// The Lua scripts against a real server, one call at a time.
namespace holdfast::engines::redis {

using testing_support::redis_client;
using testing_support::redis_reply;
using testing_support::redis_server;
using testing_support::wait_until;
using words = std::vector<std::string>;
using numbers = std::vector<std::int64_t>;

inline const std::string alice = "a1a1a1a1-0000-4000-8000-00000000000a:1";
inline const std::string bob = "b2b2b2b2-0000-4000-8000-00000000000b:22";
inline const std::string carol = "c3c3c3c3-0000-4000-8000-00000000000c:-3";
/// A thread of a Java program.
inline const std::string java = "9f0c1e52-7d1b-4c54-9c0a-5f6e7d8c9b0a:47";

inline constexpr std::int64_t long_ttl = 60'000;
inline constexpr std::int64_t short_ttl = 40;
inline const std::string since = "1700000000123";

[[nodiscard]] inline std::string text_of(std::int64_t number) {
    return std::to_string(number);
}

/// The integers of an array.
[[nodiscard]] inline numbers numbers_in(const redis_reply& reply) {
    EXPECT_FALSE(reply.is_error()) << reply.text;
    numbers found;
    for (const auto& item : reply.items) {
        EXPECT_EQ(item.type, redis_reply::kind::integer) << item.as_text();
        found.push_back(item.integer);
    }
    return found;
}

[[nodiscard]] inline testing::AssertionResult granted(const redis_reply& reply) {
    if (reply.items.size() == 3 && reply.items[0].integer == 1 && reply.items[1].integer > 0) {
        return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << "answered: " << reply.as_text();
}

[[nodiscard]] inline testing::AssertionResult busy(const redis_reply& reply) {
    if (reply.items.size() >= 2 && reply.items[0].integer == 0 && reply.items[1].integer >= 0) {
        return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << "answered: " << reply.as_text();
}

[[nodiscard]] inline testing::AssertionResult wrong_kind(const redis_reply& reply) {
    if (reply.is_error() && reply.text.starts_with("WRONGKIND ")) {
        return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << "answered: " << reply.as_text();
}

[[nodiscard]] inline std::int64_t token_of(const redis_reply& reply) {
    EXPECT_TRUE(granted(reply));
    return reply.items.size() == 3 ? reply.items[1].integer : 0;
}

/// Milliseconds that a busy answer asks for.
[[nodiscard]] inline std::int64_t retry_of(const redis_reply& reply) {
    EXPECT_TRUE(busy(reply));
    return reply.items.size() == 2 ? reply.items[1].integer : -1;
}

inline const numbers gone{0, 0};
/// Released, and nobody was listening.
inline const numbers released{1, 0};

/// The keys and arguments of a plain lock's release.
[[nodiscard]] inline words lock_release_keys(const std::string& name) {
    return {name,           holds_key(name), lock_channel(name), lock_wishes(name), token_counter(),
            lock_turn(name)};
}
[[nodiscard]] inline words lock_release_arguments(const std::string& owner, std::int64_t linger = 0,
                                                  const std::string& publish = "publish",
                                                  const std::string& name = "stock",
                                                  std::int64_t floor = 0,
                                                  const std::string& message = "0") {
    words all{owner,  publish, since, text_of(floor), grant_channels(name), listeners_channel(name),
              message};
    if (linger > 0) {
        all.push_back(text_of(linger));
    }
    return all;
}

/// What an acquisition asks for.
struct terms {
    std::int64_t ttl{long_ttl};
    std::int64_t count{1};
    std::int64_t floor{0};
};

class script_test : public testing::Test {
protected:
    static void SetUpTestSuite() { server_ = std::make_unique<redis_server>(); }
    static void TearDownTestSuite() { server_.reset(); }
    void SetUp() override {
        redis({"CONFIG", "SET", "maxmemory", "0"});
        redis({"FLUSHALL"});
    }

    [[nodiscard]] static redis_server& server() { return *server_; }

    redis_reply redis(const words& command) { return client_.command(command); }
    std::string text(const words& command) { return redis(command).as_text(); }
    std::int64_t number(const words& command) { return redis(command).integer; }

    redis_reply run(const script& what, const words& keys, const words& arguments) {
        words command{"EVAL", std::string{what.text}, std::to_string(keys.size())};
        command.insert(command.end(), keys.begin(), keys.end());
        command.insert(command.end(), arguments.begin(), arguments.end());
        return redis(command);
    }

    void expect_remaining(const std::string& key, std::int64_t from, std::int64_t to) {
        const auto left = number({"PTTL", key});
        EXPECT_GE(left, from) << key;
        EXPECT_LE(left, to) << key;
    }
    void expect_long_lease(const std::string& key) { expect_remaining(key, long_ttl / 2, long_ttl); }

    /// Asked in this order, the time in between cannot make it look longer.
    void expect_lives_as_long(const std::string& key, const std::string& other) {
        const auto left = number({"PTTL", key});
        EXPECT_GE(left, number({"PTTL", other})) << key;
    }

    void wait_until_gone(const std::string& key) {
        wait_until("the end of " + key, [&] { return number({"EXISTS", key}) == 0; });
    }

    /// Milliseconds since 1970 by the server's clock.
    std::int64_t now() {
        const auto time = redis({"TIME"});
        return std::stoll(time.items.at(0).text) * 1000 + std::stoll(time.items.at(1).text) / 1000;
    }

    [[nodiscard]] static redis_client listener(const std::string& channel) {
        auto client = server().connect();
        client.command({"SUBSCRIBE", channel});
        return client;
    }
    /// One of ours, which hears of a plain lock's releases.
    [[nodiscard]] static redis_client listener_of_ours(const std::string& name) {
        auto client = listener(listeners_channel(name));
        client.command({"SUBSCRIBE", lock_channel(name)});
        return client;
    }
    [[nodiscard]] static std::string message(redis_client& client) {
        return client.next_message().items.at(2).text;
    }

    /// With so little memory the server refuses everything that might need more.
    void run_out_of_memory() { redis({"CONFIG", "SET", "maxmemory", "1"}); }
    /// Everything the server holds, in one text.
    std::string contents();

private:
    static inline std::unique_ptr<redis_server> server_;
    redis_client client_{server().connect()};
};

inline std::string script_test::contents() {
    std::string all;
    auto keys = redis({"KEYS", "*"});
    std::vector<std::string> names;
    for (const auto& key : keys.items) {
        names.push_back(key.text);
    }
    std::sort(names.begin(), names.end());
    for (const auto& name : names) {
        all += name + "=" + text({"DUMP", name}) + "\n";
    }
    return all;
}

}  // namespace holdfast::engines::redis
