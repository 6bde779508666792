#include <atomic>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;
using kinds = std::vector<event_kind>;

class observer_test : public stage {
protected:
    /// Everything the client did, once it has been told.
    [[nodiscard]] std::vector<event> all_events() {
        client_.shutdown(5s);
        return events_->events();
    }
    [[nodiscard]] kinds all_kinds() {
        client_.shutdown(5s);
        return events_->kinds();
    }

    mutex stock_{client_, "stock"};
    mutex elsewhere_{other_, "stock"};
};

/// Does nothing until it is let go, and counts what it was told.
class stuck_observer final : public observer {
public:
    void on_event(const event&) noexcept override {
        stuck_.open();
        go_on_.wait();
        ++told_;
    }
    void wait_until_stuck() const { ASSERT_TRUE(stuck_.wait()); }
    void let_go() { go_on_.open(); }
    [[nodiscard]] std::size_t told() const { return told_.load(); }

private:
    gate stuck_;
    gate go_on_;
    std::atomic<std::size_t> told_{0};
};

TEST_F(observer_test, a_free_lock_is_acquired_and_released) {
    auto held = stock_.acquire();
    const auto token = held.token();
    const auto owner = held.owner();
    held.release();
    const auto seen = all_events();
    ASSERT_EQ(events_->kinds(), (kinds{event_kind::acquired, event_kind::released}));
    EXPECT_EQ(seen.at(0).name, "stock");
    EXPECT_EQ(seen.at(0).token, token);
    EXPECT_EQ(seen.at(0).owner, owner);
    EXPECT_EQ(seen.at(1).token, token);
    EXPECT_EQ(seen.at(1).owner, owner);
    EXPECT_GT(seen.at(1).duration, 0ns);
}

TEST_F(observer_test, a_lock_that_stays_busy_is_contended_and_not_acquired) {
    const auto busy = elsewhere_.acquire();
    EXPECT_FALSE(stock_.try_lock_for(200ms));
    const auto seen = all_events();
    ASSERT_EQ(events_->kinds(), (kinds{event_kind::contended, event_kind::not_acquired}));
    EXPECT_EQ(seen.at(1).error.code, errc::busy);
    // It counts from when the call is heard of; the deadline counts from when it is made.
    EXPECT_GT(seen.at(1).duration, 100ms);
}

TEST_F(observer_test, a_lock_that_becomes_free_is_contended_and_acquired) {
    auto busy = elsewhere_.acquire();
    auto waiter = in_background([&] { stock_.lock(); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    busy.release();
    waiter.get();
    stock_.unlock();
    EXPECT_EQ(all_kinds(), (kinds{event_kind::contended, event_kind::acquired, event_kind::released}));
}

TEST_F(observer_test, a_busy_lock_that_is_tried_once_is_not_acquired) {
    const auto busy = elsewhere_.acquire();
    EXPECT_FALSE(stock_.try_lock());
    EXPECT_EQ(all_kinds(), (kinds{event_kind::not_acquired}));
}

TEST_F(observer_test, a_cancelled_wait_is_not_acquired_and_says_why) {
    const auto busy = elsewhere_.acquire();
    std::stop_source stop;
    auto waiter = in_background([&] { return stock_.lock_unless_stopped(stop.get_token()); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    stop.request_stop();
    EXPECT_FALSE(waiter.get());
    ASSERT_TRUE(events_->wait_for(event_kind::not_acquired));
    EXPECT_EQ(events_->last(event_kind::not_acquired).error.code, errc::cancelled);
}

TEST_F(observer_test, a_lock_granted_without_tokens_to_spare_goes_back_to_the_store_first) {
    stock_.lock();
    auto waiter = in_background([&] {
        stock_.lock();
        stock_.unlock();
    });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    stock_.unlock();
    waiter.get();
    // The first lock was granted without a token to spare, so the second thread asks the store.
    EXPECT_EQ(all_kinds(), (kinds{event_kind::acquired, event_kind::contended, event_kind::released,
                                  event_kind::acquired, event_kind::released}));
}

TEST_F(observer_test, threads_that_wait_together_hand_the_lock_over) {
    // Held here: so nobody is asking the store while the second one joins, and the one request that
    // follows is for both.
    stock_.lock();
    const auto lock_once = [&] {
        stock_.lock();
        stock_.unlock();
    };
    auto first = in_background(lock_once);
    ASSERT_TRUE(events_->wait_for(event_kind::contended, 1));
    auto second = in_background(lock_once);
    ASSERT_TRUE(events_->wait_for(event_kind::contended, 2));
    stock_.unlock();
    first.get();
    second.get();
    const auto seen = all_events();
    ASSERT_EQ(events_->kinds(),
              (kinds{event_kind::acquired, event_kind::contended, event_kind::contended,
                     event_kind::released, event_kind::acquired, event_kind::released,
                     event_kind::handed_over, event_kind::released}));
    EXPECT_LT(seen.at(4).token, seen.at(6).token);
}

TEST_F(observer_test, renewals_are_told) {
    const auto held = mutex{client_, "short", {.ttl = 600ms}}.acquire();
    ASSERT_TRUE(events_->wait_for(event_kind::renewed));
    EXPECT_EQ(events_->last(event_kind::renewed).token, held.token());
}

TEST_F(observer_test, renewals_that_fail_end_in_jeopardy_and_loss) {
    const auto held = mutex{client_, "short", {.ttl = 300ms}}.acquire();
    plan_->cut_off();
    ASSERT_TRUE(events_->wait_for(event_kind::lost));
    auto seen = events_->kinds();
    std::erase(seen, event_kind::renewal_failed);
    EXPECT_EQ(seen, (kinds{event_kind::acquired, event_kind::jeopardy, event_kind::lost}));
    EXPECT_GE(events_->count(event_kind::renewal_failed), 2U);
    EXPECT_EQ(events_->last(event_kind::renewal_failed).error.code, errc::store_unavailable);
    EXPECT_EQ(events_->last(event_kind::lost).error.code, errc::lost);
    EXPECT_GT(events_->last(event_kind::lost).duration, 200ms);
}

TEST_F(observer_test, a_release_without_an_answer_is_unconfirmed) {
    mutex stock{client_, "stock", {.release_timeout = 50ms}};
    stock.lock();
    plan_->cut_off();
    stock.unlock();
    ASSERT_TRUE(events_->wait_for(event_kind::release_unconfirmed));
    EXPECT_EQ(events_->last(event_kind::release_unconfirmed).error.code, errc::store_unavailable);
    EXPECT_EQ(events_->count(event_kind::released), 0U);
}

TEST_F(observer_test, unlocking_a_lost_lock_adds_nothing_to_its_loss) {
    stock_.lock();
    revoke();
    ASSERT_TRUE(events_->wait_for(event_kind::lost));
    stock_.unlock();
    EXPECT_EQ(all_kinds(), (kinds{event_kind::acquired, event_kind::lost}));
}

TEST_F(observer_test, a_loss_found_only_when_unlocking_is_told_as_a_loss) {
    stock_.lock();
    plan_->drop_hints();
    revoke();
    stock_.unlock();
    EXPECT_EQ(all_kinds(), (kinds{event_kind::acquired, event_kind::lost}));
}

TEST_F(observer_test, a_slow_observer_delays_nobody) {
    const auto slow = std::make_shared<stuck_observer>();
    client busy{make_client({.events = slow})};
    mutex stock{busy, "stock"};
    stock.lock();
    slow->wait_until_stuck();
    stock.unlock();
    for (int round = 0; round < 100; ++round) {
        stock.lock();
        stock.unlock();
    }
    EXPECT_EQ(slow->told(), 0U);
    slow->let_go();
    busy.shutdown(5s);
    EXPECT_EQ(slow->told(), 202U);
}

TEST_F(observer_test, a_stuck_observer_keeps_a_bounded_number_of_events_waiting) {
    const auto slow = std::make_shared<stuck_observer>();
    client busy{make_client({.events = slow})};
    mutex stock{busy, "stock"};
    stock.lock();
    slow->wait_until_stuck();
    stock.unlock();
    for (int round = 0; round < 3000; ++round) {
        stock.lock();
        stock.unlock();
    }
    EXPECT_EQ(busy.dropped_events(), 2U + 2 * 3000U - 1U - 4096U);
    slow->let_go();
    busy.shutdown(5s);
    EXPECT_EQ(slow->told(), 1U + 4096U);
}

TEST_F(observer_test, a_loss_is_told_however_many_events_are_dropped) {
    const auto slow = std::make_shared<stuck_observer>();
    client busy{make_client({.events = slow})};
    const auto held = mutex{busy, "held"}.acquire();
    gate told;
    const std::stop_callback callback{held.lost(), [&] { told.open(); }};
    slow->wait_until_stuck();
    mutex stock{busy, "stock"};
    for (int round = 0; round < 3000; ++round) {
        stock.lock();
        stock.unlock();
    }
    revoke("held");
    EXPECT_TRUE(told.wait());
    slow->let_go();
}

TEST_F(observer_test, an_observer_that_does_not_return_delays_no_loss) {
    const auto stuck = std::make_shared<stuck_observer>();
    client busy{make_client({.events = stuck})};
    const auto held = mutex{busy, "held"}.acquire();
    gate told;
    const std::stop_callback callback{held.lost(), [&] { told.open(); }};
    stuck->wait_until_stuck();
    revoke("held");
    EXPECT_TRUE(told.wait(patience / 2));
    EXPECT_EQ(stuck->told(), 0U);
    stuck->let_go();
}

TEST_F(observer_test, an_observer_that_does_not_return_delays_no_shutdown) {
    auto stuck = std::make_shared<stuck_observer>();
    client busy{make_client({.events = stuck})};
    mutex stock{busy, "stock"};
    stock.lock();
    stuck->wait_until_stuck();
    stock.unlock();
    const stopwatch watch;
    EXPECT_TRUE(busy.shutdown(5s).empty());
    EXPECT_LT(watch.elapsed(), patience / 2);
    EXPECT_EQ(stuck->told(), 0U);
    // What was queued behind it is dropped: nothing is told after the one that was under way.
    stuck->let_go();
    EXPECT_TRUE(eventually([&] { return stuck->told() == 1; }));
    EXPECT_TRUE(eventually([&] { return stuck.use_count() <= 2; }));
    EXPECT_EQ(stuck->told(), 1U);
}

TEST_F(observer_test, events_that_a_shutdown_drops_are_counted) {
    const auto stuck = std::make_shared<stuck_observer>();
    client busy{make_client({.events = stuck})};
    mutex stock{busy, "stock"};
    stock.lock();
    stuck->wait_until_stuck();
    stock.unlock();
    for (int round = 0; round < 10; ++round) {
        stock.lock();
        stock.unlock();
    }
    EXPECT_EQ(busy.dropped_events(), 0U);
    busy.shutdown(5s);
    EXPECT_EQ(busy.dropped_events(), 21U);
    stuck->let_go();
}

/// Shuts its client down when it is told of the first event.
class leaving_observer final : public observer {
public:
    void on_event(const event&) noexcept override {
        ++told_;
        begun_.open();
        go_on_.wait();
        client_->shutdown(5s);
        over_.open();
    }
    void watch(client& its_client) { client_ = &its_client; }
    [[nodiscard]] bool wait_until_told() const { return begun_.wait(); }
    [[nodiscard]] bool let_it_shut_down() {
        go_on_.open();
        return over_.wait();
    }
    [[nodiscard]] std::size_t told() const { return told_.load(); }

private:
    client* client_{};
    gate begun_;
    gate go_on_;
    gate over_;
    std::atomic<std::size_t> told_{0};
};

TEST_F(observer_test, one_that_shuts_its_client_down_is_told_nothing_afterwards) {
    auto leaving = std::make_shared<leaving_observer>();
    client watched{make_client({.events = leaving})};
    leaving->watch(watched);
    mutex stock{watched, "stock"};
    stock.lock();
    ASSERT_TRUE(leaving->wait_until_told());
    stock.unlock();
    ASSERT_TRUE(leaving->let_it_shut_down());
    EXPECT_TRUE(eventually([&] { return leaving.use_count() <= 2; })) << "nothing is queued any more";
    EXPECT_EQ(leaving->told(), 1U);
}

TEST_F(observer_test, a_loss_callback_that_does_not_return_delays_no_shutdown) {
    client busy{make_client({})};
    const auto held = mutex{busy, "held"}.acquire();
    gate stuck;
    gate go_on;
    const std::stop_callback callback{held.lost(), [&] {
                                          stuck.open();
                                          go_on.wait();
                                      }};
    revoke("held");
    ASSERT_TRUE(stuck.wait());
    const stopwatch watch;
    busy.shutdown(5s);
    EXPECT_LT(watch.elapsed(), patience / 2);
    go_on.open();
}

TEST_F(observer_test, every_kind_of_event_has_a_name_of_its_own) {
    EXPECT_EQ(to_string(event_kind::acquired), "acquired");
    EXPECT_EQ(to_string(event_kind::release_unconfirmed), "release_unconfirmed");
    EXPECT_EQ(to_string(event_kind::lost), "lost");
    EXPECT_EQ(to_string(release_outcome::already_lost), "already lost");
}

TEST(names, what_a_log_shows_has_a_name) {
    EXPECT_EQ(to_string(claim_mode::shared), "shared");
    EXPECT_EQ(to_string(liveness::dead), "dead");
    EXPECT_EQ(to_string(finding::severity::unchecked), "unchecked");
    EXPECT_EQ(to_string(scope::fleet), "fleet");
    EXPECT_EQ(to_string(engines::fencing::best_effort), "best_effort");
    EXPECT_EQ(to_string(taking::outcome::not_enough), "not enough");
}

}  // namespace

}  // namespace holdfast::testing
