#pragma once

#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <holdfast/client.hpp>
#include <holdfast/latch.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/recursive_mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
#include <holdfast/testing/contract/fixture.hpp>
#include <holdfast/testing/fault_engine.hpp>

/// The types with std names, and the standard's own wrappers around them, over this engine.
namespace holdfast::testing {

template <class Store>
class lock_type_contract : public engine_contract<Store> {
protected:
    /// The code of what `action` throws.
    template <class Action>
    [[nodiscard]] static std::error_code thrown_by(const Action& action) {
        try {
            action();
            return {};
        } catch (const std::system_error& error) {
            return error.code();
        }
    }
};
TYPED_TEST_SUITE_P(lock_type_contract);

TYPED_TEST_P(lock_type_contract, the_standards_lock_guards_work) {
    const auto name = this->unique("stock");
    client first{this->address()};
    client second{this->address()};
    holdfast::mutex first_lock{first, name};
    holdfast::mutex second_lock{second, name};
    {
        const std::scoped_lock guard{first_lock};
        EXPECT_FALSE(second_lock.try_lock());
        std::unique_lock waiting{second_lock, std::defer_lock};
        EXPECT_FALSE(waiting.try_lock_for(this->short_ttl));
        EXPECT_FALSE(waiting.try_lock_until(std::chrono::steady_clock::now() + this->short_ttl));
        EXPECT_FALSE(waiting.owns_lock());
    }
    std::unique_lock guard{second_lock, patience};
    EXPECT_TRUE(guard.owns_lock());
    guard.unlock();
    EXPECT_TRUE(first_lock.try_lock());
    first_lock.unlock();
}

TYPED_TEST_P(lock_type_contract, two_mutexes_are_locked_together_without_deadlock) {
    constexpr int rounds = 20;
    const auto left_name = this->unique("left");
    const auto right_name = this->unique("right");
    client first{this->address()};
    client second{this->address()};
    int transfers = 0;
    const auto transfer = [&](client& opened, const std::string& from, const std::string& to) {
        holdfast::mutex source{opened, from};
        holdfast::mutex target{opened, to};
        for (int round = 0; round < rounds; ++round) {
            const std::scoped_lock guard{source, target};
            ++transfers;
        }
    };
    {
        const std::jthread forth{[&] { transfer(first, left_name, right_name); }};
        const std::jthread back{[&] { transfer(second, right_name, left_name); }};
    }
    EXPECT_EQ(transfers, 2 * rounds);
}

TYPED_TEST_P(lock_type_contract, a_condition_variable_waits_with_a_mutex) {
    client client{this->address()};
    holdfast::mutex lock{client, this->unique("stock")};
    std::condition_variable_any changed;
    bool ready = false;
    std::jthread other{[&] {
        const std::scoped_lock guard{lock};
        ready = true;
        changed.notify_all();
    }};
    std::unique_lock guard{lock};
    EXPECT_TRUE(changed.wait_for(guard, patience, [&] { return ready; }));
}

TYPED_TEST_P(lock_type_contract, a_recursive_mutex_is_entered_again_by_its_thread_only) {
    const auto name = this->unique("stock");
    client first{this->address()};
    client second{this->address()};
    recursive_mutex first_lock{first, name};
    holdfast::mutex second_lock{second, name};
    const std::scoped_lock outer{first_lock};
    {
        const std::scoped_lock inner{first_lock};
        EXPECT_EQ(first_lock.depth(), 2U);
        EXPECT_FALSE(second_lock.try_lock());
        std::jthread{[&] { EXPECT_FALSE(first_lock.try_lock()); }}.join();
    }
    EXPECT_EQ(first_lock.depth(), 1U);
    EXPECT_FALSE(second_lock.try_lock());
}

TYPED_TEST_P(lock_type_contract, a_shared_mutex_lets_readers_in_together_and_writers_alone) {
    const auto name = this->unique("stock");
    client first{this->address()};
    client second{this->address()};
    holdfast::shared_mutex first_lock{first, name};
    holdfast::shared_mutex second_lock{second, name};
    if (!first.promises().shared) {
        EXPECT_EQ(this->thrown_by([&] { first_lock.lock_shared(); }), errc::guarantee_not_met);
        return;
    }
    {
        const std::shared_lock reader{first_lock};
        const std::shared_lock another{second_lock, std::try_to_lock};
        EXPECT_TRUE(another.owns_lock());
        EXPECT_FALSE(second_lock.try_lock());
    }
    const std::unique_lock writer{second_lock, std::try_to_lock};
    EXPECT_TRUE(writer.owns_lock());
    EXPECT_FALSE(first_lock.try_lock_shared());
}

TYPED_TEST_P(lock_type_contract, a_shared_mutex_is_downgraded_and_upgraded) {
    const auto name = this->unique("stock");
    client first{this->address()};
    client second{this->address()};
    if (!first.promises().shared) {
        return;  // refused: see the test before
    }
    holdfast::shared_mutex first_lock{first, name};
    holdfast::shared_mutex second_lock{second, name};
    auto writing = first_lock.acquire();
    auto reading = writing.downgrade();
    EXPECT_TRUE(second_lock.try_lock_shared());
    EXPECT_FALSE(reading.try_upgrade());
    second_lock.unlock_shared();
    auto writing_again = reading.try_upgrade();
    ASSERT_TRUE(writing_again);
    EXPECT_FALSE(second_lock.try_lock_shared());
    writing_again->release();
    EXPECT_TRUE(second_lock.try_lock());
    second_lock.unlock();
}

/// The store made the change, and the client does not know.
TYPED_TEST_P(lock_type_contract, after_a_lost_answer_to_a_change_of_modes_a_release_frees_the_lock) {
    const auto name = this->unique("stock");
    const auto plan = std::make_shared<fault_plan>();
    const auto identity = engines::make_identity();
    client observed{std::make_unique<fault_engine>(engines::open(this->address(), identity), plan),
                    identity};
    client other{this->address()};
    if (!observed.promises().shared) {
        return;
    }
    holdfast::shared_mutex stock{observed, name};
    const auto is_free = [&] {
        return holdfast::shared_mutex{other, name}.try_acquire_for(this->wake_bound).has_value();
    };
    auto reading = stock.acquire_shared();
    plan->lose_replies_of_next(call_kind::acquire);
    EXPECT_EQ(this->thrown_by([&] { static_cast<void>(reading.try_upgrade()); }),
              errc::outcome_unknown);
    reading.release();
    EXPECT_TRUE(is_free());

    auto writing = stock.acquire();
    plan->lose_replies_of_next(call_kind::acquire, 3);  // a downgrade is tried three times
    reading = writing.downgrade();                      // a share is what it has at least
    reading.release();
    EXPECT_TRUE(is_free());
}

TYPED_TEST_P(lock_type_contract, a_waiting_writer_is_woken_by_the_last_reader) {
    const auto name = this->unique("stock");
    client first{this->address()};
    if (!this->offers_operators(first)) {
        return;
    }
    client second{this->address()};
    if (!first.promises().shared) {
        return;  // refused: see the test before
    }
    holdfast::shared_mutex first_lock{first, name};
    holdfast::shared_mutex second_lock{second, name};
    auto reader = first_lock.acquire_shared();
    auto writer = std::async(std::launch::async, [&] { return second_lock.acquire().token(); });
    EXPECT_TRUE(eventually([&] { return somebody_waits(first, name); }));
    reader.release();
    EXPECT_EQ(writer.wait_for(this->wake_bound), std::future_status::ready);
}

TYPED_TEST_P(lock_type_contract, eight_threads_never_hold_more_permits_than_the_limit) {
    constexpr int threads = 8;
    constexpr int rounds = 15;
    constexpr int limit = 3;
    const auto name = this->unique("slots");
    client first{this->address()};
    if (!this->offers_operators(first)) {
        return;
    }
    client second{this->address()};
    if (!first.promises().permits) {
        EXPECT_EQ(this->thrown_by([&] {
            semaphore impossible{first, name, limit};
        }),
                  errc::guarantee_not_met);
        return;
    }
    std::atomic<int> inside{0};
    std::atomic<int> most{0};
    std::atomic<int> grants{0};
    {
        std::vector<std::jthread> workers;
        for (int index = 0; index < threads; ++index) {
            workers.emplace_back([&, index] {
                semaphore slots{index % 2 == 0 ? first : second, name, limit};
                for (int round = 0; round < rounds; ++round) {
                    const auto permit = slots.acquire();
                    const int now = ++inside;
                    int seen = most;
                    while (seen < now && !most.compare_exchange_weak(seen, now)) {
                    }
                    ++grants;
                    std::this_thread::yield();
                    --inside;
                }
            });
        }
    }
    EXPECT_LE(most, limit);
    EXPECT_EQ(grants, threads * rounds);
    EXPECT_TRUE(first.inspect(name).holders.empty());
}

TYPED_TEST_P(lock_type_contract, a_semaphore_with_another_limit_is_refused_while_permits_are_out) {
    const auto name = this->unique("slots");
    client first{this->address()};
    client second{this->address()};
    if (!first.promises().permits) {
        return;  // refused: see the test before
    }
    semaphore three{first, name, 3};
    semaphore four{second, name, 4};
    holdfast::mutex lock{second, name};
    const auto permit = three.acquire();
    EXPECT_EQ(this->thrown_by([&] { static_cast<void>(four.try_acquire()); }), errc::wrong_kind);
    EXPECT_EQ(this->thrown_by([&] { static_cast<void>(lock.try_lock()); }), errc::wrong_kind);
}

TYPED_TEST_P(lock_type_contract, more_permits_than_the_limit_are_refused) {
    client client{this->address()};
    if (!client.promises().permits) {
        return;  // refused: see the test before
    }
    semaphore slots{client, this->unique("slots"), 3};
    EXPECT_EQ(this->thrown_by([&] { static_cast<void>(slots.try_acquire(4)); }),
              errc::invalid_argument);
    EXPECT_EQ(this->thrown_by([&] { static_cast<void>(slots.try_acquire(0)); }),
              errc::invalid_argument);
    EXPECT_TRUE(slots.try_acquire(3));
}

TYPED_TEST_P(lock_type_contract, a_latch_holds_waiters_of_all_clients_until_it_opens) {
    const auto name = this->unique("gate");
    client first{this->address()};
    client second{this->address()};
    if (!first.promises().latches) {
        EXPECT_EQ(this->thrown_by([&] {
            holdfast::latch impossible{first, name};
        }),
                  errc::guarantee_not_met);
        return;
    }
    holdfast::latch first_latch{first, name};
    holdfast::latch second_latch{second, name};
    ASSERT_TRUE(first_latch.try_set(2));
    EXPECT_FALSE(second_latch.try_set(5));
    EXPECT_FALSE(second_latch.wait_for(this->short_ttl));
    auto waiting = std::async(std::launch::async, [&] { return second_latch.wait_for(patience); });
    first_latch.count_down();
    EXPECT_EQ(second_latch.count(), 1U);
    second_latch.count_down();
    EXPECT_EQ(waiting.wait_for(this->wake_bound), std::future_status::ready);
    EXPECT_TRUE(waiting.get());
    EXPECT_TRUE(first_latch.try_wait());
}

/// The revocation is known to the store before the holder's next call, which may come before the news.
TYPED_TEST_P(lock_type_contract, a_revoked_holder_is_told_so_and_why_by_its_next_call) {
    client first{this->address()};
    if (!this->offers_operators(first)) {
        return;
    }
    client second{this->address()};
    const auto revoke = [&](const lease& held) {
        EXPECT_TRUE(second.revoke(held.name(), held.owner(), held.token(), "maintenance"));
    };
    const auto expect_told = [](const lease& held, const char* by) {
        EXPECT_EQ(held.loss_reason(), errc::revoked) << by;
        EXPECT_NE(held.loss_detail().find("maintenance"), std::string::npos)
            << by << ": " << held.loss_detail();
    };
    for (int round = 0; round < 10; ++round) {
        mutex plain{first, this->unique("plain")};
        auto released = plain.acquire();
        revoke(released);
        EXPECT_EQ(released.release(), release_outcome::already_lost);
        expect_told(released, "release");

        if (!first.promises().shared) {
            continue;
        }
        shared_mutex lock{first, this->unique("shared")};
        auto writer = lock.acquire();
        revoke(writer);
        EXPECT_EQ(this->thrown_by([&] { static_cast<void>(writer.downgrade()); }), errc::revoked);
        expect_told(writer, "downgrade");
        writer.release();

        auto reader = lock.acquire_shared();
        revoke(reader);
        EXPECT_EQ(this->thrown_by([&] { static_cast<void>(reader.try_upgrade()); }), errc::revoked);
        expect_told(reader, "try_upgrade");
    }
}

TYPED_TEST_P(lock_type_contract, a_wait_for_a_latch_ends_when_it_opens_though_it_is_set_again_at_once) {
    const auto name = this->unique("gate");
    client first{this->address()};
    client second{this->address()};
    if (!first.promises().latches) {
        return;
    }
    holdfast::latch first_latch{first, name};
    holdfast::latch second_latch{second, name};
    for (int round = 0; round < 10; ++round) {
        ASSERT_TRUE(first_latch.try_set(2));
        auto waiting = std::async(std::launch::async, [&] { second_latch.arrive_and_wait(); });
        ASSERT_TRUE(eventually([&] { return first_latch.count() == 1; }));
        first_latch.count_down();
        ASSERT_TRUE(first_latch.try_set(1));
        EXPECT_EQ(waiting.wait_for(patience), std::future_status::ready) << "in round " << round;
        first_latch.count_down();
    }
}

REGISTER_TYPED_TEST_SUITE_P(
    lock_type_contract,  //
    the_standards_lock_guards_work, two_mutexes_are_locked_together_without_deadlock,
    a_condition_variable_waits_with_a_mutex, a_recursive_mutex_is_entered_again_by_its_thread_only,
    a_shared_mutex_lets_readers_in_together_and_writers_alone,
    a_shared_mutex_is_downgraded_and_upgraded,
    after_a_lost_answer_to_a_change_of_modes_a_release_frees_the_lock,
    a_waiting_writer_is_woken_by_the_last_reader, eight_threads_never_hold_more_permits_than_the_limit,
    a_semaphore_with_another_limit_is_refused_while_permits_are_out,
    more_permits_than_the_limit_are_refused, a_latch_holds_waiters_of_all_clients_until_it_opens,
    a_revoked_holder_is_told_so_and_why_by_its_next_call,
    a_wait_for_a_latch_ends_when_it_opens_though_it_is_set_again_at_once);

}  // namespace holdfast::testing
