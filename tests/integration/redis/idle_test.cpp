#include <future>
#include <optional>
#include <string>
#include <vector>

#include <integration/redis/redis_stage.hpp>

/// How much is said to the server, when there is something to say and when there is not.
namespace holdfast::testing {

namespace {

class redis_economy : public redis_stage {
protected:
    /// What is said once in a client's life is said. Returns how the server's log names the client.
    [[nodiscard]] std::string warm_up(client& who, const recorder& told) const {
        auto held = mutex{who, "warm-up", {.ttl = 30s}}.acquire();
        auto name = held.owner().client_text();
        // It asks about its holds once it hears this, and then it has heard of its subscription, too.
        const auto tell = [&] {
            return count({"PUBLISH", "holdfast_client:{" + name + "}", "1"}) == 1;
        };
        EXPECT_TRUE(eventually(tell));
        EXPECT_TRUE(told.wait_for(event_kind::renewed));
        // Both may have made it ask: of its subscription it hears separately.
        for (std::size_t asked = 1;
             eventually([&] { return told.count(event_kind::renewed) > asked; }, 100ms); ++asked) {
        }
        held.release();
        return name;
    }
    /// Until those who wait are heard by the server, so that what follows is the hand-over alone.
    [[nodiscard]] bool somebody_waits() const {
        const std::string channel{"redisson_lock__channel:{stock}"};
        return eventually([&] {
            return server_.ask({"PUBSUB", "NUMSUB", channel}).items[1].integer == 1;
        });
    }
    [[nodiscard]] static std::size_t pings_in(const std::vector<std::string>& said) {
        return lines_with(said, R"("PING")");
    }

    const std::shared_ptr<recorder> second_events_{std::make_shared<recorder>()};
    client first_{make_client()};
    client second_{make_client({.events = second_events_})};
};

TEST_F(redis_economy, an_uncontended_lock_and_unlock_are_two_commands) {
    constexpr std::size_t rounds = 50;
    static_cast<void>(warm_up(first_, *events_));
    mutex stock{first_, "stock", {.ttl = 30s}};
    command_log log{server_};

    for (std::size_t round = 0; round < rounds; ++round) {
        stock.lock();
        stock.unlock();
    }

    const auto said = log.news();
    EXPECT_EQ(script_runs(said), 2 * rounds);
    EXPECT_EQ(said.size() - pings_in(said), 2 * rounds);
}

TEST_F(redis_economy, a_hand_over_costs_one_command_to_give_and_two_to_take) {
    constexpr std::size_t rounds = 10;
    const auto giver = warm_up(first_, *events_);
    static_cast<void>(warm_up(second_, *second_events_));
    mutex here{first_, "stock", {.ttl = 30s}};
    mutex there{second_, "stock", {.ttl = 30s}};
    command_log log{server_};
    const stopwatch watch;

    for (std::size_t round = 0; round < rounds; ++round) {
        auto held = here.acquire();
        auto taking = in_background([&] { return there.try_acquire_for(20s); });
        ASSERT_TRUE(second_events_->wait_for(event_kind::contended, round + 1));
        ASSERT_TRUE(eventually([&] { return is_there("holdfast_wishes:{stock}"); }));
        held.release();
        taking.get().value().release();
    }

    const auto said = log.news();
    const auto seconds = static_cast<std::size_t>(watch.elapsed() / 1s);
    EXPECT_EQ(lines_with(said, giver), 2 * rounds);
    // Its first question, and one when the subscription is in place, which says that it wants to be
    // given the lock; the release. On a slow machine it may have looked again meanwhile.
    EXPECT_LE(script_runs(said) - lines_with(said, giver), (2 + 1) * rounds + seconds);
    EXPECT_EQ(lines_with(said, R"("PUBLISH")"), 0);
}

TEST_F(redis_economy, a_fair_lock_that_others_want_is_passed_on_with_two_scripts) {
    constexpr std::size_t rounds = 10;
    static_cast<void>(warm_up(first_, *events_));
    static_cast<void>(warm_up(second_, *second_events_));
    fair_mutex here{first_, "stock", {.ttl = 30s}};
    fair_mutex there{second_, "stock", {.ttl = 30s}};
    const auto in_line = [&] { return count({"LLEN", "redisson_lock_queue:{stock}"}) == 1; };
    auto held = here.acquire();
    auto taking = in_background([&] { return there.try_acquire_for(20s); });
    ASSERT_TRUE(eventually(in_line));
    command_log log{server_};
    const stopwatch watch;

    for (std::size_t round = 0; round < rounds; ++round) {
        held.release();
        auto taken = taking.get();
        auto taking_back = in_background([&] { return here.try_acquire_for(20s); });
        ASSERT_TRUE(eventually(in_line));
        taken.value().release();
        held = taking_back.get().value();
        taking = in_background([&] { return there.try_acquire_for(20s); });
        ASSERT_TRUE(eventually(in_line));
    }

    const auto said = log.news();
    const auto seconds = static_cast<std::size_t>(watch.elapsed() / 1s);
    // One to get in line, one to release. A server that reads the question before it has read the
    // subscription is asked once more; who waits looks every second.
    constexpr auto sometimes = rounds;
    EXPECT_LE(script_runs(said), 2 * 2 * rounds + sometimes + 2 * seconds);
    // Ahead of each release, so that the other hears of it first. The first hold was not waited for.
    const auto pings = pings_in(said);
    EXPECT_GE(pings, 2 * rounds - 1);
    EXPECT_LE(pings, 2 * rounds - 1 + 2 * (seconds + 1));
    held.release();
    EXPECT_TRUE(taking.get().has_value());
}

TEST_F(redis_economy, a_waiter_that_has_nothing_to_do_asks_once_a_second) {
    constexpr auto window = 3s;
    static_cast<void>(warm_up(first_, *events_));
    const auto waiter = warm_up(second_, *second_events_);
    auto held = mutex{first_, "stock", {.ttl = 30s}}.acquire();
    auto waiting = in_background([this] {
        return mutex{second_, "stock", {.ttl = 30s}}.try_acquire_for(20s);
    });
    ASSERT_TRUE(second_events_->wait_for(event_kind::contended));
    ASSERT_TRUE(somebody_waits());
    command_log log{server_};
    const stopwatch watch;

    EXPECT_TRUE(eventually([&] { return watch.elapsed() >= window; }));

    const auto said = log.news();
    const auto seconds = static_cast<std::size_t>(watch.elapsed() / 1s);
    EXPECT_LE(lines_with(said, waiter), seconds);
    EXPECT_GE(lines_with(said, waiter), 1);
    // Two subscribers make sure of their connections.
    EXPECT_LE(pings_in(said), 2 * (seconds + 1));
    EXPECT_EQ(said.size() - pings_in(said), lines_with(said, waiter)) << ::testing::PrintToString(said);
    held.release();
    EXPECT_TRUE(waiting.get().has_value());
}

TEST_F(redis_economy, a_hundred_leases_are_renewed_in_a_few_commands) {
    constexpr std::size_t leases = 100;
    static_cast<void>(warm_up(first_, *events_));
    std::vector<lease> held;
    for (std::size_t index = 0; index < leases; ++index) {
        held.push_back(mutex{first_, "stock:" + std::to_string(index), {.ttl = 3s}}.acquire());
    }
    command_log log{server_};

    EXPECT_TRUE(events_->wait_for(event_kind::renewed, leases + 1));

    const auto said = log.news();
    EXPECT_LE(script_runs(said), 8);
}

}  // namespace

}  // namespace holdfast::testing
