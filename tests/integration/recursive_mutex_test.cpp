#include <atomic>
#include <mutex>
#include <thread>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

class recursive_mutex_test : public stage {
protected:
    recursive_mutex nested_{client_, "nested"};
    mutex elsewhere_{other_, "nested"};
};

TEST_F(recursive_mutex_test, a_thread_may_lock_again) {
    const std::scoped_lock outer{nested_};
    EXPECT_EQ(nested_.depth(), 1U);
    const std::scoped_lock inner{nested_};
    EXPECT_EQ(nested_.depth(), 2U);
}

TEST_F(recursive_mutex_test, locking_again_asks_the_store_for_nothing) {
    nested_.lock();
    const auto asked = requests();
    nested_.lock();
    EXPECT_TRUE(nested_.try_lock());
    EXPECT_TRUE(nested_.try_lock_for(1s));
    EXPECT_TRUE(nested_.try_lock_until(std::chrono::system_clock::now() + 1s));
    EXPECT_TRUE(nested_.lock_unless_stopped(std::stop_token{}));
    EXPECT_EQ(nested_.depth(), 6U);
    for (int level = 0; level < 5; ++level) {
        nested_.unlock();
    }
    EXPECT_EQ(requests(), asked);
    nested_.unlock();
    EXPECT_EQ(requests(), asked + 1);
}

TEST_F(recursive_mutex_test, only_the_last_unlock_gives_it_back) {
    nested_.lock();
    nested_.lock();
    nested_.unlock();
    EXPECT_FALSE(elsewhere_.try_lock());
    nested_.unlock();
    EXPECT_TRUE(elsewhere_.try_lock());
    elsewhere_.unlock();
}

TEST_F(recursive_mutex_test, all_levels_have_one_token) {
    nested_.lock();
    const auto outer = nested_.token();
    nested_.lock();
    EXPECT_EQ(nested_.token(), outer);
    nested_.unlock();
    nested_.unlock();
    EXPECT_EQ(nested_.token(), fencing_token{});
}

TEST_F(recursive_mutex_test, another_thread_is_kept_out) {
    const std::scoped_lock held{nested_};
    auto stranger = in_background([&] { return nested_.try_lock(); });
    EXPECT_FALSE(stranger.get());
}

TEST_F(recursive_mutex_test, another_thread_sees_no_depth_and_no_token) {
    const std::scoped_lock held{nested_};
    auto stranger = in_background([&] { return std::pair{nested_.depth(), nested_.token()}; });
    EXPECT_EQ(stranger.get(), (std::pair{0U, fencing_token{}}));
}

TEST_F(recursive_mutex_test, a_waiting_thread_gets_it_after_the_last_unlock) {
    nested_.lock();
    nested_.lock();
    auto waiter = in_background([&] {
        const std::scoped_lock mine{nested_};
        return nested_.depth();
    });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    nested_.unlock();
    EXPECT_FALSE(is_done(waiter));
    nested_.unlock();
    EXPECT_EQ(waiter.get(), 1U);
}

TEST_F(recursive_mutex_test, objects_of_one_name_are_one_lock_for_one_thread) {
    recursive_mutex same_name{client_, "nested"};
    nested_.lock();
    const auto asked = requests();
    same_name.lock();
    EXPECT_TRUE(same_name.try_lock());
    EXPECT_TRUE(same_name.try_lock_for(1s));
    EXPECT_TRUE(same_name.lock_unless_stopped(std::stop_token{}));
    EXPECT_EQ(requests(), asked);
    EXPECT_EQ(nested_.depth(), 5U);
    EXPECT_EQ(same_name.depth(), 5U);
    EXPECT_EQ(same_name.token(), nested_.token());
    for (int level = 0; level < 4; ++level) {
        same_name.unlock();
    }
    EXPECT_FALSE(elsewhere_.try_lock());
    nested_.unlock();
    EXPECT_TRUE(holders("nested").empty());
}

TEST_F(recursive_mutex_test, objects_of_one_name_may_be_unlocked_in_any_order) {
    recursive_mutex same_name{client_, "nested"};
    nested_.lock();
    same_name.lock();
    nested_.unlock();
    EXPECT_EQ(same_name.depth(), 1U);
    EXPECT_EQ(holders("nested").size(), 1U);
    same_name.unlock();
    EXPECT_TRUE(holders("nested").empty());
}

TEST_F(recursive_mutex_test, an_object_may_unlock_what_another_of_its_name_locked) {
    recursive_mutex same_name{client_, "nested"};
    nested_.lock();
    same_name.unlock();
    EXPECT_EQ(nested_.depth(), 0U);
    EXPECT_TRUE(holders("nested").empty());
}

TEST_F(recursive_mutex_test, another_thread_is_kept_out_of_all_objects_of_the_name) {
    recursive_mutex same_name{client_, "nested"};
    const std::scoped_lock held{nested_};
    auto stranger = in_background([&] { return same_name.try_lock(); });
    EXPECT_FALSE(stranger.get());
}

TEST_F(recursive_mutex_test, other_names_are_other_locks) {
    recursive_mutex another{client_, "another"};
    const std::scoped_lock held{nested_};
    EXPECT_TRUE(another.try_lock());
    EXPECT_EQ(another.depth(), 1U);
    EXPECT_NE(another.token(), nested_.token());
    another.unlock();
    EXPECT_EQ(nested_.depth(), 1U);
}

TEST_F(recursive_mutex_test, another_client_is_somebody_else) {
    client second{address_};
    recursive_mutex same_name{second, "nested"};
    const std::scoped_lock held{nested_};
    EXPECT_FALSE(same_name.try_lock());
    EXPECT_EQ(same_name.depth(), 0U);
}

TEST_F(recursive_mutex_test, a_lost_hold_is_not_entered_through_another_object) {
    recursive_mutex same_name{client_, "nested"};
    nested_.lock();
    revoke("nested");
    ASSERT_TRUE(eventually([&] { return nested_.lost().stop_requested(); }));
    EXPECT_EQ(error_of([&] { same_name.lock(); }), errc::revoked);
    EXPECT_EQ(same_name.depth(), 1U);
    same_name.unlock();
    EXPECT_TRUE(same_name.try_lock());
    same_name.unlock();
}

TEST_F(recursive_mutex_test, what_an_object_locked_is_unlocked_when_it_is_destroyed) {
    {
        recursive_mutex inner{client_, "nested"};
        nested_.lock();
        inner.lock();
        inner.lock();
        EXPECT_EQ(nested_.depth(), 3U);
    }
    EXPECT_EQ(nested_.depth(), 1U);
    EXPECT_EQ(holders("nested").size(), 1U);
    nested_.unlock();
    EXPECT_TRUE(holders("nested").empty());
}

TEST_F(recursive_mutex_test, a_hundred_threads_through_objects_of_their_own_exclude_each_other) {
    std::atomic<int> inside{0};
    std::atomic<bool> overlap{false};
    std::vector<std::future<void>> crowd;
    for (int i = 0; i < 100; ++i) {
        crowd.push_back(in_background([&] {
            recursive_mutex own{client_, "nested"};
            const std::scoped_lock outer{own};
            const std::scoped_lock inner{nested_};
            overlap = overlap || inside.fetch_add(1) != 0;
            inside.fetch_sub(1);
        }));
    }
    for (auto& one : crowd) {
        one.get();
    }
    EXPECT_FALSE(overlap);
    EXPECT_TRUE(becomes_free("nested"));
}

TEST_F(recursive_mutex_test, an_error_leaves_nothing_locked) {
    plan_->fail_next(call_kind::acquire, 1, {errc::unauthorised, "no"});
    EXPECT_EQ(error_of([&] { nested_.lock(); }), errc::unauthorised);
    EXPECT_EQ(nested_.depth(), 0U);
}

TEST_F(recursive_mutex_test, a_lease_is_one_level_more_of_the_same_hold) {
    nested_.lock();
    const auto asked = requests();
    auto held = nested_.acquire();
    EXPECT_TRUE(held);
    EXPECT_EQ(held.token(), nested_.token());
    EXPECT_EQ(held.name(), "nested");
    EXPECT_EQ(nested_.depth(), 2U);
    EXPECT_EQ(held.release(), release_outcome::released);
    EXPECT_FALSE(held);
    EXPECT_EQ(held.release(), release_outcome::already_lost);
    EXPECT_EQ(nested_.depth(), 1U);
    nested_.unlock();
    EXPECT_EQ(requests(), asked + 1);
}

TEST_F(recursive_mutex_test, every_way_to_acquire_enters_again) {
    const auto outer = nested_.acquire();
    const auto asked = requests();
    {
        const auto one = nested_.acquire();
        const auto two = nested_.acquire_unless_stopped(std::stop_token{});
        const auto three = nested_.try_acquire();
        const auto four = nested_.try_acquire_for(1s);
        const auto five = nested_.try_acquire_until(std::chrono::system_clock::now() + 1s);
        ASSERT_TRUE(one && two && three && four && five);
        EXPECT_EQ(five->token(), outer.token());
        EXPECT_EQ(nested_.depth(), 6U);
    }
    EXPECT_EQ(nested_.depth(), 1U);
    EXPECT_EQ(requests(), asked);
}

TEST_F(recursive_mutex_test, levels_end_in_any_order_and_the_last_gives_it_back) {
    auto first = nested_.acquire();
    nested_.lock();
    auto third = nested_.acquire();
    EXPECT_EQ(first.release(), release_outcome::released);
    nested_.unlock();
    EXPECT_FALSE(elsewhere_.try_lock());
    EXPECT_TRUE(third);
    EXPECT_EQ(third.release(), release_outcome::released);
    EXPECT_TRUE(elsewhere_.try_lock());
    elsewhere_.unlock();
}

TEST_F(recursive_mutex_test, a_lease_is_released_by_the_thread_that_it_was_moved_to) {
    auto held = nested_.acquire();
    in_background([lease = std::move(held)]() mutable { return lease.release(); }).get();
    EXPECT_EQ(nested_.depth(), 0U);
    EXPECT_TRUE(elsewhere_.try_lock());
    elsewhere_.unlock();
}

TEST_F(recursive_mutex_test, a_thread_that_was_given_a_lease_is_not_inside) {
    const auto held = nested_.acquire();
    auto stranger = in_background([&] { return nested_.try_acquire().has_value(); });
    EXPECT_FALSE(stranger.get());
}

TEST_F(recursive_mutex_test, a_lease_outlives_the_thread_that_acquired_it) {
    auto held = in_background([&] {
                    nested_.lock();  // ends with the thread
                    return nested_.acquire();
                }).get();
    EXPECT_TRUE(held);
    EXPECT_FALSE(elsewhere_.try_lock());
    EXPECT_EQ(held.release(), release_outcome::released);
    EXPECT_TRUE(becomes_free("nested"));
}

TEST_F(recursive_mutex_test, a_lease_outlives_the_object_that_acquired_it) {
    std::optional<recursive_mutex> short_lived{std::in_place, client_, "nested"};
    short_lived->lock();
    auto held = short_lived->acquire();
    short_lived.reset();
    EXPECT_TRUE(held);
    EXPECT_EQ(nested_.depth(), 1U);
    held = {};
    EXPECT_TRUE(becomes_free("nested"));
}

TEST_F(recursive_mutex_test, a_loss_reaches_all_levels) {
    auto one = nested_.acquire();
    auto two = nested_.acquire();
    nested_.lock();
    const auto told = nested_.lost();
    revoke("nested");
    EXPECT_TRUE(eventually([&] { return told.stop_requested(); }));
    EXPECT_FALSE(one || two);
    EXPECT_TRUE(one.lost().stop_requested() && two.lost().stop_requested());
    EXPECT_EQ(error_of([&] { static_cast<void>(nested_.acquire()); }), errc::revoked);
    EXPECT_EQ(one.release(), release_outcome::already_lost);
    EXPECT_EQ(one.loss_reason(), errc::revoked);
    EXPECT_EQ(one.token(), fencing_token{}) << "it is empty";
    nested_.unlock();
    EXPECT_EQ(two.release(), release_outcome::already_lost);
    EXPECT_TRUE(nested_.acquire()) << "nothing is left of the lost hold";
}

TEST_F(recursive_mutex_test, release_after_counts_for_the_last_level) {
    auto one = nested_.acquire();
    auto two = nested_.acquire();
    EXPECT_EQ(one.release_after(10s), release_outcome::released);
    EXPECT_EQ(two.release_after(10s), release_outcome::released);
    EXPECT_FALSE(elsewhere_.try_lock());
}

TEST_F(recursive_mutex_test, a_lease_that_is_busy_elsewhere_is_none) {
    const std::scoped_lock other{elsewhere_};
    EXPECT_FALSE(nested_.try_acquire());
    EXPECT_FALSE(nested_.try_acquire_for(1ms));
    EXPECT_EQ(nested_.depth(), 0U);
}

using recursive_mutex_death_test = recursive_mutex_test;

TEST_F(recursive_mutex_death_test, unlocking_what_only_leases_hold_is_a_programming_error) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto held = nested_.acquire();
    EXPECT_DEATH(nested_.unlock(), "has not locked it");
}

TEST_F(recursive_mutex_death_test, unlocking_without_a_lock_is_a_programming_error) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(nested_.unlock(), "has not locked it");
}

/// Locks when its thread ends.
struct locks_at_the_end {
    recursive_mutex* lock{};
    ~locks_at_the_end() {
        if (lock != nullptr) {
            lock->lock();
        }
    }
};
thread_local locks_at_the_end destroyed_late;

TEST_F(recursive_mutex_test, what_the_last_destructor_of_a_thread_locked_is_unlocked) {
    recursive_mutex before{client_, "before"};
    std::thread{[&] {
        destroyed_late.lock = &nested_;  // made before what the lock below needs, so destroyed after it
        before.lock();
        before.unlock();
    }}.join();
    EXPECT_TRUE(becomes_free("nested"));
}

}  // namespace

}  // namespace holdfast::testing
