#include <gtest/gtest.h>

#include <engines/redis/topology/routing.hpp>
#include <engines/redis/topology/scripted_server.hpp>
#include <support/redis_servers.hpp>

/// Real servers, and sentinels that say what a test wants.
namespace holdfast::engines::redis {
namespace {

using testing_support::redis_server;

/// A sentinel that names `master` with the number `epoch`.
scripted_server::answer naming(std::uint16_t master, int epoch) {
    return [=](const words& command) -> std::string {
        const auto address = sends_list({sends_text("127.0.0.1"), sends_text(std::to_string(master))});
        if (command.front() == "SENTINEL") {
            return command.at(1) == "MASTER"
                       ? sends_list({sends_text("config-epoch"), sends_text(std::to_string(epoch))})
                       : address;
        }
        return sends_list({sends_text(command.front() == "SUBSCRIBE" ? "subscribe" : "unsubscribe"),
                           sends_text(command.back()), sends_number(1)});
    };
}

/// Two sentinels know of a fail-over; the third was cut off, together with the old master.
class redis_sentinel_words : public ::testing::Test {
protected:
    [[nodiscard]] address where() const {
        address all;
        all.topology = topology_kind::sentinel;
        all.service = "shop";
        all.nodes = {first_.where(), second_.where(), cut_off_.where()};
        return all;
    }
    /// More than once after `patience` something was heard, or not, from a sentinel.
    void outlast_patience() {
        const auto until = clock::now() + 3 * patience;
        ASSERT_TRUE(
            became_true([&] { return clock::now() > until && first_.turned_away() >= 4; }, 20s));
    }
    [[nodiscard]] static bool has(const redis_server& which, const std::string& key) {
        return which.cli({"EXISTS", key}) == "1";
    }

    static constexpr std::chrono::milliseconds patience{100};
    redis_server old_master_;
    redis_server new_master_;
    scripted_server first_{naming(new_master_.port(), 2)};
    scripted_server second_{naming(new_master_.port(), 2)};
    scripted_server cut_off_{naming(old_master_.port(), 1)};
};

TEST_F(redis_sentinel_words, one_that_was_cut_off_does_not_lead_back_while_the_newer_master_is_there) {
    const auto through = make_sentinel(where(), {}, patience);
    ASSERT_FALSE(through->connect(clock::now() + 5s));
    first_.turn_away({});
    second_.turn_away({});
    outlast_patience();

    EXPECT_TRUE(works(*through, {"SET", "here", "1"}));

    EXPECT_TRUE(has(new_master_, "here"));
    EXPECT_FALSE(has(old_master_, "here"));
}

TEST_F(redis_sentinel_words, one_that_was_cut_off_is_believed_when_the_newer_master_is_gone) {
    const auto through = make_sentinel(where(), {}, patience);
    ASSERT_FALSE(through->connect(clock::now() + 5s));
    first_.turn_away({});
    second_.turn_away({});
    new_master_.kill_hard();

    EXPECT_TRUE(became_true([&] { return works(*through, {"SET", "here", "1"}); }, 20s));

    EXPECT_TRUE(has(old_master_, "here"));
}

TEST_F(redis_sentinel_words, sentinels_that_have_too_many_clients_are_not_there) {
    auto all = where();
    all.sentinel_login = {"watcher", "secret"};
    for (auto* each : {&first_, &second_, &cut_off_}) {
        each->turn_away("-ERR max number of clients reached\r\n");
    }
    const auto why = make_sentinel(all, {})->connect(clock::now() + 5s);
    EXPECT_EQ(why.code, errc::store_unavailable) << why.detail;
    EXPECT_NE(why.detail.find("max number of clients"), std::string::npos) << why.detail;
    all.sentinel_login = {};
    EXPECT_EQ(make_sentinel(all, {})->connect(clock::now() + 5s).code, errc::store_unavailable);
}

}  // namespace
}  // namespace holdfast::engines::redis
