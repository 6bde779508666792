#include <future>

#include <holdfast/testing/forwarding_engine.hpp>

#include "blocking_calls.hpp"
#include "stage.hpp"

/// A caller leaves at its deadline, or when it is stopped, whatever the store does.
namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

/// Longer than any test takes: whoever waits for a request to end is noticed.
constexpr std::chrono::milliseconds very_long = 30s;
/// What leaving may take on a machine that has other things to do.
constexpr std::chrono::milliseconds at_once = 5s;

/// A store that can be examined, as those in memory cannot.
class examined_engine final : public forwarding_engine, public engines::examination {
public:
    using forwarding_engine::forwarding_engine;

    [[nodiscard]] engines::abilities offers() noexcept override {
        auto offered = inner().offers();
        offered.examination = this;
        return offered;
    }
    void examine(engines::call, engines::completion<engines::examine_reply> done) override { done({}); }
};

/// With a store that hangs, and keeps the threads of its callers.
class leaving_test : public stage {
protected:
    leaving_test() {
        plan_->keep_callers();
        plan_->go_silent();
    }

    [[nodiscard]] client slow_client(std::chrono::milliseconds request_timeout) const {
        const auto identity = engines::make_identity();
        return client{std::make_unique<fault_engine>(
                          std::make_unique<examined_engine>(engines::open(address_, identity)), plan_),
                      identity,
                      {.request_timeout = request_timeout, .outage_patience = very_long}};
    }
    /// True when it has made a request, which will not end for long.
    [[nodiscard]] static bool is_asking(const client& store) {
        return eventually([&] { return store.requests() > 0; });
    }
};

TEST_F(leaving_test, a_stop_ends_every_call_while_its_request_is_under_way) {
    for (const auto& call : stoppable_calls()) {
        SCOPED_TRACE(call.name);
        client store{slow_client(very_long)};
        std::stop_source stop;
        auto result = in_background([&] { return call.make(store, {.stop = stop.get_token()}); });
        ASSERT_TRUE(is_asking(store));
        stop.request_stop();
        ASSERT_EQ(result.wait_for(at_once), std::future_status::ready);
        EXPECT_FALSE(result.get());
        store.shutdown(0ms);
    }
}

TEST_F(leaving_test, a_deadline_ends_every_call_while_its_request_is_under_way) {
    for (const auto& call : timed_calls()) {
        SCOPED_TRACE(call.name);
        client store{slow_client(very_long)};
        auto result =
            in_background([&] { return error_of([&] { return call.make(store, {.time = 100ms}); }); });
        ASSERT_EQ(result.wait_for(at_once), std::future_status::ready);
        store.shutdown(0ms);
    }
}

TEST_F(leaving_test, every_request_ends_with_the_request_timeout) {
    for (const auto& call : single_requests()) {
        SCOPED_TRACE(call.name);
        client store{slow_client(100ms)};
        auto result = in_background([&] { return error_of([&] { return call.make(store, {}); }); });
        ASSERT_EQ(result.wait_for(at_once), std::future_status::ready);
        EXPECT_EQ(result.get(), errc::outcome_unknown);
        store.shutdown(0ms);
    }
}

TEST_F(leaving_test, a_stopped_call_says_so_and_does_not_throw_although_the_store_hangs) {
    client store{slow_client(very_long)};
    mutex lock{store, "x"};
    std::stop_source stop;
    auto result = in_background(
        [&] { return error_of([&] { return lock.lock_unless_stopped(stop.get_token()); }); });
    ASSERT_TRUE(is_asking(store));
    stop.request_stop();
    EXPECT_EQ(result.get(), std::error_code{});
    store.shutdown(0ms);
}

/// With a store that does what it is asked, and answers late.
class leaving_early_test : public stage {
protected:
    leaving_early_test() { plan_->keep_callers(); }
};

TEST_F(leaving_early_test, what_is_granted_to_somebody_who_left_is_given_back) {
    for (const auto& call : stoppable_calls()) {
        if (call.name.starts_with("latch")) {
            continue;  // nothing is granted
        }
        SCOPED_TRACE(call.name);
        client store{make_client({.request_timeout = very_long})};
        std::stop_source stop;
        plan_->delay_replies_of_next(call_kind::acquire);
        auto result = in_background([&] { return call.make(store, {.stop = stop.get_token()}); });
        ASSERT_TRUE(plan_->wait_until_held(1, patience));
        ASSERT_FALSE(other_.list().locks.empty());
        stop.request_stop();
        ASSERT_EQ(result.wait_for(at_once), std::future_status::ready);
        EXPECT_FALSE(result.get());
        EXPECT_FALSE(other_.list().locks.empty());
        plan_->let_go();
        EXPECT_TRUE(eventually([&] { return other_.list().locks.empty(); }));
    }
}

TEST_F(leaving_early_test,
       a_request_that_reaches_the_store_after_its_caller_left_leaves_nothing_behind) {
    client store{make_client({.request_timeout = very_long})};
    mutex lock{store, "x"};
    std::stop_source stop;
    plan_->delay_next(call_kind::acquire);
    auto result =
        in_background([&] { return lock.acquire_unless_stopped(stop.get_token()).has_value(); });
    ASSERT_TRUE(plan_->wait_until_held(1, patience));
    stop.request_stop();
    EXPECT_FALSE(result.get());
    plan_->let_go();
    ASSERT_TRUE(plan_->wait_for_calls(call_kind::release, 1, patience));
    EXPECT_TRUE(becomes_free("x"));
}

TEST_F(leaving_early_test, shutdown_does_not_wait_for_a_caller_whose_request_is_under_way) {
    client store{make_client({.request_timeout = very_long})};
    mutex lock{store, "x"};
    plan_->delay_replies_of_next(call_kind::acquire);
    auto waiter = in_background([&] { return error_of([&] { lock.lock(); }); });
    ASSERT_TRUE(plan_->wait_until_held(1, patience));
    auto closing = in_background([&] { return store.shutdown(100ms).size(); });
    ASSERT_EQ(closing.wait_for(at_once), std::future_status::ready);
    EXPECT_EQ(closing.get(), 1U);
    plan_->let_go();
    EXPECT_EQ(waiter.get(), errc::shut_down);
}

TEST_F(leaving_early_test, nor_for_one_who_looks_at_the_store) {
    client store{make_client({.request_timeout = very_long})};
    plan_->delay_replies_of_next(call_kind::list);
    auto looking = in_background([&] { return store.list().locks.size(); });
    ASSERT_TRUE(plan_->wait_until_held(1, patience));
    auto closing = in_background([&] { return store.shutdown(100ms).size(); });
    ASSERT_EQ(closing.wait_for(at_once), std::future_status::ready);
    EXPECT_EQ(closing.get(), 0U);
    plan_->let_go();
    EXPECT_EQ(looking.get(), 0U);
}

TEST_F(leaving_early_test, a_stop_that_comes_with_the_grant_leaves_no_lock_behind) {
    client store{make_client()};
    mutex lock{store, "x"};
    for (int round = 0; round < 200; ++round) {
        std::stop_source stop;
        auto stopper = in_background([&] { stop.request_stop(); });
        if (auto held = lock.acquire_unless_stopped(stop.get_token())) {
            EXPECT_TRUE(*held);
            held->release();
        }
        stopper.get();
    }
    EXPECT_TRUE(becomes_free("x"));
}

/// Those who wait for a latch.
class leaving_latch_test : public stage {
protected:
    leaving_latch_test() { plan_->keep_callers(); }

    client store_{make_client({.request_timeout = very_long, .outage_patience = very_long})};
    latch ready_{store_, "ready"};
};

TEST_F(leaving_latch_test, shutdown_ends_the_waiting_while_the_store_hangs) {
    ASSERT_TRUE(ready_.try_set(1));
    plan_->go_silent();
    auto waiter = in_background([&] { return error_of([&] { ready_.wait(); }); });
    ASSERT_TRUE(plan_->wait_for_calls(call_kind::latch, 2, patience));
    auto closing = in_background([&] { store_.shutdown(100ms); });
    ASSERT_EQ(waiter.wait_for(at_once), std::future_status::ready);
    EXPECT_EQ(waiter.get(), errc::shut_down);
    ASSERT_EQ(closing.wait_for(at_once), std::future_status::ready);
}

TEST_F(leaving_latch_test, the_deadline_counts_when_the_store_begins_to_hang_later) {
    ASSERT_TRUE(ready_.try_set(1));
    auto waiter = in_background([&] { return error_of([&] { return ready_.wait_for(1500ms); }); });
    ASSERT_TRUE(eventually([&] { return other_.inspect("ready").waiters == 1U; }));
    plan_->go_silent();
    ASSERT_EQ(waiter.wait_for(at_once + 1500ms), std::future_status::ready);
}

}  // namespace

}  // namespace holdfast::testing
