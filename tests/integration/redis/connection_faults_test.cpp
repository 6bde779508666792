#include <future>
#include <optional>
#include <string>
#include <thread>

#include <integration/redis/redis_stage.hpp>
#include <integration/redis/tcp_gate.hpp>

/// Connections that break, stall, or are never made.
namespace holdfast::testing {

namespace {

class redis_connection_faults : public redis_stage {
protected:
    /// Somebody who waits for "stock" in the background, and is known to wait.
    [[nodiscard]] std::future<std::optional<lease>> start_waiting() {
        auto waiting = in_background([this] { return mutex{waiter_, "stock"}.try_acquire_for(20s); });
        EXPECT_TRUE(waiter_events_->wait_for(event_kind::contended));
        EXPECT_TRUE(eventually([&] {
            return server_.ask({"PUBSUB", "NUMSUB", "redisson_lock__channel:{stock}"})
                       .items[1]
                       .integer == 1;
        }));
        return waiting;
    }
    /// How long it takes the waiter to get what is released now.
    [[nodiscard]] std::chrono::nanoseconds hand_over(lease& held,
                                                     std::future<std::optional<lease>>& waiting) {
        const stopwatch since_release;
        EXPECT_EQ(held.release(), release_outcome::released);
        EXPECT_TRUE(waiting.get().has_value());
        return since_release.elapsed();
    }

    const std::shared_ptr<recorder> waiter_events_{std::make_shared<recorder>()};
    client holder_{make_client()};
    client waiter_{make_client({.events = waiter_events_})};
    mutex stock_{holder_, "stock", {.ttl = 900ms}};
};

TEST_F(redis_connection_faults, a_lease_survives_the_end_of_the_command_connection) {
    auto held = stock_.acquire();
    const auto renewals = events_->count(event_kind::renewed);

    server_.client_kill("normal");

    EXPECT_TRUE(events_->wait_for(event_kind::renewed, renewals + 2));
    EXPECT_TRUE(held);
    EXPECT_EQ(field_of(held), "1");
    EXPECT_EQ(held.release(), release_outcome::released);
}

TEST_F(redis_connection_faults, a_release_goes_through_although_the_connection_had_been_killed) {
    auto held = stock_.acquire();

    server_.client_kill("normal");

    EXPECT_EQ(held.release(), release_outcome::released);
    EXPECT_FALSE(is_there("stock"));
}

TEST_F(redis_connection_faults, a_waiter_whose_command_connection_ended_is_still_served) {
    auto held = stock_.acquire();
    auto waiting = start_waiting();

    server_.client_kill("normal");

    EXPECT_LT(hand_over(held, waiting), recheck_bound);
}

TEST_F(redis_connection_faults, a_waiter_whose_subscription_ended_is_still_served) {
    auto held = stock_.acquire();
    auto waiting = start_waiting();

    server_.client_kill("pubsub");

    EXPECT_LT(hand_over(held, waiting), recheck_bound);
}

TEST_F(redis_connection_faults, a_subscription_that_ended_is_made_anew) {
    auto held = stock_.acquire();
    auto waiting = start_waiting();

    server_.client_kill("pubsub");

    EXPECT_TRUE(eventually([&] {
        return server_.ask({"PUBSUB", "NUMSUB", "redisson_lock__channel:{stock}"}).items[1].integer ==
               1;
    }));
    EXPECT_LT(hand_over(held, waiting), recheck_bound);
}

TEST_F(redis_connection_faults, nobody_notices_when_the_server_forgets_the_scripts_between_calls) {
    for (int round = 0; round < 10; ++round) {
        server_.cli({"SCRIPT", "FLUSH"});
        auto held = stock_.acquire();
        server_.cli({"SCRIPT", "FLUSH"});
        EXPECT_EQ(held.release(), release_outcome::released);
    }
    EXPECT_EQ(events_->count(event_kind::not_acquired), 0);
}

TEST_F(redis_connection_faults, nobody_notices_when_the_server_keeps_forgetting_the_scripts) {
    std::jthread forgetting{[this](const std::stop_token& stop) {
        auto connection = server_.connect();
        while (!stop.stop_requested()) {
            connection.command({"SCRIPT", "FLUSH"});
        }
    }};
    for (int round = 0; round < 200; ++round) {
        auto held = stock_.acquire();
        ASSERT_EQ(held.release(), release_outcome::released);
    }
    auto held = stock_.acquire();
    const auto renewals = events_->count(event_kind::renewed);
    EXPECT_TRUE(events_->wait_for(event_kind::renewed, renewals + 2));
    EXPECT_EQ(events_->count(event_kind::renewal_failed), 0);
}

/// Writes wait, as they do while a fail-over is prepared. Ends at the end.
class redis_paused : public redis_stage {
protected:
    void pause() const { server_.cli({"CLIENT", "PAUSE", "60000", "WRITE"}); }
    void unpause() const { server_.cli({"CLIENT", "UNPAUSE"}); }

    client client_{make_client({.request_timeout = 300ms})};
    mutex stock_{client_, "stock", {.ttl = 30s}};
};

TEST_F(redis_paused, a_request_without_an_answer_is_asked_again_and_counts_once) {
    pause();
    const auto asked = client_.requests();
    auto taking = in_background([this] { return stock_.try_acquire_for(20s); });
    EXPECT_TRUE(eventually([&] { return client_.requests() >= asked + 3; }));

    unpause();

    auto held = taking.get();
    ASSERT_TRUE(held.has_value());
    EXPECT_EQ(server_.cli({"HGETALL", "stock"}), held->owner().text() + "\n1");
    const auto seen = client_.inspect("stock").holders.at(0);
    EXPECT_EQ(seen.token, held->token());
    EXPECT_EQ(held->release(), release_outcome::released);
    EXPECT_FALSE(is_there("stock"));
}

TEST_F(redis_paused, a_call_that_gives_up_ends_by_its_deadline_and_leaves_nothing_behind) {
    command_log log{server_};
    pause();

    const stopwatch watch;
    EXPECT_EQ(error_of([&] { return stock_.try_acquire_for(700ms); }), errc::outcome_unknown);
    EXPECT_LT(watch.elapsed(), 700ms + slack);
    unpause();

    // Whatever was late has arrived when the release that cleans up has.
    std::vector<std::string> said;
    EXPECT_TRUE(eventually([&] {
        for (auto& line : log.news()) {
            said.push_back(std::move(line));
        }
        return lines_with(said, "redisson_lock__channel:{stock}") > 0;
    }));
    EXPECT_FALSE(is_there("stock"));
}

TEST(redis_dead_server, is_reported_at_once_with_its_address) {
    const auto port = free_port();
    const stopwatch watch;

    EXPECT_EQ(error_of([&] { client{address_of(port)}; }), errc::store_unavailable);

    EXPECT_LT(watch.elapsed(), 1s);
    const auto text = error_text_of([&] { client{address_of(port)}; });
    EXPECT_NE(text.find("127.0.0.1:" + std::to_string(port)), std::string::npos) << text;
}

TEST(redis_dead_server, that_accepts_and_says_nothing_is_reported_within_the_connect_timeout) {
    redis_server server;
    tcp_gate gate{server.port()};
    gate.stall();
    const stopwatch watch;

    EXPECT_EQ(error_of([&] { client{address_of(gate.port(), "?connect_timeout=400")}; }),
              errc::store_unavailable);

    EXPECT_LT(watch.elapsed(), 400ms + 100ms + slack) << "a tenth of a second to find out why";
}

/// A connection over which nothing comes any more, though neither side has closed it.
class redis_half_open : public redis_stage {
protected:
    /// So that the client need not wait for a server that does not answer when it is destroyed.
    void TearDown() override { gate_.let_through(); }

    tcp_gate gate_{server_.port()};
    client client_{address_of(gate_.port()), {.events = events_, .request_timeout = 300ms}};
};

TEST_F(redis_half_open, a_call_ends_by_its_deadline) {
    mutex stock{client_, "stock"};
    gate_.stall();
    const stopwatch watch;

    EXPECT_EQ(error_of([&] { return stock.try_acquire_for(600ms); }), errc::outcome_unknown);

    EXPECT_LT(watch.elapsed(), 600ms + slack);
}

TEST_F(redis_half_open, a_lease_lives_on_when_the_connection_comes_back_in_time) {
    auto held = mutex{client_, "stock", {.ttl = 6s}}.acquire();
    gate_.stall();
    EXPECT_TRUE(events_->wait_for(event_kind::renewal_failed, 2));

    gate_.let_through();

    const auto renewals = events_->count(event_kind::renewed);
    EXPECT_TRUE(events_->wait_for(event_kind::renewed, renewals + 1));
    EXPECT_TRUE(held);
    EXPECT_EQ(events_->count(event_kind::lost), 0);
}

TEST_F(redis_half_open, work_goes_on_over_a_new_connection_when_the_old_one_stays_dead) {
    mutex stock{client_, "stock"};
    gate_.stall();
    EXPECT_TRUE(error_of([&] { return stock.try_acquire_for(500ms); }));

    gate_.abandon();  // those that are there stay silent for ever; new ones work

    EXPECT_TRUE(stock.try_acquire_for(10s).has_value());
}

TEST_F(redis_half_open, a_request_that_arrives_after_its_connection_was_given_up_has_no_effect) {
    mutex stock{client_, "stock"};
    stock.lock();
    stock.unlock();
    gate_.stall();
    const auto asked = client_.requests();
    auto taking = in_background([&] { return stock.try_acquire_for(20s); });
    EXPECT_TRUE(eventually([&] { return client_.requests() >= asked + 2; }));
    gate_.abandon();
    auto held = taking.get();
    ASSERT_TRUE(held.has_value());
    EXPECT_EQ(held->release(), release_outcome::released);
    ASSERT_FALSE(is_there("stock"));

    gate_.deliver_late();

    // Two rounds of the server's: it reads whoever has said something in each of them.
    server_.cli({"PING"});
    server_.cli({"PING"});
    EXPECT_FALSE(is_there("stock"));
}

TEST_F(redis_half_open, the_card_stays_when_a_release_had_no_answer) {
    std::optional<client> leaving{std::in_place, address_of(gate_.port()),
                                  client_options{.request_timeout = 300ms}};
    auto held = mutex{*leaving, "stock"}.acquire();
    const auto card = "holdfast_card:{" + held.owner().client_text() + "}";
    ASSERT_TRUE(eventually([&] { return is_there(card); }));
    gate_.stall();
    EXPECT_NE(held.release(), release_outcome::released);
    gate_.abandon();

    // Over a connection that works again, on which a card could be taken away.
    ASSERT_TRUE(eventually([&] { return !error_of([&] { return leaving->inspect("stock"); }); }));
    leaving.reset();

    EXPECT_TRUE(is_there(card)) << "whoever finds the lock may ask whose it was";
}

TEST_F(redis_half_open, a_waiter_over_a_silent_subscription_is_still_served) {
    client holder{address()};
    auto held = mutex{holder, "stock"}.acquire();
    auto waiting = in_background([this] { return mutex{client_, "stock"}.try_acquire_for(20s); });
    EXPECT_TRUE(events_->wait_for(event_kind::contended));

    gate_.stall();
    EXPECT_EQ(held.release(), release_outcome::released);
    gate_.abandon();

    EXPECT_TRUE(waiting.get().has_value());
}

}  // namespace

}  // namespace holdfast::testing
