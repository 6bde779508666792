#pragma once

#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/testing/contract/fixture.hpp>

/// What users get through `holdfast::client` over this engine: leases, waiting, giving up, losing.
namespace holdfast::testing {

template <class Store>
class client_contract : public engine_contract<Store> {
protected:
    /// Whether making a mutex on these terms throws `invalid_argument`.
    [[nodiscard]] static bool refuses(client& opened, const lease_options& options) {
        try {
            mutex impossible{opened, "stock", options};
            return false;
        } catch (const std::system_error& error) {
            return error.code() == errc::invalid_argument;
        }
    }

    /// Waits until somebody is heard to wait for `name`; at once where the store cannot tell.
    static void wait_for_a_waiter(client& opened, const std::string& name) {
        EXPECT_TRUE(eventually([&] { return somebody_waits(opened, name); }));
    }
};
TYPED_TEST_SUITE_P(client_contract);

TYPED_TEST_P(client_contract, ten_threads_of_two_clients_lose_no_increment) {
    constexpr int threads = 10;
    constexpr int increments = 100;
    const auto name = this->unique("counter");
    client first{this->address()};
    if (!this->offers_operators(first)) {
        return;
    }
    client second{this->address()};
    int counter = 0;
    {
        std::vector<std::jthread> workers;
        for (int index = 0; index < threads; ++index) {
            workers.emplace_back([&, index] {
                mutex lock{index % 2 == 0 ? first : second, name};
                for (int round = 0; round < increments; ++round) {
                    const std::scoped_lock guard{lock};
                    const int read = counter;
                    std::this_thread::yield();
                    counter = read + 1;
                }
            });
        }
    }
    EXPECT_EQ(counter, threads * increments);
    EXPECT_TRUE(first.inspect(name).holders.empty());
}

TYPED_TEST_P(client_contract, a_lease_excludes_another_client_until_it_is_released) {
    const auto name = this->unique("stock");
    client first{this->address()};
    client second{this->address()};
    mutex first_lock{first, name};
    mutex second_lock{second, name};

    auto held = first_lock.try_acquire();
    ASSERT_TRUE(held);
    EXPECT_TRUE(*held);
    EXPECT_EQ(held->name(), name);
    EXPECT_FALSE(second_lock.try_acquire());
    EXPECT_EQ(held->release(), release_outcome::released);
    EXPECT_TRUE(second_lock.try_acquire());
}

TYPED_TEST_P(client_contract, a_lease_is_released_at_the_end_of_its_scope) {
    const auto name = this->unique("stock");
    client first{this->address()};
    client second{this->address()};
    mutex first_lock{first, name};
    mutex second_lock{second, name};
    {
        const auto held = first_lock.acquire();
        EXPECT_FALSE(second_lock.try_acquire());
    }
    EXPECT_TRUE(second_lock.try_acquire());
}

TYPED_TEST_P(client_contract, later_leases_have_larger_tokens_whoever_takes_them) {
    const auto name = this->unique("stock");
    client first{this->address()};
    client second{this->address()};
    if (first.promises().tokens == engines::fencing::none) {
        EXPECT_EQ((mutex{first, name}.acquire().token()), fencing_token{});
        return;
    }
    mutex first_lock{first, name};
    mutex second_lock{second, name};
    fencing_token last{};
    for (int round = 0; round < 20; ++round) {
        const auto held = (round % 3 == 0 ? second_lock : first_lock).acquire();
        ASSERT_GT(held.token(), last) << "in round " << round;
        last = held.token();
    }
}

TYPED_TEST_P(client_contract, a_waiter_in_another_client_is_woken_within_the_bound) {
    const auto name = this->unique("stock");
    client first{this->address()};
    client second{this->address()};
    mutex first_lock{first, name};
    mutex second_lock{second, name};
    auto held = first_lock.acquire();
    auto woken = std::async(std::launch::async, [&] { return second_lock.acquire().token(); });
    this->wait_for_a_waiter(first, name);
    ASSERT_EQ(held.release(), release_outcome::released);
    EXPECT_EQ(woken.wait_for(this->wake_bound), std::future_status::ready);
}

TYPED_TEST_P(client_contract, a_timed_wait_ends_without_the_lock_and_not_before_its_time) {
    const auto name = this->unique("stock");
    client first{this->address()};
    client second{this->address()};
    mutex first_lock{first, name};
    mutex second_lock{second, name};
    const auto held = first_lock.acquire();
    const auto started_at = clock::now();
    EXPECT_FALSE(second_lock.try_acquire_for(this->short_ttl));
    EXPECT_GE(clock::now() - started_at, this->short_ttl);
}

TYPED_TEST_P(client_contract, a_cancelled_waiter_leaves_nothing_behind) {
    const auto name = this->unique("stock");
    client first{this->address()};
    if (!this->offers_operators(first)) {
        return;
    }
    client second{this->address()};
    mutex first_lock{first, name};
    mutex second_lock{second, name};
    auto held = first_lock.acquire();
    std::stop_source stop;
    auto waiting = std::async(std::launch::async, [&] {
        return second_lock.acquire_unless_stopped(stop.get_token()).has_value();
    });
    this->wait_for_a_waiter(first, name);

    stop.request_stop();
    ASSERT_EQ(waiting.wait_for(patience), std::future_status::ready);
    EXPECT_FALSE(waiting.get());
    EXPECT_TRUE(eventually([&] { return first.inspect(name).waiters.value_or(0) == 0; }));
    EXPECT_EQ(first.inspect(name).holders.size(), 1U);

    ASSERT_EQ(held.release(), release_outcome::released);
    EXPECT_TRUE(first.inspect(name).holders.empty());
    EXPECT_TRUE(first_lock.try_acquire());
}

TYPED_TEST_P(client_contract,
             a_waiter_that_is_cancelled_while_the_lock_is_released_leaves_nothing_behind) {
    constexpr int rounds = 30;
    const auto name = this->unique("stock");
    client first{this->address()};
    if (!this->offers_operators(first)) {
        return;
    }
    client second{this->address()};
    mutex first_lock{first, name};
    mutex second_lock{second, name};
    for (int round = 0; round < rounds; ++round) {
        auto held = first_lock.acquire();
        std::stop_source stop;
        auto waiting = std::async(
            std::launch::async, [&] { second_lock.acquire_unless_stopped(stop.get_token()).reset(); });
        std::jthread canceller{[&] { stop.request_stop(); }};
        held.release();
        ASSERT_EQ(waiting.wait_for(patience), std::future_status::ready);
        ASSERT_TRUE(eventually([&] { return first.inspect(name).holders.empty(); }))
            << "in round " << round;
    }
}

TYPED_TEST_P(client_contract, a_lease_is_renewed_while_it_is_held) {
    const auto name = this->unique("stock");
    client first{this->address()};
    client second{this->address()};
    mutex first_lock{first, name, {.ttl = 4 * this->short_ttl}};
    mutex second_lock{second, name};
    const auto held = first_lock.acquire();
    const auto first_deadline = held.valid_until();
    EXPECT_TRUE(eventually([&] { return held.valid_until() > first_deadline; }));
    ASSERT_TRUE(eventually([&] { return clock::now() > first_deadline; }));
    // On a machine that stalls the lease may be lost, but then it says so.
    EXPECT_TRUE(!held || !second_lock.try_acquire());
}

TYPED_TEST_P(client_contract, a_lease_without_renewal_is_lost_before_another_client_gets_the_lock) {
    const auto name = this->unique("stock");
    client first{this->address()};
    client second{this->address()};
    mutex first_lock{first, name, {.ttl = this->short_ttl, .renewal = renewal_mode::none}};
    mutex second_lock{second, name};
    auto held = first_lock.acquire();
    const auto taken = second_lock.try_acquire_for(patience);
    ASSERT_TRUE(taken);
    EXPECT_FALSE(held);
    EXPECT_TRUE(held.lost().stop_requested());
    EXPECT_EQ(held.loss_reason(), errc::lost);
    EXPECT_EQ(held.release(), release_outcome::already_lost);
    EXPECT_TRUE(*taken);
}

TYPED_TEST_P(client_contract, a_revoked_lease_learns_of_it) {
    const auto name = this->unique("stock");
    client first{this->address()};
    if (!this->offers_operators(first)) {
        return;
    }
    client second{this->address()};
    mutex first_lock{first, name, {.ttl = 4 * this->short_ttl}};
    auto held = first_lock.acquire();
    const auto holders = second.inspect(name).holders;
    ASSERT_EQ(holders.size(), 1U);
    EXPECT_FALSE(second.revoke(name, holders[0].owner, {holders[0].token.value + 1000}, "mistaken"));
    ASSERT_TRUE(second.revoke(name, holders[0].owner, holders[0].token, "stuck"));
    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }));
    EXPECT_EQ(held.loss_reason(), errc::revoked);
    EXPECT_EQ(held.release(), release_outcome::already_lost);
}

TYPED_TEST_P(client_contract, a_lock_given_up_with_a_delay_stays_taken_for_it) {
    const auto name = this->unique("nightly");
    client first{this->address()};
    client second{this->address()};
    mutex first_lock{first, name};
    mutex second_lock{second, name};
    auto held = first_lock.acquire();
    const auto asked_at = clock::now();
    ASSERT_EQ(held.release_after(this->short_ttl), release_outcome::released);
    EXPECT_TRUE(second_lock.try_acquire_for(patience));
    this->expect_not_before(this->short_ttl, asked_at, clock::now());
}

TYPED_TEST_P(client_contract, a_client_that_ends_gives_everything_back) {
    const auto name = this->unique("stock");
    client second{this->address()};
    mutex second_lock{second, name};
    std::optional<lease> held;
    {
        client first{this->address()};
        mutex first_lock{first, name};
        held = first_lock.acquire();
    }
    EXPECT_FALSE(*held);
    EXPECT_TRUE(second_lock.try_acquire());
}

TYPED_TEST_P(client_contract, a_shutdown_ends_all_waiting_and_leaves_nothing_behind) {
    const auto name = this->unique("stock");
    client first{this->address()};
    if (!this->offers_operators(first)) {
        return;
    }
    client second{this->address()};
    mutex first_lock{first, name};
    mutex second_lock{second, name};
    const auto held = first_lock.acquire();
    auto waiting = std::async(std::launch::async, [&] {
        try {
            static_cast<void>(second_lock.acquire());
            return std::error_code{};
        } catch (const std::system_error& error) {
            return error.code();
        }
    });
    this->wait_for_a_waiter(first, name);
    EXPECT_TRUE(second.shutdown(patience).empty());
    ASSERT_EQ(waiting.wait_for(patience), std::future_status::ready);
    EXPECT_EQ(waiting.get(), errc::shut_down);
    EXPECT_EQ(first.inspect(name).holders.size(), 1U);
}

TYPED_TEST_P(client_contract, clients_tell_names_apart_that_differ_only_a_little) {
    client client{this->address()};
    mutex plain{client, this->unique("stock")};
    mutex capital{client, this->unique("Stock")};
    mutex spaced{client, this->unique("stock ")};
    const auto first = plain.try_acquire();
    const auto second = capital.try_acquire();
    const auto third = spaced.try_acquire();
    EXPECT_TRUE(first && second && third);
}

TYPED_TEST_P(client_contract, a_ttl_that_makes_no_sense_is_refused) {
    client client{this->address()};
    const std::chrono::milliseconds one{1};
    for (const auto ttl : {std::chrono::milliseconds::zero(), -one, client.promises().minimum_ttl - one,
                           client.promises().maximum_ttl + one, std::chrono::milliseconds::min(),
                           std::chrono::milliseconds::max()}) {
        EXPECT_TRUE(this->refuses(client, {.ttl = ttl})) << ttl.count() << " ms";
    }
}

TYPED_TEST_P(client_contract, the_shortest_ttl_the_engine_promises_can_be_used) {
    const auto name = this->unique("stock");
    client first{this->address()};
    client second{this->address()};
    mutex first_lock{first, name, {.ttl = first.promises().minimum_ttl, .renewal = renewal_mode::none}};
    mutex second_lock{second, name};
    // A grant whose answer comes too late to be of use is no success; the next one may be.
    EXPECT_TRUE(
        eventually([&] { return first_lock.try_acquire_for(std::chrono::seconds{1}).has_value(); }));
    EXPECT_TRUE(second_lock.try_acquire_for(patience));
}

/// A store that answers is no reason to throw, however short the wait. One that took longer than it has
/// (50 ms) is.
TYPED_TEST_P(client_contract, short_waits_end_with_the_lock_or_without_it) {
    constexpr int threads = 4;
    constexpr int rounds = 60;
    client store{this->address()};
    std::mutex guard;
    std::string thrown;
    bool slow = false;
    {
        std::vector<std::jthread> all;
        for (int index = 0; index < threads; ++index) {
            all.emplace_back([&] {
                mutex plain{store, this->unique("plain")};
                for (int round = 0; round < rounds; ++round) {
                    const auto began = clock::now();
                    try {
                        if (plain.try_lock_for(std::chrono::microseconds{50 << (round % 7)})) {
                            std::this_thread::yield();
                            plain.unlock();
                        }
                    } catch (const std::system_error& error) {
                        const std::lock_guard lock{guard};
                        thrown = error.what();
                        slow = slow || clock::now() - began >= std::chrono::milliseconds{50};
                    }
                }
            });
        }
    }
    EXPECT_TRUE(thrown.empty() || slow) << thrown;
}

TYPED_TEST_P(client_contract, locks_are_listed_with_the_label_of_their_client) {
    const auto name = this->unique("stock");
    client first{this->address(), {.label = "billing worker 3"}};
    if (!this->offers_operators(first)) {
        return;
    }
    client second{this->address()};
    mutex first_lock{first, name};
    const auto held = first_lock.acquire();
    const auto page = second.list(name);
    ASSERT_EQ(page.locks.size(), 1U);
    ASSERT_EQ(page.locks[0].holders.size(), 1U);
    const auto& holder = page.locks[0].holders[0];
    EXPECT_EQ(holder.owner, held.owner());
    ASSERT_TRUE(holder.card);
    EXPECT_EQ(holder.card->label, "billing worker 3");
}

REGISTER_TYPED_TEST_SUITE_P(
    client_contract,  //
    ten_threads_of_two_clients_lose_no_increment, a_lease_excludes_another_client_until_it_is_released,
    a_lease_is_released_at_the_end_of_its_scope, later_leases_have_larger_tokens_whoever_takes_them,
    a_waiter_in_another_client_is_woken_within_the_bound,
    a_timed_wait_ends_without_the_lock_and_not_before_its_time,
    a_cancelled_waiter_leaves_nothing_behind,
    a_waiter_that_is_cancelled_while_the_lock_is_released_leaves_nothing_behind,
    a_lease_is_renewed_while_it_is_held,
    a_lease_without_renewal_is_lost_before_another_client_gets_the_lock, a_revoked_lease_learns_of_it,
    a_lock_given_up_with_a_delay_stays_taken_for_it, a_client_that_ends_gives_everything_back,
    a_shutdown_ends_all_waiting_and_leaves_nothing_behind,
    clients_tell_names_apart_that_differ_only_a_little, a_ttl_that_makes_no_sense_is_refused,
    the_shortest_ttl_the_engine_promises_can_be_used, short_waits_end_with_the_lock_or_without_it,
    locks_are_listed_with_the_label_of_their_client);

}  // namespace holdfast::testing
