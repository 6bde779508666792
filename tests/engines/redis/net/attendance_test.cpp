#include <redis/net/subscriber.hpp>
#include <threading/parking.hpp>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "server.hpp"

namespace holdfast::engines::redis::test {

namespace {

/// A thread that is lent to a subscriber until it is called away.
class attendant final : public idle_thread {
public:
    explicit attendant(subscriber& whom, bool others_listen = false)
        : thread_{[this, &whom, others_listen] {
              id_ = std::this_thread::get_id();
              whom.attend(*this, [others_listen] { return others_listen; });
              left_ = true;
          }} {}
    attendant(const attendant&) = delete;
    attendant& operator=(const attendant&) = delete;
    ~attendant() override { call_away(); }

    [[nodiscard]] bool called_away() const noexcept override { return spot_.unparked(); }
    [[nodiscard]] bool sleep(int descriptor) noexcept override {
        return spot_.park_at(descriptor, bell_);
    }
    void call_away() { spot_.unpark(); }
    [[nodiscard]] bool left() const { return left_; }
    [[nodiscard]] bool is(std::thread::id whom) const {
        return whom != std::thread::id{} && id_.load() == whom;
    }

private:
    threading::parking_spot spot_;
    threading::bell bell_;
    std::atomic<std::thread::id> id_{};
    std::atomic<bool> left_{};
    std::jthread thread_;
};

class attendance : public ::testing::Test {
protected:
    attendance() {
        tested_->subscribe("news", channel_style::classic);
        EXPECT_TRUE(eventually([&] { return tested_->active("news"); }));
    }

    void publish(const std::string& channel) { other_.command({"PUBLISH", channel, "hello"}); }
    [[nodiscard]] bool heard_by(const attendant& whom, const std::string& channel) {
        return eventually([&] {
            publish(channel);
            return whom.is(last_.load());
        });
    }
    [[nodiscard]] bool heard_by_the_subscriber(const attendant& not_by) {
        last_ = std::thread::id{};
        return eventually([&] {
            publish("news");
            return last_.load() != std::thread::id{} && !not_by.is(last_.load());
        });
    }

    const server redis_;
    admin other_{redis_.port()};
    /// Who has told of the last message.
    std::atomic<std::thread::id> last_{};
    std::atomic<int> confirmed_{};
    /// Who ends the subscriber when it hears something.
    std::atomic<const attendant*> ends_{};
    std::unique_ptr<subscriber> tested_{std::make_unique<subscriber>(
        redis_.where(), connection_settings{},
        subscriber::events{.heard =
                               [this](const std::string&, std::string_view) {
                                   last_ = std::this_thread::get_id();
                                   const auto* const who = ends_.load();
                                   if (who != nullptr && who->is(last_.load())) {
                                       tested_.reset();
                                   }
                               },
                           .subscribed = [this](const std::string&) { ++confirmed_; },
                           .moved_away = {}})};
};

TEST_F(attendance, messages_are_told_on_the_thread_that_attends) {
    const attendant who{*tested_};
    EXPECT_TRUE(heard_by(who, "news"));
}

TEST_F(attendance, whoever_is_called_away_leaves_and_the_subscriber_reads_on) {
    attendant who{*tested_};
    ASSERT_TRUE(heard_by(who, "news"));
    who.call_away();
    EXPECT_TRUE(eventually([&] { return who.left(); }));
    EXPECT_TRUE(heard_by_the_subscriber(who));
}

TEST_F(attendance, whoever_leaves_while_others_listen_is_followed_by_the_subscriber) {
    attendant who{*tested_, true};
    ASSERT_TRUE(heard_by(who, "news"));
    who.call_away();
    EXPECT_TRUE(eventually([&] { return who.left(); }));
    EXPECT_TRUE(heard_by_the_subscriber(who));
}

TEST_F(attendance, one_after_the_other_may_attend) {
    for (int round = 0; round < 50; ++round) {
        const attendant who{*tested_, round % 3 == 0};
        ASSERT_TRUE(heard_by(who, "news")) << round;
    }
}

TEST_F(attendance, only_one_attends_at_a_time) {
    attendant first{*tested_};
    ASSERT_TRUE(heard_by(first, "news"));
    const attendant second{*tested_};
    EXPECT_TRUE(eventually([&] { return second.left(); }));
    EXPECT_FALSE(first.left());
}

TEST_F(attendance, a_channel_that_is_added_meanwhile_is_heard) {
    const attendant who{*tested_};
    ASSERT_TRUE(heard_by(who, "news"));
    tested_->subscribe("more", channel_style::classic);
    EXPECT_TRUE(eventually([&] { return tested_->active("more"); }));
    last_ = std::thread::id{};
    EXPECT_TRUE(heard_by(who, "more"));
}

TEST_F(attendance, a_lost_connection_sends_the_attendant_away_and_is_made_again) {
    const attendant who{*tested_};
    ASSERT_TRUE(heard_by(who, "news"));
    ASSERT_EQ(other_.command({"CLIENT", "KILL", "TYPE", "pubsub"})->integer, 1);
    EXPECT_TRUE(eventually([&] { return who.left(); }));
    EXPECT_TRUE(eventually([&] { return confirmed_ == 2; }));
    EXPECT_TRUE(heard_by_the_subscriber(who));
}

TEST_F(attendance, a_server_that_hangs_is_noticed_while_somebody_attends) {
    const attendant who{*tested_};
    ASSERT_TRUE(heard_by(who, "news"));
    redis_.stop();
    const auto stopped_at = clock::now();
    EXPECT_TRUE(eventually([&] { return who.left(); }));
    EXPECT_LT(clock::now() - stopped_at, 4s);
    redis_.resume();
    EXPECT_TRUE(eventually([&] { return confirmed_ == 2; }));
}

TEST_F(attendance, nobody_is_kept_without_a_connection) {
    subscriber unused{redis_.where(), {}, {}};
    const attendant who{unused};
    EXPECT_TRUE(eventually([&] { return who.left(); }));
}

TEST_F(attendance, a_subscriber_that_ends_sends_its_attendant_away_first) {
    const attendant who{*tested_};
    ASSERT_TRUE(heard_by(who, "news"));
    tested_.reset();
    last_ = std::thread::id{};
    EXPECT_TRUE(eventually([&] { return who.left(); }));
    EXPECT_EQ(last_.load(), std::thread::id{});
}

TEST_F(attendance, the_attendant_may_end_the_subscriber) {
    const attendant who{*tested_};
    ASSERT_TRUE(heard_by(who, "news"));
    ends_ = &who;
    publish("news");
    EXPECT_TRUE(eventually([&] { return who.left(); }));
    EXPECT_EQ(tested_, nullptr);
}

TEST_F(attendance, nothing_is_lost_when_a_channel_is_added_while_nobody_reads) {
    std::atomic<int> heard{};
    subscriber own{redis_.where(), connection_settings{},
                   subscriber::events{.heard = [&](const std::string&, std::string_view) { ++heard; },
                                      .subscribed = {},
                                      .moved_away = {}}};
    own.subscribe("own", channel_style::classic);
    ASSERT_TRUE(eventually([&] { return own.active("own"); }));
    for (int round = 0; round < 100; ++round) {
        const auto before = heard.load();
        {
            const attendant who{own};
            publish("own");
            ASSERT_TRUE(eventually([&] { return heard == before + 1; }));
        }
        publish("own");
        own.subscribe("other" + std::to_string(round), channel_style::classic);
        ASSERT_TRUE(eventually([&] { return heard == before + 2; })) << "in round " << round;
    }
}

}  // namespace

}  // namespace holdfast::engines::redis::test
