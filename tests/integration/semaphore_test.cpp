#include <algorithm>
#include <atomic>
#include <thread>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

class semaphore_test : public stage {
protected:
    semaphore near_{client_, "seats", 3};
    semaphore far_{other_, "seats", 3};
};

TEST_F(semaphore_test, as_many_permits_are_out_as_the_limit_says) {
    const auto one = near_.acquire();
    const auto two = near_.acquire();
    const auto three = far_.acquire();
    EXPECT_FALSE(near_.try_acquire().has_value());
    EXPECT_FALSE(far_.try_acquire().has_value());
    EXPECT_EQ(holders("seats").size(), 3U);
}

TEST_F(semaphore_test, several_permits_are_had_together_or_not_at_all) {
    auto two = near_.acquire(2);
    EXPECT_FALSE(far_.try_acquire(2).has_value());
    const auto one = far_.try_acquire(1);
    EXPECT_TRUE(one.has_value());
    EXPECT_FALSE(far_.try_acquire_for(2, 30ms).has_value());
    two.release();
    EXPECT_TRUE(far_.try_acquire(2).has_value());
}

TEST_F(semaphore_test, a_permit_that_is_given_back_wakes_a_waiter_elsewhere) {
    auto all = far_.acquire(3);
    auto waiter = in_background([&] { return near_.acquire(); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    all.release();
    EXPECT_TRUE(waiter.get());
}

TEST_F(semaphore_test, waiting_for_a_permit_can_be_cancelled) {
    const auto all = far_.acquire(3);
    std::stop_source stop;
    auto waiter = in_background([&] { return near_.acquire_unless_stopped(stop.get_token()); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    stop.request_stop();
    EXPECT_FALSE(waiter.get().has_value());
}

TEST_F(semaphore_test, waiting_for_a_permit_ends_by_its_deadline) {
    const auto all = far_.acquire(3);
    const stopwatch watch;
    EXPECT_FALSE(near_.try_acquire_for(60ms).has_value());
    EXPECT_GE(watch.elapsed(), 60ms);
    EXPECT_LT(watch.elapsed(), 1s);
}

TEST_F(semaphore_test, tokens_rise_with_every_permit) {
    const auto first = near_.acquire();
    const auto second = far_.acquire();
    const auto third = near_.acquire();
    EXPECT_LT(first.token(), second.token());
    EXPECT_LT(second.token(), third.token());
}

TEST_F(semaphore_test, a_permit_is_renewed) {
    const auto permit = semaphore(client_, "brief", 1, {.ttl = 600ms}).acquire();
    EXPECT_TRUE(events_->wait_for(event_kind::renewed, 4));
    EXPECT_TRUE(permit);
}

TEST_F(semaphore_test, the_permit_of_a_holder_that_is_cut_off_returns_after_its_ttl) {
    const auto permit = semaphore(client_, "brief", 1, {.ttl = 100ms}).acquire();
    plan_->cut_off();
    EXPECT_TRUE(semaphore(other_, "brief", 1).try_acquire_for(patience).has_value());
    EXPECT_FALSE(permit);
}

TEST_F(semaphore_test, another_limit_is_refused_while_permits_are_out) {
    auto permit = near_.acquire();
    semaphore larger{other_, "seats", 4};
    EXPECT_EQ(error_of([&] { return larger.try_acquire(); }), errc::wrong_kind);
    permit.release();
    EXPECT_TRUE(larger.try_acquire().has_value());
}

TEST_F(semaphore_test, a_name_is_a_lock_or_a_semaphore_but_not_both_at_once) {
    const auto permit = near_.acquire();
    EXPECT_EQ(error_of([&] { return mutex(other_, "seats").try_lock(); }), errc::wrong_kind);
    const auto held = mutex(other_, "stock").acquire();
    EXPECT_EQ(error_of([&] { return semaphore(client_, "stock", 2).try_acquire(); }), errc::wrong_kind);
}

TEST_F(semaphore_test, permits_that_can_never_be_had_are_refused) {
    EXPECT_EQ(error_of([&] { return near_.try_acquire(0); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return near_.acquire(4); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return near_.try_acquire_for(4, 1s); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { semaphore(client_, "none", 0); }), errc::invalid_argument);
    EXPECT_EQ(plan_->calls(call_kind::acquire), 0U);
}

TEST_F(semaphore_test, a_grant_whose_answer_is_lost_takes_one_permit) {
    plan_->lose_replies_of_next(call_kind::acquire);
    const auto permit = near_.acquire();
    EXPECT_EQ(holders("seats").size(), 1U);
}

TEST_F(semaphore_test, many_threads_of_two_clients_never_exceed_the_limit) {
    std::atomic<int> inside{0};
    std::atomic<int> most{0};
    const auto work = [&](semaphore& seats) {
        for (int round = 0; round < 25; ++round) {
            const auto permit = seats.acquire();
            const int now = ++inside;
            for (int seen = most.load(); now > seen && !most.compare_exchange_weak(seen, now);) {
            }
            std::this_thread::yield();
            --inside;
        }
    };
    {
        std::vector<std::jthread> crowd;
        for (int i = 0; i < 4; ++i) {
            crowd.emplace_back([&] { work(near_); });
            crowd.emplace_back([&] { work(far_); });
        }
    }
    EXPECT_LE(most.load(), 3);
    EXPECT_TRUE(holders("seats").empty());
}

}  // namespace

}  // namespace holdfast::testing
