#include <chrono>
#include <string>

#include <holdfast/testing/contender.hpp>
#include <integration/redis/redis_stage.hpp>

/// Servers that hang, forget, restart.
namespace holdfast::testing {

namespace {

class redis_server_faults : public redis_stage {
protected:
    explicit redis_server_faults(redis_server_options options = {}) : redis_stage{std::move(options)} {}

    client client_{make_client({.request_timeout = 300ms})};
};

TEST_F(redis_server_faults, a_holder_is_told_by_the_next_renewal_that_everything_was_flushed) {
    constexpr auto ttl = 3s;
    auto held = mutex{client_, "stock", {.ttl = ttl}}.acquire();
    const auto before = held.token();

    server_.cli({"FLUSHALL"});

    const stopwatch watch;
    EXPECT_TRUE(events_->wait_for(event_kind::lost));
    EXPECT_LT(watch.elapsed(), ttl / 3 + slack);
    EXPECT_EQ(held.loss_reason(), errc::lost);
    EXPECT_TRUE(held.lost().stop_requested());
    EXPECT_EQ(held.release(), release_outcome::already_lost);
    EXPECT_GT(mutex(client_, "stock").acquire().token(), before);
}

TEST_F(redis_server_faults, a_latch_that_was_flushed_does_not_look_open_to_those_who_wait) {
    latch ready{client_, "ready"};
    ASSERT_TRUE(ready.try_set(2));
    auto waiter = in_background([&] { return error_of([&] { return ready.wait_for(patience); }); });
    const std::string channel = "redisson_countdownlatch__channel__{ready}";
    ASSERT_TRUE(eventually([&] {
        return server_.ask({"PUBSUB", "NUMSUB", channel}).items.at(1).integer == 1;
    }));

    server_.cli({"FLUSHALL"});

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), errc::lost);
}

TEST_F(redis_server_faults, a_lease_that_was_flushed_is_not_created_again_by_its_conversion) {
    client other{make_client()};
    shared_mutex stock{client_, "stock", {.ttl = 60s}};
    auto reading = stock.acquire_shared();
    server_.cli({"FLUSHALL"});
    shared_mutex(other, "stock").acquire().release();

    EXPECT_EQ(error_of([&] { return reading.try_upgrade(); }), errc::lost);
    EXPECT_FALSE(is_there("stock"));

    shared_mutex written{client_, "written", {.ttl = 60s}};
    auto writing = written.acquire();
    server_.cli({"FLUSHALL"});
    shared_mutex(other, "written").acquire().release();
    EXPECT_EQ(error_of([&] { return writing.downgrade(); }), errc::lost);
    EXPECT_FALSE(is_there("written"));
}

TEST_F(redis_server_faults, tokens_rise_for_those_who_have_not_noticed_the_flush) {
    mutex stock{client_, "stock"};
    fencing_token last{};
    for (int round = 0; round < 20; ++round) {
        const auto held = stock.acquire();
        EXPECT_GT(held.token(), last);
        last = held.token();
        server_.cli({"FLUSHALL"});
    }
}

/// A server of a cluster may have been another's replica for a while, and have lost what that one
/// granted, without closing a connection.
TEST_F(redis_server_faults, tokens_rise_past_what_was_granted_elsewhere_for_those_who_stay_connected) {
    mutex stock{client_, "stock"};
    stock.acquire().release();
    const auto time = server_.ask({"TIME"}).items;
    const auto elsewhere = std::stoll(time[0].text) * 1'000'000 + std::stoll(time[1].text);
    EXPECT_TRUE(eventually([&] {
        server_.cli({"SET", "holdfast_token", std::to_string(elsewhere - 1000)});  // an old copy
        return stock.acquire().token().value > static_cast<std::uint64_t>(elsewhere);
    }));
}

TEST_F(redis_server_faults, a_lease_that_was_flushed_is_not_created_again_by_its_renewal) {
    const auto held = mutex{client_, "stock", {.ttl = 600ms}}.acquire();
    server_.cli({"FLUSHALL"});
    EXPECT_TRUE(events_->wait_for(event_kind::lost));
    EXPECT_FALSE(is_there("stock"));
}

TEST_F(redis_server_faults, every_call_on_a_server_that_hangs_ends_by_its_deadline) {
    auto held = mutex{client_, "held", {.ttl = 30s, .release_timeout = 400ms}}.acquire();
    mutex stock{client_, "stock"};
    const auto took = [](const auto& call) {
        const stopwatch watch;
        call();
        return watch.elapsed();
    };
    server_.pause();

    EXPECT_LT(took([&] { EXPECT_TRUE(error_of([&] { return stock.try_acquire_for(600ms); })); }),
              600ms + slack);
    EXPECT_LT(took([&] { EXPECT_TRUE(error_of([&] { return stock.try_lock(); })); }), 300ms + slack);
    EXPECT_LT(took([&] { EXPECT_TRUE(error_of([&] { return client_.inspect("stock"); })); }),
              300ms + slack);
    EXPECT_LT(took([&] { EXPECT_TRUE(error_of([&] { return client_.list(); })); }), 300ms + slack);
    EXPECT_LT(took([&] {
                  EXPECT_TRUE(error_of([&] {
                      return client_.revoke("stock", held.owner(), held.token(), "for the test");
                  }));
              }),
              300ms + slack);
    EXPECT_LT(took([&] { EXPECT_EQ(held.release(), release_outcome::unknown); }), 400ms + slack);
    server_.resume();
}

TEST_F(redis_server_faults, a_call_without_a_deadline_gives_a_server_that_hangs_up_after_its_patience) {
    auto patient = make_client({.request_timeout = 200ms, .outage_patience = 600ms});
    mutex stock{patient, "stock"};
    server_.pause();

    const stopwatch watch;
    EXPECT_EQ(error_of([&] { stock.lock(); }), errc::outcome_unknown);
    EXPECT_GT(watch.elapsed(), 500ms);
    EXPECT_LT(watch.elapsed(), 800ms + slack);
    server_.resume();
}

TEST_F(redis_server_faults, work_goes_on_when_a_server_that_hung_comes_back) {
    mutex stock{client_, "stock"};
    server_.pause();
    EXPECT_TRUE(error_of([&] { return stock.try_acquire_for(500ms); }));

    server_.resume();

    auto held = stock.try_acquire_for(5s);
    ASSERT_TRUE(held.has_value());
    EXPECT_EQ(server_.cli({"HGETALL", "stock"}), held->owner().text() + "\n1");
}

TEST_F(redis_server_faults, a_lease_is_lost_by_the_holders_own_clock_while_the_server_hangs) {
    constexpr auto ttl = 800ms;
    const stopwatch since_before_the_grant;
    auto held = mutex{client_, "stock", {.ttl = ttl, .renewal = renewal_mode::none}}.acquire();
    server_.pause();

    EXPECT_TRUE(events_->wait_for(event_kind::lost));
    EXPECT_LT(since_before_the_grant.elapsed(), ttl + slack);
    EXPECT_EQ(held.loss_reason(), errc::lost);
    server_.resume();

    EXPECT_EQ(held.release(), release_outcome::already_lost);
    EXPECT_TRUE(mutex(client_, "stock").try_acquire_for(5s).has_value());
}

TEST_F(redis_server_faults,
       a_lease_with_renewal_is_lost_when_the_server_hangs_for_longer_than_its_ttl) {
    constexpr auto ttl = 900ms;
    auto held = mutex{client_, "stock", {.ttl = ttl}}.acquire();
    server_.pause();
    const stopwatch watch;

    EXPECT_TRUE(events_->wait_for(event_kind::lost));
    EXPECT_LT(watch.elapsed(), ttl + slack);
    EXPECT_FALSE(held);
    EXPECT_GT(events_->count(event_kind::renewal_failed), 0);
    server_.resume();

    // A renewal that waited in the server's ears must not leave a lock that nobody has.
    EXPECT_EQ(held.release(), release_outcome::already_lost);
    client other{address()};
    EXPECT_TRUE(mutex(other, "stock").try_acquire_for(5s).has_value());
}

TEST_F(redis_server_faults, a_holder_is_told_when_the_server_restarts_without_its_data) {
    auto held = mutex{client_, "stock", {.ttl = 3s}}.acquire();
    const auto before = held.token();

    server_.kill_hard();
    server_.start_again(data_files::removed);

    EXPECT_TRUE(events_->wait_for(event_kind::lost));
    EXPECT_EQ(held.loss_reason(), errc::lost);
    const auto next = mutex{client_, "stock"}.try_acquire_for(5s);
    ASSERT_TRUE(next.has_value());
    EXPECT_GT(next->token(), before);
}

TEST_F(redis_server_faults, a_restarted_server_is_known_for_another_by_its_first_answer) {
    contender alice{address(), "alice"};
    alice.hold("stock");
    const auto before = alice.store().raw().offers().votes->instance("stock");
    EXPECT_EQ(before.id, server_.info("run_id"));

    server_.kill_hard();
    const auto restarted = clock::now();
    server_.start_again(data_files::removed);
    using outcome = engines::acquire_reply::outcome;
    ASSERT_TRUE(eventually([&] {
        alice.become_fresh_owner();
        return alice.acquire("stock").result == outcome::granted;
    }));

    const auto after = alice.store().raw().offers().votes->instance("stock");
    EXPECT_NE(after.id, before.id);
    ASSERT_TRUE(after.since.has_value());
    EXPECT_GE(*after.since, restarted);
}

TEST_F(redis_server_faults, a_restarted_server_is_never_taken_for_older_than_it_is) {
    contender alice{address(), "alice"};
    const auto late_in_a_second = [] {
        return std::chrono::system_clock::now().time_since_epoch() % 1s > 900ms;
    };
    ASSERT_TRUE(eventually(late_in_a_second, 2s));
    server_.kill_hard();
    const auto restarted = clock::now();
    server_.start_again(data_files::removed);
    // It subtracts whole seconds from whole seconds, and says so a moment after it has started.
    ASSERT_TRUE(eventually([&] { return server_.info("uptime_in_seconds") != "0"; }));
    using outcome = engines::acquire_reply::outcome;
    ASSERT_TRUE(eventually([&] {
        alice.become_fresh_owner();
        return alice.acquire("stock").result == outcome::granted;
    }));

    const auto since = alice.store().raw().offers().votes->instance("stock").since;
    ASSERT_TRUE(since.has_value());
    EXPECT_GE(*since, restarted);
}

TEST_F(redis_server_faults, calls_end_by_their_deadlines_while_the_server_is_down) {
    mutex stock{client_, "stock"};
    server_.kill_hard();

    const stopwatch watch;
    EXPECT_EQ(error_of([&] { return stock.try_acquire_for(500ms); }), errc::store_unavailable);
    EXPECT_LT(watch.elapsed(), 500ms + slack);
    const stopwatch once;
    EXPECT_EQ(error_of([&] { return stock.try_lock(); }), errc::store_unavailable);
    EXPECT_LT(once.elapsed(), 300ms + slack);
}

TEST_F(redis_server_faults, a_waiter_gets_the_lock_after_the_server_came_back) {
    mutex stock{client_, "stock"};
    server_.kill_hard();
    auto waiting = in_background([&] { return stock.try_acquire_for(20s); });
    EXPECT_TRUE(eventually([&] { return client_.requests() >= 3; }));

    server_.start_again(data_files::removed);

    const stopwatch watch;
    EXPECT_TRUE(waiting.get().has_value());
    EXPECT_LT(watch.elapsed(), 2s + slack);
}

class redis_with_persistence : public redis_server_faults {
protected:
    redis_with_persistence()
        : redis_server_faults{{.arguments = {"--appendonly", "yes", "--appendfsync", "always"}}} {}
};

TEST_F(redis_with_persistence, a_lease_survives_a_restart_within_its_ttl) {
    auto held = mutex{client_, "stock", {.ttl = 12s}}.acquire();

    server_.kill_hard();
    server_.start_again(data_files::kept);

    EXPECT_EQ(field_of(held), "1");
    const auto renewals = events_->count(event_kind::renewed);
    EXPECT_TRUE(events_->wait_for(event_kind::renewed, renewals + 1));
    EXPECT_TRUE(held);
    EXPECT_EQ(held.release(), release_outcome::released);
}

TEST_F(redis_with_persistence, tokens_rise_over_a_restart) {
    const auto before = mutex{client_, "stock"}.acquire().token();

    server_.kill_hard();
    server_.start_again(data_files::kept);

    const auto next = mutex{client_, "stock"}.try_acquire_for(5s);
    ASSERT_TRUE(next.has_value());
    EXPECT_GT(next->token(), before);
}

}  // namespace

}  // namespace holdfast::testing
