#include <atomic>
#include <filesystem>
#include <thread>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

class shutdown_test : public stage {
protected:
    mutex stock_{client_, "stock"};
};

TEST_F(shutdown_test, everything_is_given_back) {
    const auto held = stock_.acquire();
    shared_mutex catalogue{client_, "catalogue"};
    const auto reading = catalogue.acquire_shared();
    semaphore seats{client_, "seats", 3};
    const auto two = seats.acquire(2);
    EXPECT_TRUE(client_.shutdown(5s).empty());
    EXPECT_TRUE(other_.list().locks.empty());
}

TEST_F(shutdown_test, every_lease_is_told) {
    const auto held = stock_.acquire();
    gate told;
    const std::stop_callback callback{held.lost(), [&] { told.open(); }};
    client_.shutdown(5s);
    EXPECT_TRUE(told.wait());
    EXPECT_FALSE(held);
    EXPECT_TRUE(held.lost().stop_requested());
    EXPECT_EQ(held.loss_reason(), errc::shut_down);
}

TEST_F(shutdown_test, leases_know_it_before_the_lock_is_anybody_elses) {
    const auto held = stock_.acquire();
    auto next = in_background([&] {
        const auto taken = mutex{other_, "stock"}.acquire();
        return !held;
    });
    ASSERT_TRUE(eventually([&] { return other_.inspect("stock").waiters == 1U; }));
    client_.shutdown(5s);
    EXPECT_TRUE(next.get());
}

TEST_F(shutdown_test, waiters_are_woken_with_an_error) {
    const auto busy = mutex{other_, "stock"}.acquire();
    auto forever = in_background([&] { return error_of([&] { stock_.lock(); }); });
    auto for_a_while = in_background([&] { return error_of([&] { return stock_.try_lock_for(1h); }); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended, 2));
    const stopwatch watch;
    client_.shutdown(5s);
    EXPECT_EQ(forever.get(), errc::shut_down);
    EXPECT_EQ(for_a_while.get(), errc::shut_down);
    EXPECT_LT(watch.elapsed(), 2s);
}

TEST_F(shutdown_test, those_who_wait_for_a_latch_are_woken_with_an_error) {
    latch ready{client_, "ready"};
    ASSERT_TRUE(ready.try_set(1));
    auto waiter = in_background([&] { return error_of([&] { ready.wait(); }); });
    ASSERT_TRUE(eventually([&] { return other_.inspect("ready").waiters == 1U; }));
    client_.shutdown(5s);
    EXPECT_EQ(waiter.get(), errc::shut_down);
}

TEST_F(shutdown_test, those_who_wait_for_a_latch_of_the_local_store_outlive_its_engine) {
    const auto directory =
        std::filesystem::temp_directory_path() / owner_id::random_client().client_text();
    {
        client local{"local:" + directory.string()};
        client witness{"local:" + directory.string()};
        latch ready{local, "ready"};
        ASSERT_TRUE(ready.try_set(1));
        auto waiter = in_background([&] { return error_of([&] { ready.wait(); }); });
        ASSERT_TRUE(eventually([&] { return witness.inspect("ready").waiters.value_or(1) == 1U; }));
        local.shutdown(5s);
        EXPECT_EQ(waiter.get(), errc::shut_down);
    }
    std::filesystem::remove_all(directory);
}

TEST_F(shutdown_test, what_could_not_be_given_back_is_reported_in_time) {
    const auto held = stock_.acquire();
    const auto token = held.token();
    plan_->cut_off();
    const stopwatch watch;
    const auto left = client_.shutdown(200ms);
    EXPECT_LT(watch.elapsed(), 2s);
    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(left.at(0).name, "stock");
    EXPECT_EQ(left.at(0).token, token);
    EXPECT_EQ(left.at(0).error.code, errc::store_unavailable);
    EXPECT_FALSE(held);
}

TEST_F(shutdown_test, a_silent_store_is_waited_for_no_longer_than_the_timeout) {
    const auto held = stock_.acquire();
    plan_->go_silent();
    const stopwatch watch;
    EXPECT_EQ(client_.shutdown(200ms).size(), 1U);
    EXPECT_GE(watch.elapsed(), 200ms);
    EXPECT_LT(watch.elapsed(), 2s);
}

TEST_F(shutdown_test, a_store_that_comes_back_in_time_leaves_nothing_to_report) {
    const auto held = stock_.acquire();
    plan_->cut_off();
    auto left = in_background([&] { return client_.shutdown(patience); });
    ASSERT_TRUE(plan_->wait_for_calls(call_kind::release, 2, patience));
    plan_->heal();
    EXPECT_TRUE(left.get().empty());
    EXPECT_TRUE(holders().empty());
}

TEST_F(shutdown_test, an_earlier_release_without_an_answer_is_reported_as_well) {
    auto held = mutex{client_, "stock", {.release_timeout = 20ms}}.acquire();
    plan_->cut_off();
    ASSERT_EQ(held.release(), release_outcome::unknown);
    const auto left = client_.shutdown(100ms);
    EXPECT_EQ(holders().size(), 1U);
    EXPECT_EQ(left.size(), 1U);
}

TEST_F(shutdown_test, a_thread_that_waits_for_its_release_is_answered) {
    auto held = mutex{client_, "stock", {.release_timeout = 1min}}.acquire();
    plan_->cut_off();
    auto releasing = in_background([&] { return held.release(); });
    ASSERT_TRUE(plan_->wait_for_calls(call_kind::release, 2, patience));
    EXPECT_EQ(client_.shutdown(100ms).size(), 1U);
    ASSERT_TRUE(gets_done(releasing));
    EXPECT_EQ(releasing.get(), release_outcome::unknown);
}

TEST_F(shutdown_test, a_thread_whose_release_is_under_way_is_answered) {
    auto held = mutex{client_, "stock", {.release_timeout = 1min}}.acquire();
    plan_->delay_next(call_kind::release);
    auto releasing = in_background([&] { return held.release(); });
    ASSERT_TRUE(plan_->wait_for_calls(call_kind::release, 1, patience));
    EXPECT_EQ(client_.shutdown(100ms).size(), 1U);
    plan_->cut_off();
    plan_->let_go();
    ASSERT_TRUE(gets_done(releasing));
}

TEST_F(shutdown_test, a_grant_whose_answer_comes_in_time_is_given_back) {
    plan_->delay_replies_of_next(call_kind::acquire);
    auto waiter = in_background([&] { return error_of([&] { stock_.lock(); }); });
    ASSERT_TRUE(plan_->wait_until_held(1, patience));
    auto left = in_background([&] { return client_.shutdown(patience); });
    EXPECT_EQ(waiter.get(), errc::shut_down) << "the shutdown has begun";
    EXPECT_EQ(holders().size(), 1U);
    plan_->let_go();
    EXPECT_TRUE(left.get().empty());
    EXPECT_TRUE(holders().empty());
}

TEST_F(shutdown_test, a_grant_whose_answer_does_not_come_in_time_is_given_back_or_reported) {
    const auto neighbour = mutex{client_, "neighbour"}.acquire();
    plan_->delay_replies_of_next(call_kind::acquire);
    auto waiter = in_background([&] { return error_of([&] { stock_.lock(); }); });
    ASSERT_TRUE(plan_->wait_until_held(1, patience));
    const auto left = client_.shutdown(300ms);
    EXPECT_EQ(waiter.get(), errc::shut_down);
    ASSERT_EQ(holders().size(), left.size()) << "what is reported is there, and nothing else";
    for (const auto& one : left) {
        EXPECT_EQ(one.name, "stock");
    }
    EXPECT_TRUE(holders("neighbour").empty());
    EXPECT_EQ(neighbour.loss_reason(), errc::shut_down);
}

TEST_F(shutdown_test, a_request_that_was_refused_while_it_was_under_way_leaves_nothing_to_report) {
    const auto busy = mutex{other_, "stock"}.acquire();
    plan_->delay_replies_of_next(call_kind::acquire);
    auto waiter = in_background([&] { return error_of([&] { stock_.lock(); }); });
    ASSERT_TRUE(plan_->wait_until_held(1, patience));
    auto left = in_background([&] { return client_.shutdown(patience); });
    EXPECT_EQ(waiter.get(), errc::shut_down);
    plan_->let_go();
    EXPECT_TRUE(left.get().empty()) << "it was never ours";
    EXPECT_EQ(holders().size(), 1U) << "it is somebody else's";
}

TEST_F(shutdown_test, the_longest_timeout_is_not_the_shortest) {
    const auto held = stock_.acquire();
    plan_->delay_next(call_kind::release);
    auto left = in_background([&] { return client_.shutdown(std::chrono::milliseconds::max()); });
    ASSERT_TRUE(plan_->wait_for_calls(call_kind::release, 1, patience));
    EXPECT_FALSE(eventually([&] { return is_done(left); }, 200ms));
    plan_->let_go();
    EXPECT_TRUE(left.get().empty());
    EXPECT_TRUE(holders().empty());
}

TEST_F(shutdown_test, calls_after_it_fail) {
    semaphore seats{client_, "seats", 3};
    shared_mutex catalogue{client_, "catalogue"};
    latch ready{client_, "ready"};
    client_.shutdown(5s);
    EXPECT_EQ(error_of([&] { stock_.lock(); }), errc::shut_down);
    EXPECT_EQ(error_of([&] { return stock_.try_lock(); }), errc::shut_down);
    EXPECT_EQ(error_of([&] { return stock_.try_lock_for(1s); }), errc::shut_down);
    EXPECT_EQ(error_of([&] { return seats.try_acquire(); }), errc::shut_down);
    EXPECT_EQ(error_of([&] { catalogue.lock_shared(); }), errc::shut_down);
    EXPECT_EQ(error_of([&] { ready.wait(); }), errc::shut_down);
    EXPECT_EQ(error_of([&] { return client_.inspect("stock"); }), errc::shut_down);
    EXPECT_EQ(error_of([&] { return client_.list(); }), errc::shut_down);
}

TEST_F(shutdown_test, unlocking_after_it_is_harmless) {
    stock_.lock();
    client_.shutdown(5s);
    EXPECT_TRUE(stock_.lost().stop_requested());
    stock_.unlock();
    EXPECT_TRUE(holders().empty());
}

TEST_F(shutdown_test, doing_it_twice_is_doing_it_once) {
    const auto held = stock_.acquire();
    EXPECT_TRUE(client_.shutdown(5s).empty());
    EXPECT_TRUE(client_.shutdown(5s).empty());
    EXPECT_EQ(plan_->calls(call_kind::release), 1U);
}

TEST_F(shutdown_test, two_threads_may_do_it_at_once) {
    const auto held = stock_.acquire();
    auto one = in_background([&] { return client_.shutdown(5s); });
    auto two = in_background([&] { return client_.shutdown(5s); });
    EXPECT_TRUE(one.get().empty());
    EXPECT_TRUE(two.get().empty());
    EXPECT_TRUE(holders().empty());
}

TEST_F(shutdown_test, the_destructor_does_not_wait_for_ever_for_a_dead_store) {
    lease held;
    stopwatch watch;
    {
        client doomed{make_client()};
        held = mutex{doomed, "stock"}.acquire();
        plan_->go_silent();
        watch = {};
    }
    EXPECT_LT(watch.elapsed(), 4s);
    EXPECT_FALSE(held);
}

TEST_F(shutdown_test, what_a_client_was_told_before_reaches_its_observer) {
    stock_.lock();
    stock_.unlock();
    client_.shutdown(5s);
    EXPECT_EQ(events_->kinds(), (std::vector{event_kind::acquired, event_kind::released}));
}

TEST_F(shutdown_test, threads_that_lock_and_unlock_meanwhile_all_come_to_an_end) {
    std::atomic<int> rounds{0};
    std::vector<std::future<std::error_code>> crowd;
    for (int i = 0; i < 16; ++i) {
        crowd.push_back(in_background([&] {
            mutex mine{client_, rounds.load() % 2 == 0 ? "stock" : "other stock"};
            return error_of([&] {
                while (true) {
                    const auto held = mine.acquire();
                    ++rounds;
                }
            });
        }));
    }
    ASSERT_TRUE(eventually([&] { return rounds.load() > 500; }));
    EXPECT_TRUE(client_.shutdown(5s).empty());
    for (auto& one : crowd) {
        ASSERT_TRUE(gets_done(one));
        EXPECT_EQ(one.get(), errc::shut_down);
    }
    EXPECT_TRUE(other_.list().locks.empty());
}

}  // namespace

}  // namespace holdfast::testing
