#include <redis/net/subscriber.hpp>
#include <redis/net/subscriptions.hpp>

#include <atomic>
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "server.hpp"

namespace holdfast::engines::redis::test {

namespace {

/// Remembers everything a subscriber tells.
struct listener {
    std::mutex mutex;
    std::map<std::string, std::vector<std::string>> messages;
    std::map<std::string, int> confirmations;
    std::vector<std::string> moved;

    subscriber::events events() {
        return {.heard =
                    [this](const std::string& channel, std::string_view message) {
                        const std::lock_guard lock{mutex};
                        messages[channel].emplace_back(message);
                    },
                .subscribed =
                    [this](const std::string& channel) {
                        const std::lock_guard lock{mutex};
                        ++confirmations[channel];
                    },
                .moved_away =
                    [this](const std::string& channel) {
                        const std::lock_guard lock{mutex};
                        moved.push_back(channel);
                    }};
    }
    [[nodiscard]] int confirmed(const std::string& channel) {
        const std::lock_guard lock{mutex};
        return confirmations[channel];
    }
    [[nodiscard]] std::vector<std::string> heard(const std::string& channel) {
        const std::lock_guard lock{mutex};
        return messages[channel];
    }
    [[nodiscard]] std::size_t channels_confirmed() {
        const std::lock_guard lock{mutex};
        return confirmations.size();
    }
};

using words = std::vector<std::string>;

TEST(subscriber, messages_are_heard_once_the_subscription_is_confirmed) {
    const server redis;
    listener told;
    subscriber tested{redis.where(), {}, told.events()};
    EXPECT_FALSE(tested.active("news"));
    tested.subscribe("news", channel_style::classic);
    ASSERT_TRUE(eventually([&] { return told.confirmed("news") == 1; }));
    EXPECT_TRUE(tested.active("news"));
    admin other{redis.port()};
    EXPECT_EQ(other.command({"PUBLISH", "news", "hello"})->integer, 1);
    EXPECT_EQ(other.command({"PUBLISH", "news", ""})->integer, 1);
    EXPECT_TRUE(eventually([&] { return told.heard("news") == words{"hello", ""}; }));
}

TEST(subscriber, sharded_channels_are_heard) {
    const server redis;
    listener told;
    subscriber tested{redis.where(), {}, told.events()};
    tested.subscribe("news", channel_style::sharded);
    ASSERT_TRUE(eventually([&] { return tested.active("news"); }));
    admin other{redis.port()};
    EXPECT_EQ(other.command({"SPUBLISH", "news", "hello"})->integer, 1);
    EXPECT_TRUE(eventually([&] { return told.heard("news") == words{"hello"}; }));
}

TEST(subscriber, after_a_killed_connection_everything_is_subscribed_again) {
    const server redis;
    listener told;
    subscriber tested{redis.where(), {}, told.events()};
    tested.subscribe("one", channel_style::classic);
    tested.subscribe("two", channel_style::sharded);
    ASSERT_TRUE(eventually([&] { return tested.active("one") && tested.active("two"); }));
    admin other{redis.port()};
    ASSERT_EQ(other.command({"CLIENT", "KILL", "TYPE", "pubsub"})->integer, 1);
    ASSERT_TRUE(eventually([&] { return told.confirmed("one") == 2 && told.confirmed("two") == 2; }));
    EXPECT_EQ(other.command({"PUBLISH", "one", "hello"})->integer, 1);
    EXPECT_TRUE(eventually([&] { return told.heard("one") == words{"hello"}; }));
}

TEST(subscriber, a_server_that_comes_back_is_found) {
    server redis;
    listener told;
    subscriber tested{redis.where(), {}, told.events()};
    tested.subscribe("news", channel_style::classic);
    ASSERT_TRUE(eventually([&] { return tested.active("news"); }));
    redis.kill();
    EXPECT_TRUE(eventually([&] { return !tested.active("news"); }));
    redis.restart();
    EXPECT_TRUE(eventually([&] { return told.confirmed("news") == 2; }));
}

TEST(subscriber, a_server_that_hangs_is_noticed) {
    const server redis;
    listener told;
    subscriber tested{redis.where(), {}, told.events()};
    tested.subscribe("news", channel_style::classic);
    ASSERT_TRUE(eventually([&] { return tested.active("news"); }));
    redis.stop();
    const auto stopped_at = clock::now();
    EXPECT_TRUE(eventually([&] { return !tested.active("news"); }));
    EXPECT_LT(clock::now() - stopped_at, 4s);
    redis.resume();
    EXPECT_TRUE(eventually([&] { return told.confirmed("news") == 2; }));
}

TEST(subscriber, a_silent_but_healthy_server_keeps_its_connection) {
    const server redis;
    listener told;
    subscriber tested{redis.where(), {}, told.events()};
    tested.subscribe("news", channel_style::classic);
    ASSERT_TRUE(eventually([&] { return tested.active("news"); }));
    admin other{redis.port()};
    const auto pings = [&] {
        const reply answer = other.command({"INFO", "commandstats"});
        return std::string_view{answer->str}.find("cmdstat_ping:calls=3") != std::string_view::npos;
    };
    // One by the test's server, two by the subscriber.
    EXPECT_TRUE(eventually(pings));
    EXPECT_EQ(told.confirmed("news"), 1);
}

TEST(subscriber, what_is_not_wanted_any_more_is_not_heard) {
    const server redis;
    listener told;
    subscriber tested{redis.where(), {}, told.events()};
    tested.subscribe("kept", channel_style::classic);
    tested.subscribe("left", channel_style::classic);
    ASSERT_TRUE(eventually([&] { return tested.active("kept") && tested.active("left"); }));
    tested.unsubscribe("left");
    EXPECT_FALSE(tested.active("left"));
    admin other{redis.port()};
    other.command({"PUBLISH", "left", "hello"});
    other.command({"PUBLISH", "kept", "hello"});
    EXPECT_TRUE(eventually([&] { return told.heard("kept") == words{"hello"}; }));
    EXPECT_EQ(told.heard("left"), words{});
    EXPECT_TRUE(eventually([&] { return other.command({"PUBLISH", "left", "x"})->integer == 0; }));
}

TEST(subscriber, thousands_of_channels_share_one_connection) {
    constexpr int count = 5000;
    const server redis;
    listener told;
    subscriber tested{redis.where(), {}, told.events()};
    for (int channel = 0; channel < count; ++channel) {
        tested.subscribe("channel:" + std::to_string(channel), channel_style::classic);
    }
    ASSERT_TRUE(eventually([&] { return told.channels_confirmed() == count; }));
    admin other{redis.port()};
    for (int channel = 0; channel < count; channel += 50) {
        const std::string name = "channel:" + std::to_string(channel);
        ASSERT_EQ(other.command({"PUBLISH", name, name})->integer, 1);
    }
    EXPECT_TRUE(eventually([&] { return !told.heard("channel:4950").empty(); }));
    EXPECT_EQ(told.heard("channel:4950"), words{"channel:4950"});
    const reply clients = other.command({"CLIENT", "LIST", "TYPE", "pubsub"});
    EXPECT_NE(std::string_view{clients->str}.find("sub=5000"), std::string_view::npos);
}

TEST(subscriber, a_channel_that_is_not_allowed_does_not_silence_the_others) {
    const server redis;
    admin other{redis.port()};
    other.command({"ACL", "SETUSER", "listener", "on", ">pw", "resetchannels", "&good:*", "+@all"});
    listener told;
    subscriber tested{
        redis.where(), {.login = {.user = "listener", .password = "pw"}, .tls = {}}, told.events()};
    tested.subscribe("good:1", channel_style::classic);
    tested.subscribe("bad", channel_style::classic);
    tested.subscribe("good:2", channel_style::classic);
    EXPECT_TRUE(eventually([&] { return tested.active("good:1") && tested.active("good:2"); }));
    EXPECT_FALSE(tested.active("bad"));
}

TEST(subscriber, it_may_be_used_from_its_own_callbacks) {
    const server redis;
    std::atomic<bool> second{};
    std::unique_ptr<subscriber> tested;
    tested = std::make_unique<subscriber>(
        redis.where(), connection_settings{},
        subscriber::events{.heard = {},
                           .subscribed =
                               [&](const std::string& channel) {
                                   if (channel == "first") {
                                       tested->unsubscribe("first");
                                       tested->subscribe("second", channel_style::classic);
                                   }
                                   second = channel == "second";
                               },
                           .moved_away = {}});
    tested->subscribe("first", channel_style::classic);
    EXPECT_TRUE(eventually([&] { return second.load(); }));
}

TEST(subscriber, it_ends_at_once_while_nobody_answers) {
    const server redis;
    redis.stop();
    const auto started = clock::now();
    {
        listener told;
        subscriber tested{redis.where(), {}, told.events()};
        tested.subscribe("news", channel_style::classic);
    }
    EXPECT_LT(clock::now() - started, 1500ms);
    redis.resume();
}

value text(std::string content) {
    return {.type = value::kind::text, .text = std::move(content), .items = {}};
}
value confirmation(std::string kind, std::string channel) {
    return {.type = value::kind::array,
            .text = {},
            .items = {text(std::move(kind)),
                      text(std::move(channel)),
                      {.type = value::kind::integer, .integer = 1, .text = {}, .items = {}}}};
}
value error(std::string content) {
    return {.type = value::kind::error, .text = std::move(content), .items = {}};
}

using news = subscriptions::news;

TEST(subscriptions, a_subscription_that_the_server_ends_by_itself_has_moved_away) {
    subscriptions book;
    std::string out;
    std::vector<news> told;
    EXPECT_TRUE(book.want("a", channel_style::sharded));
    book.start_anew();
    book.append_changes(out);
    EXPECT_EQ(out, "*2\r\n$10\r\nSSUBSCRIBE\r\n$1\r\na\r\n");
    EXPECT_FALSE(book.take(confirmation("ssubscribe", "a"), told));
    EXPECT_TRUE(book.active("a"));
    EXPECT_FALSE(book.take(confirmation("sunsubscribe", "a"), told));
    ASSERT_EQ(told.size(), 2U);
    EXPECT_EQ(told[1].type, news::kind::moved_away);
    EXPECT_TRUE(book.empty());
}

TEST(subscriptions, one_that_is_redirected_has_moved_away_and_the_next_is_not_mistaken_for_it) {
    subscriptions book;
    std::string out;
    std::vector<news> told;
    book.start_anew();
    EXPECT_TRUE(book.want("a", channel_style::sharded));
    EXPECT_TRUE(book.want("b", channel_style::sharded));
    book.append_changes(out);
    EXPECT_FALSE(book.take(error("MOVED 1 127.0.0.1:7001"), told));
    EXPECT_FALSE(book.take(confirmation("ssubscribe", "b"), told));
    ASSERT_EQ(told.size(), 2U);
    EXPECT_EQ(told[0].type, news::kind::moved_away);
    EXPECT_EQ(told[0].channel, "a");
    EXPECT_TRUE(book.active("b"));
}

TEST(subscriptions, one_given_up_and_wanted_again_in_time_costs_nothing) {
    subscriptions book;
    std::string out;
    std::vector<news> told;
    book.start_anew();
    EXPECT_TRUE(book.want("a", channel_style::classic));
    book.append_changes(out);
    EXPECT_FALSE(book.take(confirmation("subscribe", "a"), told));
    out.clear();
    book.unwant("a");
    EXPECT_FALSE(book.active("a"));
    EXPECT_FALSE(book.want("a", channel_style::classic));
    book.append_changes(out);
    EXPECT_EQ(out, "");
    EXPECT_TRUE(book.active("a"));
}

TEST(subscriptions, one_wanted_again_after_the_server_was_told_is_active_with_the_last_answer_only) {
    subscriptions book;
    std::string out;
    std::vector<news> told;
    book.start_anew();
    EXPECT_TRUE(book.want("a", channel_style::classic));
    book.append_changes(out);
    book.unwant("a");
    book.append_changes(out);
    EXPECT_TRUE(book.want("a", channel_style::classic));
    book.append_changes(out);
    EXPECT_FALSE(book.take(confirmation("subscribe", "a"), told));
    EXPECT_FALSE(book.take(confirmation("unsubscribe", "a"), told));
    EXPECT_FALSE(book.active("a"));
    EXPECT_TRUE(told.empty());
    EXPECT_FALSE(book.take(confirmation("subscribe", "a"), told));
    EXPECT_TRUE(book.active("a"));
}

TEST(subscriptions, a_server_that_refuses_for_other_reasons_is_left) {
    subscriptions book;
    std::string out;
    std::vector<news> told;
    book.start_anew();
    EXPECT_TRUE(book.want("a", channel_style::classic));
    book.append_changes(out);
    EXPECT_TRUE(book.take(error("CLUSTERDOWN the cluster is down"), told));
}

}  // namespace

}  // namespace holdfast::engines::redis::test
