#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include <holdfast/testing/contract/fixture.hpp>

/// Those who wait hear of it, soon, when a name may have become free.
namespace holdfast::testing {

template <class Store>
class waiting_contract : public engine_contract<Store> {};
TYPED_TEST_SUITE_P(waiting_contract);

TYPED_TEST_P(waiting_contract, a_release_is_heard_within_the_bound) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob");
    event_counter hints;
    alice.hold(name);
    const auto watch = bob.watch(name, hints.callback());
    const auto before = hints.count();
    ASSERT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(hints.wait_for(before + 1, this->wake_bound));
}

TYPED_TEST_P(waiting_contract, every_one_of_many_releases_is_heard) {
    constexpr int rounds = 20;
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob");
    event_counter hints;
    const auto watch = bob.watch(name, hints.callback());
    for (int round = 0; round < rounds; ++round) {
        alice.become_fresh_owner();
        alice.hold(name);
        const auto before = hints.count();
        ASSERT_TRUE(released(alice.release(name)));
        ASSERT_TRUE(hints.wait_for(before + 1, this->wake_bound)) << "in round " << round;
    }
}

TYPED_TEST_P(waiting_contract, a_release_by_the_same_client_is_heard_too) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_watching(alice)) {
        return;
    }
    event_counter hints;
    alice.hold(name);
    const auto watch = alice.watch(name, hints.callback());
    const auto before = hints.count();
    ASSERT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(hints.wait_for(before + 1, this->wake_bound));
}

TYPED_TEST_P(waiting_contract, a_revocation_is_heard_within_the_bound) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob");
    auto carol = this->join("carol");
    event_counter hints;
    const auto token = alice.hold(name);
    const auto watch = bob.watch(name, hints.callback());
    const auto before = hints.count();
    ASSERT_TRUE(revoked(carol.revoke(name, alice.owner(), token)));
    EXPECT_TRUE(hints.wait_for(before + 1, this->wake_bound));
}

TYPED_TEST_P(waiting_contract, everybody_who_waits_hears_a_release) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob");
    auto carol = this->join("carol");
    event_counter first;
    event_counter second;
    event_counter third;
    alice.hold(name);
    const auto first_watch = bob.watch(name, first.callback());
    const auto second_watch = bob.watch(name, second.callback());
    const auto third_watch = carol.watch(name, third.callback());
    const auto before_first = first.count();
    const auto before_second = second.count();
    const auto before_third = third.count();
    ASSERT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(first.wait_for(before_first + 1, this->wake_bound));
    EXPECT_TRUE(second.wait_for(before_second + 1, this->wake_bound));
    EXPECT_TRUE(third.wait_for(before_third + 1, this->wake_bound));
}

TYPED_TEST_P(waiting_contract, one_watch_that_ends_leaves_the_others_in_place) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob");
    event_counter ended;
    event_counter kept;
    alice.hold(name);
    auto short_watch = bob.watch(name, ended.callback());
    const auto watch = bob.watch(name, kept.callback());
    short_watch.reset();
    const auto before = kept.count();
    ASSERT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(kept.wait_for(before + 1, this->wake_bound));
}

TYPED_TEST_P(waiting_contract, a_name_can_be_watched_again_after_a_watch_ended) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob");
    event_counter hints;
    alice.hold(name);
    bob.watch(name, [] {}).reset();
    const auto watch = bob.watch(name, hints.callback());
    const auto before = hints.count();
    ASSERT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(hints.wait_for(before + 1, this->wake_bound));
}

// A hint may still arrive after its watch has ended, so what hints touch is declared before the
// contenders, whose engines give no more hints once they are destroyed.

TYPED_TEST_P(waiting_contract, no_hint_is_given_from_inside_watch) {
    const auto name = this->unique("stock");
    std::atomic<bool> watching{true};
    std::atomic<bool> called_inside{false};
    auto alice = this->join("alice");
    if (!this->offers_watching(alice)) {
        return;
    }
    const auto caller = std::this_thread::get_id();
    const auto watch =
        alice.store().raw().offers().watching->watch(name, lock_kind::mutex, [&, caller] {
            if (watching && std::this_thread::get_id() == caller) {
                called_inside = true;
            }
        });
    watching = false;
    EXPECT_FALSE(called_inside);
}

TYPED_TEST_P(waiting_contract, a_watch_can_be_ended_from_inside_its_own_hint) {
    const auto name = this->unique("stock");
    std::unique_ptr<engines::subscription> watch;
    std::atomic<bool> ready{false};
    event_counter ended;
    auto alice = this->join("alice");
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob");
    alice.hold(name);
    watch = bob.watch(name, [&, done = ended.callback()] {
        if (ready.exchange(false)) {
            watch.reset();
            done();
        }
    });
    ready = true;
    ASSERT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(ended.wait_for(1, this->wake_bound));
}

TYPED_TEST_P(waiting_contract, a_hint_may_call_the_engine) {
    const auto name = this->unique("stock");
    std::mutex guard;
    bool open{true};
    event_counter grants;
    auto alice = this->join("alice");
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob");
    alice.hold(name);
    const auto watch = bob.watch(name, [&, owner = bob.owner(), done = grants.callback()] {
        const std::lock_guard lock{guard};
        if (!open) {
            return;
        }
        bob.store().raw().acquire({.name = name, .owner = owner, .ttl = long_ttl},
                                  {.deadline = clock::now() + patience},
                                  [done](const engines::acquire_reply& reply) {
                                      if (reply.result == engines::acquire_reply::outcome::granted) {
                                          done();
                                      }
                                  });
    });
    EXPECT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(grants.wait_for(1, this->wake_bound));
    const std::lock_guard lock{guard};
    open = false;
}

TYPED_TEST_P(waiting_contract, an_opening_latch_is_heard_within_the_bound) {
    const auto name = this->unique("gate");
    auto alice = this->join("alice");
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_latches(alice)) {
        return;
    }
    event_counter hints;
    ASSERT_TRUE(alice.set_latch(name, 1).applied);
    const auto watch = bob.watch(name, lock_kind::latch, hints.callback());
    const auto before = hints.count();
    ASSERT_EQ(alice.count_down(name).count, 0U);
    EXPECT_TRUE(hints.wait_for(before + 1, this->wake_bound));
}

TYPED_TEST_P(waiting_contract, a_returned_permit_is_heard_within_the_bound) {
    const auto name = this->unique("slots");
    auto alice = this->join("alice");
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_permits(alice)) {
        return;
    }
    event_counter hints;
    alice.hold(name, {.mode = claim_mode::permit, .limit = 1});
    const auto watch = bob.watch(name, lock_kind::semaphore, hints.callback());
    const auto before = hints.count();
    ASSERT_TRUE(released(alice.release(name, {.mode = claim_mode::permit})));
    EXPECT_TRUE(hints.wait_for(before + 1, this->wake_bound));
}

TYPED_TEST_P(waiting_contract, the_last_reader_that_leaves_is_heard_within_the_bound) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice", lock_kind::shared_mutex);
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob", lock_kind::shared_mutex);
    if (!this->offers_shared(alice)) {
        return;
    }
    event_counter hints;
    alice.hold(name, {.mode = claim_mode::shared});
    const auto watch = bob.watch(name, hints.callback());
    const auto before = hints.count();
    ASSERT_TRUE(released(alice.release(name, {.mode = claim_mode::shared})));
    EXPECT_TRUE(hints.wait_for(before + 1, this->wake_bound));
}

TYPED_TEST_P(waiting_contract, a_downgrade_is_heard_by_readers_who_wait) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice", lock_kind::shared_mutex);
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob", lock_kind::shared_mutex);
    if (!this->offers_shared(alice)) {
        return;
    }
    event_counter hints;
    alice.hold(name);
    const auto watch = bob.watch(name, hints.callback());
    const auto before = hints.count();
    alice.hold(name, {.mode = claim_mode::shared});
    EXPECT_TRUE(hints.wait_for(before + 1, this->wake_bound));
}

// A store that cannot count waiters says so by leaving `waiters` empty, and then reports none.
TYPED_TEST_P(waiting_contract, waiters_are_counted_and_forgotten_or_not_counted_at_all) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob");
    alice.hold(name);
    const auto waiters = [&] { return alice.inspect(name).waiters; };
    if (!waiters()) {
        EXPECT_EQ(alice.release(name).others_waiting, 0U);
        return;
    }
    EXPECT_EQ(waiters(), 0U);
    auto watch = bob.watch(name, [] {});
    EXPECT_TRUE(eventually([&] { return waiters() == 1U; }));
    watch.reset();
    EXPECT_TRUE(eventually([&] { return waiters() == 0U; }));
}

TYPED_TEST_P(waiting_contract, a_release_tells_how_many_others_wait) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    if (!this->offers_watching(alice)) {
        return;
    }
    auto bob = this->join("bob");
    auto carol = this->join("carol");
    alice.hold(name);
    if (!alice.inspect(name).waiters) {
        EXPECT_EQ(alice.release(name).others_waiting, 0U);
        return;
    }
    const auto bobs_watch = bob.watch(name, [] {});
    const auto carols_watch = carol.watch(name, [] {});
    ASSERT_TRUE(eventually([&] { return alice.inspect(name).waiters == 2U; }));
    EXPECT_EQ(alice.release(name).others_waiting, 2U);
}

TYPED_TEST_P(waiting_contract, the_waiters_of_a_client_that_is_gone_are_forgotten) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    if (!this->offers_watching(alice)) {
        return;
    }
    alice.hold(name);
    if (!alice.inspect(name).waiters) {
        return;
    }
    {
        auto bob = this->join("bob");
        const auto watch = bob.watch(name, [] {});
        ASSERT_TRUE(eventually([&] { return alice.inspect(name).waiters == 1U; }));
    }
    EXPECT_TRUE(eventually([&] { return alice.inspect(name).waiters == 0U; }));
}

REGISTER_TYPED_TEST_SUITE_P(
    waiting_contract,  //
    a_release_is_heard_within_the_bound, every_one_of_many_releases_is_heard,
    a_release_by_the_same_client_is_heard_too, a_revocation_is_heard_within_the_bound,
    everybody_who_waits_hears_a_release, one_watch_that_ends_leaves_the_others_in_place,
    a_name_can_be_watched_again_after_a_watch_ended, no_hint_is_given_from_inside_watch,
    a_watch_can_be_ended_from_inside_its_own_hint, a_hint_may_call_the_engine,
    an_opening_latch_is_heard_within_the_bound, a_returned_permit_is_heard_within_the_bound,
    the_last_reader_that_leaves_is_heard_within_the_bound, a_downgrade_is_heard_by_readers_who_wait,
    waiters_are_counted_and_forgotten_or_not_counted_at_all, a_release_tells_how_many_others_wait,
    the_waiters_of_a_client_that_is_gone_are_forgotten);

}  // namespace holdfast::testing
