#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <thread>
#include <type_traits>

#include "failing_allocation.hpp"
#include "stage.hpp"

/// What the class comments say of misuse: destroyed while held, thread gone, used twice, moved from,
/// used by two threads, null arguments.

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

/// A class of locks with std names, as the table sees it.
struct lock_class {
    std::string name;
    /// Locks an object of its own and destroys it.
    std::function<void(client&)> lock_and_destroy;
    /// Locks an object on a thread that ends, and leaves the object with the test.
    std::function<std::shared_ptr<void>(client&)> lock_on_a_thread_that_ends;
};

template <class Lock>
[[nodiscard]] lock_class exclusive(std::string name) {
    return {std::move(name),
            [](client& store) {
                Lock lock{store, "x"};
                lock.lock();
            },
            [](client& store) {
                auto lock = std::make_shared<Lock>(store, "x");
                std::jthread{[&] { lock->lock(); }}.join();
                return std::shared_ptr<void>{lock};
            }};
}

[[nodiscard]] std::vector<lock_class> lock_classes() {
    return {
        exclusive<mutex>("mutex"),
        exclusive<recursive_mutex>("recursive_mutex"),
        exclusive<shared_mutex>("shared_mutex"),
        {"shared_mutex, shared",
         [](client& store) {
             shared_mutex lock{store, "x"};
             lock.lock_shared();
         },
         {}},
        {"multi_lock",
         [](client& store) {
             multi_lock lock{store, {"x", "y"}};
             lock.lock();
         },
         {}},
        {"striped_mutex",
         [](client& store) {
             striped_mutex locks{store, "x", 4};
             locks.of("some key").lock();
         },
         {}},
    };
}

class misuse_test : public stage {
protected:
    [[nodiscard]] bool all_becomes_free() {
        return eventually([&] { return other_.list().locks.empty(); });
    }
    [[nodiscard]] std::string reason_of_loss() const {
        return events_->last(event_kind::lost).error.detail;
    }
};

using misuse_death_test = misuse_test;

TEST_F(misuse_test, what_is_destroyed_while_it_is_locked_is_given_back_and_reported_as_lost) {
    std::size_t reported = 0;
    for (const auto& one : lock_classes()) {
        SCOPED_TRACE(one.name);
        one.lock_and_destroy(client_);
        EXPECT_TRUE(all_becomes_free());
        reported += one.name == "multi_lock" ? 2 : 1;
        ASSERT_TRUE(events_->wait_for(event_kind::lost, reported));
        EXPECT_NE(reason_of_loss().find("destroyed"), std::string::npos);
        EXPECT_EQ(events_->last(event_kind::lost).error.code, errc::lost);
    }
}

TEST_F(misuse_test, nothing_is_renewed_for_somebody_who_is_gone) {
    {
        mutex lock{client_, "x", {.ttl = 200ms}};
        lock.lock();
    }
    EXPECT_TRUE(becomes_free("x"));
    const auto before = plan_->calls(call_kind::renew);
    mutex{other_, "x"}.acquire().release();
    EXPECT_FALSE(eventually([&] { return plan_->calls(call_kind::renew) > before; }, 300ms));
}

TEST_F(misuse_test, destruction_does_not_wait_for_a_store_that_hangs) {
    const stopwatch watch;
    {
        mutex lock{client_, "x"};
        lock.lock();
        plan_->keep_callers();
        plan_->go_silent();
    }
    EXPECT_LT(watch.elapsed(), 1500ms);
    client_.shutdown(0ms);
}

TEST_F(misuse_test, the_next_one_who_waits_in_this_process_gets_what_was_destroyed) {
    std::optional<mutex> lock{std::in_place, client_, "x"};
    lock->lock();
    auto next = in_background([&] { return mutex{client_, "x"}.acquire().token(); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended));
    const auto token = lock->token();
    lock.reset();
    ASSERT_TRUE(gets_done(next));
    EXPECT_GT(next.get(), token);
}

TEST_F(misuse_test, a_stop_token_of_what_is_destroyed_is_triggered) {
    std::vector<std::stop_token> tokens;
    {
        mutex one{client_, "1"};
        shared_mutex two{client_, "2"};
        recursive_mutex three{client_, "3"};
        multi_lock four{client_, {"4", "5"}};
        shared_mutex six{client_, "6"};
        one.lock();
        two.lock();
        three.lock();
        four.lock();
        six.lock_shared();
        tokens = {one.lost(), two.lost(), three.lost(), four.lost(), six.lost_shared()};
        for (const auto& token : tokens) {
            EXPECT_FALSE(token.stop_requested());
        }
    }
    for (std::size_t index = 0; index < tokens.size(); ++index) {
        EXPECT_TRUE(tokens[index].stop_requested()) << index;
    }
}

TEST_F(misuse_test, destruction_after_the_client_is_harmless) {
    std::optional<client> short_lived{std::in_place, address_};
    auto lock = std::make_unique<mutex>(*short_lived, "x");
    auto nested = std::make_unique<recursive_mutex>(*short_lived, "y");
    auto several = std::make_unique<multi_lock>(*short_lived, std::vector<std::string>{"z", "w"});
    lock->lock();
    nested->lock();
    several->lock();
    short_lived.reset();
    EXPECT_TRUE(all_becomes_free());
    lock.reset();
    nested.reset();
    several.reset();
}

TEST_F(misuse_test, a_recursive_lock_ends_with_its_thread) {
    const auto lock = exclusive<recursive_mutex>("").lock_on_a_thread_that_ends(client_);
    EXPECT_TRUE(becomes_free("x"));
    ASSERT_TRUE(events_->wait_for(event_kind::lost));
    EXPECT_NE(reason_of_loss().find("thread ended"), std::string::npos);
    EXPECT_TRUE(recursive_mutex(client_, "x").try_lock_for(patience));
}

TEST_F(misuse_test, at_every_depth_and_with_every_client) {
    client second{address_};
    recursive_mutex here{client_, "x"};
    recursive_mutex there{second, "y"};
    std::jthread{[&] {
        here.lock();
        here.lock();
        there.lock();
    }}.join();
    EXPECT_TRUE(all_becomes_free());
}

TEST_F(misuse_test, other_locks_outlive_the_thread_that_locked_them) {
    for (const auto& one : {exclusive<mutex>("mutex"), exclusive<shared_mutex>("shared_mutex")}) {
        SCOPED_TRACE(one.name);
        auto lock = one.lock_on_a_thread_that_ends(client_);
        EXPECT_EQ(holders("x").size(), 1U);
        lock.reset();
        EXPECT_TRUE(becomes_free("x"));
    }
}

TEST_F(misuse_test, any_thread_may_unlock_a_mutex) {
    mutex lock{client_, "x"};
    shared_mutex catalogue{client_, "y"};
    multi_lock several{client_, {"z", "w"}};
    lock.lock();
    catalogue.lock_shared();
    several.lock();
    std::jthread{[&] {
        lock.unlock();
        catalogue.unlock_shared();
        several.unlock();
    }}.join();
    EXPECT_TRUE(other_.list().locks.empty());
}

TEST_F(misuse_test, a_mutex_that_is_locked_twice_waits_for_itself) {
    mutex lock{client_, "x"};
    lock.lock();
    EXPECT_FALSE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock_for(20ms));
    EXPECT_FALSE(mutex(client_, "x").try_lock());
    lock.unlock();
    EXPECT_TRUE(holders("x").empty());
}

TEST_F(misuse_test, a_reader_that_wants_to_write_waits_for_itself) {
    shared_mutex lock{client_, "x"};
    lock.lock_shared();
    EXPECT_FALSE(lock.try_lock_for(20ms));
    lock.unlock_shared();
}

TEST_F(misuse_test, a_multi_lock_that_is_locked_twice_waits_for_itself) {
    multi_lock lock{client_, {"x", "y"}};
    lock.lock();
    EXPECT_FALSE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock_for(20ms));
    lock.unlock();
}

/// Locks with so many allocations at hand, unlocks, and says how many it took; −1: it failed.
template <class Lock>
[[nodiscard]] long allocations_of_locking(Lock& lock, long at_hand) {
    allocations_left = at_hand;
    try {
        lock.lock();
    } catch (const std::bad_alloc&) {
        return -1;
    }
    const auto used = at_hand - std::exchange(allocations_left, -1);
    lock.unlock();
    return used;
}

TEST_F(misuse_test, a_hold_that_cannot_be_remembered_is_given_back) {
    constexpr int plenty = 1'000'000;
    const auto expect_no_trace = [&](const auto& make, int remembering) {
        static_cast<void>(allocations_of_locking(*make("warm up"), plenty));
        const auto needed = allocations_of_locking(*make("counted"), plenty);
        // The last ones are those that remember what was granted.
        for (int missing = 1; missing <= remembering; ++missing) {
            const auto lock = make("refused");
            EXPECT_EQ(allocations_of_locking(*lock, needed - missing), -1);
            EXPECT_TRUE(becomes_free("refused"));
        }
    };
    const auto one = [&]<class Lock>(std::type_identity<Lock>) {
        return [&](const std::string& name) { return std::make_unique<Lock>(client_, name); };
    };
    expect_no_trace(one(std::type_identity<mutex>{}), 1);
    expect_no_trace(one(std::type_identity<shared_mutex>{}), 1);
    expect_no_trace(one(std::type_identity<recursive_mutex>{}), 3);
    expect_no_trace(
        [&](const std::string& name) {
            return std::make_unique<multi_lock>(client_, std::vector<std::string>{name, "another"});
        },
        1);
    EXPECT_TRUE(all_becomes_free());
}

TEST_F(misuse_test, more_segments_than_there_is_memory_for_are_refused) {
    const segment_store store{[](const segment&) { return std::uint64_t{}; },
                              [](const segment&, std::uint64_t) {}};
    const auto most = std::numeric_limits<std::size_t>::max();
    EXPECT_EQ(error_of([&] { segmented_stock(client_, "stock", most, store); }),
              errc::invalid_argument);
}

TEST_F(misuse_test, null_arguments_are_refused) {
    EXPECT_EQ(error_of([&] { client{nullptr, engines::make_identity()}; }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { engines::register_engine("nothing", {}); }), errc::invalid_argument);
    const auto read = [](const segment&) { return std::uint64_t{}; };
    const auto write = [](const segment&, std::uint64_t) {};
    EXPECT_EQ(error_of([&] { segmented_stock(client_, "stock", 2, {}); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] {
                  segmented_stock(client_, "stock", 2, {read, {}});
              }),
              errc::invalid_argument);
    EXPECT_EQ(error_of([&] {
                  segmented_stock(client_, "stock", 2, {{}, write});
              }),
              errc::invalid_argument);
    EXPECT_EQ(error_of([&] { keyed_batcher<int, int>({}, 1, {}); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { multi_lock(client_, std::vector<std::string>{}); }),
              errc::invalid_argument);
    EXPECT_EQ(error_of([&] { mutex(client_, ""); }), errc::invalid_name);
}

TEST_F(misuse_test, errors_name_the_thing_that_is_misused) {
    const auto text_of = [](auto&& misuse) -> std::string {
        try {
            misuse();
        } catch (const std::system_error& error) {
            return error.what();
        }
        return "nothing was thrown";
    };
    using ::testing::HasSubstr;
    client plain{"memory:"};
    EXPECT_THAT(text_of([&] { latch(plain, ""); }), HasSubstr("on memory: a latch needs a name"));
    EXPECT_THAT(text_of([&] { keyed_executor({.threads = 100'000'000}); }),
                HasSubstr("keyed_executor: threads: 100000000 are too many"));
    EXPECT_THAT(text_of([&] { striped_mutex(plain, "s", 1'048'577); }),
                HasSubstr("striped_mutex: 1048577 stripes are too many"));
    keyed_executor closed{{.threads = 1}};
    closed.close();
    EXPECT_EQ(text_of([&] { static_cast<void>(closed.submit("key", [] {})); }),
              "keyed_executor: it was closed: shut down");
    EXPECT_EQ(make_error_code(errc{}).message(), "no error");
}

TEST_F(misuse_test, an_empty_operation_ends_with_an_exception_in_its_future) {
    keyed_executor lanes{{.threads = 1}};
    auto answer = lanes.submit("key", std::function<void()>{});
    EXPECT_THROW(answer.get(), std::bad_function_call);
}

TEST_F(misuse_death_test, unlocking_what_is_not_locked_aborts) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    mutex lock{client_, "x"};
    shared_mutex catalogue{client_, "x"};
    multi_lock several{client_, {"x", "y"}};
    recursive_mutex nested{client_, "x"};
    EXPECT_DEATH(lock.unlock(), "holdfast: mutex::unlock without a lock");
    EXPECT_DEATH(catalogue.unlock(), "shared_mutex::unlock without a lock");
    EXPECT_DEATH(catalogue.unlock_shared(), "shared_mutex::unlock_shared without a lock");
    EXPECT_DEATH(several.unlock(), "multi_lock::unlock without a hold");
    EXPECT_DEATH(nested.unlock(), "has not locked it");
}

TEST_F(misuse_death_test, unlocking_twice_aborts) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    mutex lock{client_, "x"};
    lock.lock();
    lock.unlock();
    EXPECT_DEATH(lock.unlock(), "mutex::unlock without a lock");
}

TEST_F(misuse_death_test, a_recursive_mutex_is_unlocked_by_its_own_thread_only) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    recursive_mutex nested{client_, "x"};
    EXPECT_DEATH(
        {
            nested.lock();
            std::jthread{[&] { nested.unlock(); }}.join();
        },
        "has not locked it");
}

}  // namespace

}  // namespace holdfast::testing
