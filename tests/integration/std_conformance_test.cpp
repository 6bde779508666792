#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <type_traits>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

template <class Lock>
concept basic_lockable = requires(Lock& lock) {
    { lock.lock() } -> std::same_as<void>;
    { lock.unlock() }
    noexcept->std::same_as<void>;
};

template <class Lock>
concept lockable = basic_lockable<Lock> && requires(Lock& lock) {
    { lock.try_lock() } -> std::same_as<bool>;
};

template <class Lock>
concept timed_lockable = lockable<Lock> &&
    requires(Lock& lock, std::chrono::duration<double> wait, std::chrono::system_clock::time_point wall,
             std::chrono::steady_clock::time_point steady, clock::time_point own) {
    { lock.try_lock_for(wait) } -> std::same_as<bool>;
    { lock.try_lock_until(wall) } -> std::same_as<bool>;
    { lock.try_lock_until(steady) } -> std::same_as<bool>;
    { lock.try_lock_until(own) } -> std::same_as<bool>;
};

template <class Lock>
concept shared_timed_lockable = requires(Lock& lock, std::chrono::duration<double> wait,
                                         std::chrono::system_clock::time_point wall,
                                         std::chrono::steady_clock::time_point steady) {
    { lock.lock_shared() } -> std::same_as<void>;
    { lock.unlock_shared() }
    noexcept->std::same_as<void>;
    { lock.try_lock_shared() } -> std::same_as<bool>;
    { lock.try_lock_shared_for(wait) } -> std::same_as<bool>;
    { lock.try_lock_shared_until(wall) } -> std::same_as<bool>;
    { lock.try_lock_shared_until(steady) } -> std::same_as<bool>;
};

template <class Type>
constexpr bool stays_where_it_is =
    !std::is_copy_constructible_v<Type> && !std::is_copy_assignable_v<Type> &&
    !std::is_move_constructible_v<Type> && !std::is_move_assignable_v<Type>;

static_assert(timed_lockable<mutex>);
static_assert(timed_lockable<recursive_mutex>);
static_assert(timed_lockable<shared_mutex> && shared_timed_lockable<shared_mutex>);
static_assert(!shared_timed_lockable<mutex>);

static_assert(stays_where_it_is<mutex>);
static_assert(stays_where_it_is<recursive_mutex>);
static_assert(stays_where_it_is<shared_mutex>);
static_assert(stays_where_it_is<semaphore>);
static_assert(stays_where_it_is<latch>);
static_assert(stays_where_it_is<client>);

static_assert(std::is_nothrow_default_constructible_v<lease>);
static_assert(std::is_nothrow_move_constructible_v<lease>);
static_assert(std::is_nothrow_move_assignable_v<lease>);
static_assert(std::is_nothrow_destructible_v<lease>);
static_assert(!std::is_copy_constructible_v<lease> && !std::is_copy_assignable_v<lease>);
static_assert(!std::is_convertible_v<lease, bool>, "a lease is asked, never taken for a number");
static_assert(noexcept(std::declval<lease&>().release()));

static_assert(std::is_error_code_enum_v<errc>);

class std_conformance_test : public stage {
protected:
    mutex first_{client_, "first"};
    mutex second_{client_, "second"};
    mutex elsewhere_{other_, "first"};
};

TEST_F(std_conformance_test, lock_guard_locks_and_unlocks) {
    {
        const std::lock_guard guard{first_};
        EXPECT_FALSE(elsewhere_.try_lock());
    }
    EXPECT_TRUE(elsewhere_.try_lock());
    elsewhere_.unlock();
}

TEST_F(std_conformance_test, scoped_lock_takes_two_locks_in_opposite_order_without_a_deadlock) {
    int guarded = 0;
    const auto add = [&guarded](mutex& one, mutex& two) {
        for (int round = 0; round < 100; ++round) {
            const std::scoped_lock both{one, two};
            ++guarded;
        }
    };
    auto backward = in_background([&] { add(second_, first_); });
    add(first_, second_);
    backward.get();
    EXPECT_EQ(guarded, 200);
    EXPECT_TRUE(holders("first").empty());
    EXPECT_TRUE(holders("second").empty());
}

TEST_F(std_conformance_test, scoped_lock_works_across_two_clients) {
    mutex far_second{other_, "second"};
    int guarded = 0;
    const auto add = [&guarded](mutex& one, mutex& two) {
        for (int round = 0; round < 20; ++round) {
            const std::scoped_lock both{one, two};
            ++guarded;
        }
    };
    auto far = in_background([&] { add(far_second, elsewhere_); });
    add(first_, second_);
    far.get();
    EXPECT_EQ(guarded, 40);
}

TEST_F(std_conformance_test, std_lock_leaves_nothing_locked_when_one_of_two_throws) {
    plan_->fail_next(call_kind::acquire, 1, {errc::unauthorised, "no"});
    EXPECT_EQ(error_of([&] { std::lock(elsewhere_, second_); }), errc::unauthorised);
    EXPECT_TRUE(holders("first").empty());
    EXPECT_TRUE(holders("second").empty());
}

TEST_F(std_conformance_test, std_try_lock_names_the_lock_that_was_busy) {
    const std::lock_guard guard{elsewhere_};
    EXPECT_EQ(std::try_lock(second_, first_), 1);
    EXPECT_TRUE(holders("second").empty());
}

TEST_F(std_conformance_test, unique_lock_with_a_duration_gets_a_free_lock) {
    const std::unique_lock guard{first_, 250ms};
    EXPECT_TRUE(guard.owns_lock());
}

TEST_F(std_conformance_test, unique_lock_with_a_duration_gives_up_on_a_busy_one) {
    const std::lock_guard busy{elsewhere_};
    const stopwatch watch;
    const std::unique_lock guard{first_, 250ms};
    EXPECT_FALSE(guard.owns_lock());
    EXPECT_GE(watch.elapsed(), 250ms);
}

TEST_F(std_conformance_test, unique_lock_defers_and_adopts) {
    std::unique_lock deferred{first_, std::defer_lock};
    EXPECT_TRUE(holders("first").empty());
    deferred.lock();
    deferred.release();
    std::unique_lock adopted{first_, std::adopt_lock};
    EXPECT_EQ(holders("first").size(), 1U);
    adopted.unlock();
    EXPECT_TRUE(holders("first").empty());
}

TEST_F(std_conformance_test, unique_lock_tries_until_a_moment_of_either_clock) {
    std::unique_lock guard{first_, std::defer_lock};
    EXPECT_TRUE(guard.try_lock_until(std::chrono::system_clock::now() + 1s));
    guard.unlock();
    EXPECT_TRUE(guard.try_lock_until(std::chrono::steady_clock::now() + 1s));
}

TEST_F(std_conformance_test, a_moment_that_passes_ends_the_wait) {
    const std::lock_guard busy{elsewhere_};
    const auto wall = std::chrono::system_clock::now() + 60ms;
    EXPECT_FALSE(first_.try_lock_until(wall));
    EXPECT_GE(std::chrono::system_clock::now(), wall);
    const auto steady = std::chrono::steady_clock::now() + 60ms;
    EXPECT_FALSE(first_.try_lock_until(steady));
    EXPECT_GE(std::chrono::steady_clock::now(), steady);
}

TEST_F(std_conformance_test, a_free_lock_is_had_even_when_the_moment_has_passed) {
    EXPECT_TRUE(first_.try_lock_until(std::chrono::system_clock::now() - 1h));
    EXPECT_TRUE(second_.try_lock_until(std::chrono::steady_clock::now() - 1h));
    first_.unlock();
    second_.unlock();
}

TEST_F(std_conformance_test, shared_locks_of_two_clients_overlap) {
    shared_mutex near{client_, "catalogue"};
    shared_mutex far{other_, "catalogue"};
    const std::shared_lock one{near};
    const std::shared_lock two{far, 250ms};
    EXPECT_TRUE(two.owns_lock());
    EXPECT_EQ(holders("catalogue").size(), 2U);
}

TEST_F(std_conformance_test, a_timed_shared_lock_gives_up_while_a_writer_is_there) {
    shared_mutex near{client_, "catalogue"};
    shared_mutex far{other_, "catalogue"};
    const std::unique_lock writer{far};
    EXPECT_FALSE((std::shared_lock{near, 60ms}.owns_lock()));
    EXPECT_FALSE((std::shared_lock{near, std::chrono::system_clock::now() + 60ms}.owns_lock()));
    EXPECT_FALSE((std::shared_lock{near, std::try_to_lock}.owns_lock()));
}

TEST_F(std_conformance_test, a_condition_variable_gives_the_lock_up_while_it_waits) {
    std::condition_variable_any changed;
    bool ready = false;
    auto waiter = in_background([&] {
        std::unique_lock guard{first_};
        changed.wait(guard, [&] { return ready; });
        return guard.owns_lock();
    });
    {
        const std::lock_guard guard{first_};
        ready = true;
    }
    changed.notify_all();
    EXPECT_TRUE(waiter.get());
}

TEST_F(std_conformance_test, a_condition_variable_stops_waiting_when_a_lease_is_lost) {
    std::condition_variable_any changed;
    const auto held = second_.acquire();
    auto waiter = in_background([&] {
        std::unique_lock guard{first_};
        return changed.wait(guard, held.lost(), [] { return false; });
    });
    revoke("second");
    ASSERT_TRUE(gets_done(waiter));
    EXPECT_FALSE(waiter.get());
}

TEST_F(std_conformance_test, waiting_for_a_lock_ends_when_its_stop_token_is_triggered) {
    const std::lock_guard busy{elsewhere_};
    std::stop_source stop;
    auto waiter = in_background([&] { return first_.lock_unless_stopped(stop.get_token()); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    stop.request_stop();
    ASSERT_TRUE(gets_done(waiter));
    EXPECT_FALSE(waiter.get());
}

TEST_F(std_conformance_test, a_stop_token_that_is_not_triggered_changes_nothing) {
    const std::stop_source stop;
    EXPECT_TRUE(first_.lock_unless_stopped(stop.get_token()));
    first_.unlock();
}

TEST_F(std_conformance_test, absurdly_long_waits_do_not_overflow) {
    EXPECT_TRUE(first_.try_lock_for(std::chrono::hours::max()));
    first_.unlock();
    EXPECT_TRUE(first_.try_lock_for(std::chrono::nanoseconds::max()));
    first_.unlock();
    EXPECT_TRUE(first_.try_lock_for(std::chrono::duration<double>{1e300}));
    first_.unlock();
    EXPECT_TRUE(
        first_.try_lock_for(std::chrono::duration<double>{std::numeric_limits<double>::infinity()}));
    first_.unlock();
}

TEST_F(std_conformance_test, an_absurdly_long_wait_really_waits) {
    auto held = elsewhere_.acquire();
    auto waiter = in_background([&] { return first_.try_lock_for(std::chrono::hours::max()); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    EXPECT_FALSE(is_done(waiter));
    held.release();
    EXPECT_TRUE(waiter.get());
    first_.unlock();
}

TEST_F(std_conformance_test, negative_and_tiny_waits_end_at_once) {
    const std::lock_guard busy{elsewhere_};
    const stopwatch watch;
    EXPECT_FALSE(first_.try_lock_for(-1s));
    EXPECT_FALSE(first_.try_lock_for(std::chrono::hours::min()));
    EXPECT_FALSE(first_.try_lock_for(1ns));
    EXPECT_FALSE(first_.try_lock_for(std::chrono::duration<double>{1e-12}));
    EXPECT_FALSE(first_.try_lock_for(std::chrono::duration<double>{-1e300}));
    EXPECT_LT(watch.elapsed(), 2s);
}

TEST_F(std_conformance_test, the_end_of_time_is_a_moment_like_any_other) {
    EXPECT_TRUE(first_.try_lock_until(std::chrono::system_clock::time_point::max()));
    first_.unlock();
    EXPECT_TRUE(first_.try_lock_until(std::chrono::steady_clock::time_point::max()));
    first_.unlock();
    EXPECT_TRUE(first_.try_lock_until(std::chrono::sys_seconds::max()));
    first_.unlock();
}

TEST_F(std_conformance_test, the_beginning_of_time_has_passed) {
    auto busy = elsewhere_.acquire();
    auto waiter = in_background(
        [&] { return first_.try_lock_until(std::chrono::system_clock::time_point::min()); });
    const bool ended = eventually([&] { return is_done(waiter); }, 2s);
    busy.release();
    EXPECT_TRUE(ended);
    EXPECT_FALSE(waiter.get());
}

}  // namespace

}  // namespace holdfast::testing
