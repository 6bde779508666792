#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include <holdfast/testing/contract/fixture.hpp>

/// One holder at a time, and nobody but the owner gives it up.
namespace holdfast::testing {

template <class Store>
class exclusion_contract : public engine_contract<Store> {};
TYPED_TEST_SUITE_P(exclusion_contract);

TYPED_TEST_P(exclusion_contract, a_free_name_is_granted) {
    auto alice = this->join("alice");
    EXPECT_TRUE(granted(alice.acquire(this->unique("stock"))));
}

TYPED_TEST_P(exclusion_contract, a_taken_name_is_busy_for_another_client) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    alice.hold(name);
    EXPECT_TRUE(busy(bob.acquire(name)));
}

TYPED_TEST_P(exclusion_contract, a_taken_name_is_busy_for_another_acquisition_of_the_same_client) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    alice.hold(name);
    EXPECT_TRUE(busy(alice.acquire(name, {.as = alice.another_owner()})));
}

TYPED_TEST_P(exclusion_contract, a_busy_answer_never_promises_more_than_the_holders_ttl) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    alice.hold(name);
    const auto reply = bob.acquire(name);
    ASSERT_TRUE(busy(reply));
    EXPECT_GE(reply.retry_after, std::chrono::milliseconds::zero());
    EXPECT_LE(reply.retry_after, long_ttl);
}

TYPED_TEST_P(exclusion_contract, a_released_name_is_free_at_once) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    alice.hold(name);
    EXPECT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(granted(bob.acquire(name)));
}

TYPED_TEST_P(exclusion_contract, only_the_owner_can_release) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    alice.hold(name);
    EXPECT_TRUE(gone(bob.release(name)));
    EXPECT_TRUE(busy(bob.acquire(name)));
    EXPECT_TRUE(renewed(alice.renew(name)));
}

TYPED_TEST_P(exclusion_contract, another_acquisition_of_the_same_client_cannot_release) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    alice.hold(name);
    EXPECT_TRUE(gone(alice.release(name, {.as = alice.another_owner()})));
    EXPECT_TRUE(renewed(alice.renew(name)));
}

TYPED_TEST_P(exclusion_contract, releasing_what_was_never_held_is_harmless) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    EXPECT_TRUE(gone(alice.release(name)));
    EXPECT_TRUE(granted(alice.acquire(name)));
}

TYPED_TEST_P(exclusion_contract, an_expired_holder_that_releases_late_does_not_touch_the_new_holder) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    alice.hold(name, {.ttl = this->short_ttl});
    ASSERT_TRUE(bob.acquire_eventually(name));

    EXPECT_TRUE(gone(alice.release(name)));
    EXPECT_TRUE(renewed(bob.renew(name)));
    EXPECT_TRUE(busy(alice.acquire(name, {.as = alice.another_owner()})));
}

TYPED_TEST_P(exclusion_contract, an_acquire_sent_again_is_granted_with_the_same_token) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    const auto first = alice.hold(name);
    const auto again = alice.acquire(name);
    ASSERT_TRUE(granted(again));
    EXPECT_EQ(again.first_token, first);
    EXPECT_EQ(alice.inspect(name).holders.size(), 1U);
}

TYPED_TEST_P(exclusion_contract, an_acquire_sent_again_needs_only_one_release) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    alice.hold(name);
    alice.hold(name);
    EXPECT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(granted(bob.acquire(name)));
}

TYPED_TEST_P(exclusion_contract, an_acquire_sent_again_after_somebody_else_took_it_is_busy) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    alice.hold(name, {.ttl = this->short_ttl});
    ASSERT_TRUE(bob.acquire_eventually(name));
    EXPECT_TRUE(busy(alice.acquire(name)));
}

TYPED_TEST_P(exclusion_contract, a_release_sent_again_is_gone_and_harmless) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    alice.hold(name);
    EXPECT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(gone(alice.release(name)));
    bob.hold(name);
    EXPECT_TRUE(gone(alice.release(name)));
    EXPECT_TRUE(renewed(bob.renew(name)));
}

TYPED_TEST_P(exclusion_contract, two_names_do_not_interfere) {
    const auto first = this->unique("first");
    const auto second = this->unique("second");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    alice.hold(first);
    bob.hold(second);
    EXPECT_TRUE(released(alice.release(first)));
    EXPECT_TRUE(busy(alice.acquire(second, {.as = alice.another_owner()})));
    EXPECT_TRUE(renewed(bob.renew(second)));
}

TYPED_TEST_P(exclusion_contract, never_two_holders_whatever_the_threads_do) {
    constexpr int threads_per_client = 4;
    constexpr int grants_per_thread = 25;
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    std::atomic<int> inside{0};
    std::atomic<int> intrusions{0};
    std::atomic<int> grants{0};

    const auto take_turns = [&](contender& asker, owner_id owner) {
        for (int turn = 0; turn < grants_per_thread; ++turn) {
            if (!asker.acquire_eventually(name, {.as = owner})) {
                return;
            }
            intrusions += inside.fetch_add(1);
            ++grants;
            std::this_thread::yield();
            --inside;
            EXPECT_TRUE(released(asker.release(name, {.as = owner})));
        }
    };
    {
        std::vector<std::jthread> threads;
        for (int index = 0; index < threads_per_client; ++index) {
            threads.emplace_back([&, owner = alice.another_owner()] { take_turns(alice, owner); });
            threads.emplace_back([&, owner = bob.another_owner()] { take_turns(bob, owner); });
        }
    }

    EXPECT_EQ(intrusions, 0);
    EXPECT_EQ(grants, 2 * threads_per_client * grants_per_thread);
}

REGISTER_TYPED_TEST_SUITE_P(exclusion_contract,  //
                            a_free_name_is_granted, a_taken_name_is_busy_for_another_client,
                            a_taken_name_is_busy_for_another_acquisition_of_the_same_client,
                            a_busy_answer_never_promises_more_than_the_holders_ttl,
                            a_released_name_is_free_at_once, only_the_owner_can_release,
                            another_acquisition_of_the_same_client_cannot_release,
                            releasing_what_was_never_held_is_harmless,
                            an_expired_holder_that_releases_late_does_not_touch_the_new_holder,
                            an_acquire_sent_again_is_granted_with_the_same_token,
                            an_acquire_sent_again_needs_only_one_release,
                            an_acquire_sent_again_after_somebody_else_took_it_is_busy,
                            a_release_sent_again_is_gone_and_harmless, two_names_do_not_interfere,
                            never_two_holders_whatever_the_threads_do);

}  // namespace holdfast::testing
