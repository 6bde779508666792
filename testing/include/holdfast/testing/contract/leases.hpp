#pragma once

#include <chrono>
#include <vector>

#include <holdfast/testing/contract/fixture.hpp>

/// Leases end by themselves, are only ever extended, and are never brought back.
namespace holdfast::testing {

template <class Store>
class lease_contract : public engine_contract<Store> {};
TYPED_TEST_SUITE_P(lease_contract);

/// A lease that has more than this left was not cut to a short ttl.
inline constexpr std::chrono::seconds plenty{30};

TYPED_TEST_P(lease_contract, a_lease_nobody_renews_ends_by_itself_and_not_before_its_ttl) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    const auto asked_at = clock::now();
    alice.hold(name, {.ttl = this->short_ttl});
    const auto freed_at = bob.acquire_eventually(name);
    ASSERT_TRUE(freed_at);
    this->expect_not_before(this->short_ttl, asked_at, *freed_at);
}

TYPED_TEST_P(lease_contract, a_renewed_lease_lasts_from_the_renewal_on) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    const auto held_from = clock::now();
    alice.hold(name);
    const auto asked_at = clock::now();
    // Renewing must add nothing to what is there: the lease ends at the later of the two.
    const auto reply = alice.renew(name, {.ttl = 2 * long_ttl});
    ASSERT_TRUE(renewed(reply));
    const auto remaining = alice.inspect(name).holders.at(0).remaining;
    EXPECT_LE(remaining, 2 * long_ttl);
    // A store may grant a little less than was asked for if it says so: by no more than the time that
    // its last answers took.
    const auto granted = reply.ttl > std::chrono::milliseconds{} ? reply.ttl : 2 * long_ttl;
    EXPECT_GE(granted, 2 * long_ttl - (asked_at - held_from) - this->clock_grain);
    EXPECT_GE(remaining + (clock::now() - asked_at), granted - this->clock_grain);
}

TYPED_TEST_P(lease_contract, a_lease_that_is_renewed_in_time_outlives_its_first_ttl) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    // On a machine that stalls for longer than the ttl the renewal comes too late: then once more.
    ASSERT_TRUE(eventually([&] {
        alice.become_fresh_owner();
        return alice.acquire(name, {.ttl = this->short_ttl}).result ==
                   engines::acquire_reply::outcome::granted &&
               alice.renew(name).result == engines::renew_reply::outcome::renewed;
    }));
    const auto renewed_at = clock::now();
    ASSERT_TRUE(eventually([&] { return clock::now() > renewed_at + this->short_ttl; }));
    EXPECT_TRUE(busy(bob.acquire(name)));
    EXPECT_TRUE(renewed(alice.renew(name)));
}

TYPED_TEST_P(lease_contract, an_acquire_sent_again_extends_the_lease) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    alice.hold(name, {.ttl = std::chrono::seconds{15}});
    alice.hold(name, {.ttl = long_ttl});
    EXPECT_GT(alice.inspect(name).holders.at(0).remaining, plenty);
}

TYPED_TEST_P(lease_contract, a_renewal_with_a_shorter_ttl_keeps_the_longer_lease) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    alice.hold(name);
    ASSERT_TRUE(renewed(alice.renew(name, {.ttl = this->short_ttl})));
    EXPECT_GT(bob.inspect(name).holders.at(0).remaining, plenty);

    const auto renewed_at = clock::now();
    ASSERT_TRUE(eventually([&] { return clock::now() > renewed_at + this->short_ttl; }));
    EXPECT_TRUE(busy(bob.acquire(name)));
}

TYPED_TEST_P(lease_contract, a_renewal_by_somebody_else_is_gone_and_extends_nothing) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    alice.hold(name, {.ttl = std::chrono::seconds{15}});
    EXPECT_TRUE(gone(bob.renew(name)));
    EXPECT_LE(alice.inspect(name).holders.at(0).remaining, std::chrono::seconds{15});
}

TYPED_TEST_P(lease_contract, a_renewal_of_what_was_never_held_creates_nothing) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    const auto reply = alice.renew(name);
    EXPECT_TRUE(gone(reply));
    EXPECT_EQ(reply.error.code, errc::lost);
    EXPECT_TRUE(alice.inspect(name).holders.empty());
}

TYPED_TEST_P(lease_contract, a_renewal_after_expiry_does_not_bring_the_lease_back) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    alice.hold(name, {.ttl = this->short_ttl});
    ASSERT_TRUE(eventually([&] { return bob.inspect(name).holders.empty(); }));
    const auto reply = alice.renew(name);
    EXPECT_TRUE(gone(reply));
    EXPECT_EQ(reply.error.code, errc::lost);
    EXPECT_TRUE(granted(bob.acquire(name)));
}

TYPED_TEST_P(lease_contract, a_renewal_after_release_does_not_bring_the_lease_back) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    alice.hold(name);
    ASSERT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(gone(alice.renew(name)));
    EXPECT_TRUE(granted(bob.acquire(name)));
}

TYPED_TEST_P(lease_contract, a_renewal_after_revocation_does_not_bring_the_lease_back) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    const auto token = alice.hold(name);
    ASSERT_TRUE(revoked(bob.revoke(name, alice.owner(), token)));
    EXPECT_TRUE(gone(alice.renew(name)));
    EXPECT_TRUE(granted(bob.acquire(name)));
}

TYPED_TEST_P(lease_contract, a_renewal_after_a_takeover_leaves_the_new_holder_alone) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    alice.hold(name, {.ttl = this->short_ttl});
    ASSERT_TRUE(bob.acquire_eventually(name, {.ttl = std::chrono::seconds{15}}));
    EXPECT_TRUE(gone(alice.renew(name)));

    const auto holders = bob.inspect(name).holders;
    ASSERT_EQ(holders.size(), 1U);
    EXPECT_EQ(holders[0].owner, bob.owner());
    EXPECT_LE(holders[0].remaining, std::chrono::seconds{15});
}

TYPED_TEST_P(lease_contract, a_batch_of_renewals_is_answered_item_by_item_in_order) {
    const auto held = this->unique("held");
    const auto free = this->unique("free");
    const auto taken = this->unique("taken by bob");
    const auto also_held = this->unique("also held");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    alice.hold(held);
    bob.hold(taken);
    alice.hold(also_held);

    const auto item = [&](const std::string& name) {
        return engines::renew_request{.name = name, .owner = alice.owner(), .ttl = long_ttl};
    };
    const auto replies = alice.store().renew({item(held), item(free), item(also_held), item(taken)});
    ASSERT_EQ(replies.size(), 4U);
    EXPECT_TRUE(renewed(replies[0]));
    EXPECT_TRUE(gone(replies[1]));
    EXPECT_TRUE(renewed(replies[2]));
    EXPECT_TRUE(gone(replies[3]));
}

TYPED_TEST_P(lease_contract, a_large_batch_of_renewals_is_answered_completely) {
    constexpr std::size_t size = 300;
    auto alice = this->join("alice");
    std::vector<engines::renew_request> batch;
    for (std::size_t index = 0; index < size; ++index) {
        const auto name = this->unique(std::to_string(index));
        // Every third one is not held.
        if (index % 3 != 0) {
            alice.hold(name);
        }
        batch.push_back({.name = name, .owner = alice.owner(), .ttl = long_ttl});
    }
    const auto replies = alice.store().renew(std::move(batch));
    ASSERT_EQ(replies.size(), size);
    for (std::size_t index = 0; index < size; ++index) {
        EXPECT_TRUE(index % 3 == 0 ? gone(replies[index]) : renewed(replies[index])) << index;
    }
}

TYPED_TEST_P(lease_contract, an_empty_batch_of_renewals_is_answered_with_nothing) {
    auto alice = this->join("alice");
    EXPECT_TRUE(alice.store().renew({}).empty());
}

TYPED_TEST_P(lease_contract, a_lingering_name_stays_taken_until_the_linger_ends) {
    const auto name = this->unique("nightly");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    alice.hold(name);
    const auto asked_at = clock::now();
    ASSERT_TRUE(released(alice.release(name, {.linger = this->short_ttl})));
    const auto freed_at = bob.acquire_eventually(name);
    ASSERT_TRUE(freed_at);
    this->expect_not_before(this->short_ttl, asked_at, *freed_at);
}

TYPED_TEST_P(lease_contract, a_linger_may_be_longer_than_what_was_left_of_the_lease) {
    const auto name = this->unique("nightly");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    alice.hold(name, {.ttl = std::chrono::seconds{15}});
    ASSERT_TRUE(released(alice.release(name, {.linger = long_ttl})));
    EXPECT_GT(bob.inspect(name).holders.at(0).remaining, plenty);
}

TYPED_TEST_P(lease_contract, a_lingering_name_can_be_neither_renewed_nor_released_by_its_owner) {
    const auto name = this->unique("nightly");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    alice.hold(name);
    ASSERT_TRUE(released(alice.release(name, {.linger = long_ttl})));
    EXPECT_TRUE(gone(alice.renew(name)));
    EXPECT_TRUE(gone(alice.release(name)));
    EXPECT_TRUE(busy(bob.acquire(name)));
    EXPECT_TRUE(busy(alice.acquire(name, {.as = alice.another_owner()})));
}

TYPED_TEST_P(lease_contract, a_lingering_name_is_shown_as_such_and_outlives_its_client) {
    const auto name = this->unique("nightly");
    auto bob = this->join("bob");
    if (!this->offers_operators(bob)) {
        return;
    }
    {
        auto alice = this->join("alice");
        alice.hold(name);
        ASSERT_TRUE(released(alice.release(name, {.linger = long_ttl})));
    }
    const auto holders = bob.inspect(name).holders;
    ASSERT_EQ(holders.size(), 1U);
    EXPECT_TRUE(holders[0].lingering);
    EXPECT_TRUE(busy(bob.acquire(name)));
}

TYPED_TEST_P(lease_contract, a_lingering_name_can_be_revoked) {
    const auto name = this->unique("nightly");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    const auto token = alice.hold(name);
    ASSERT_TRUE(released(alice.release(name, {.linger = long_ttl})));
    EXPECT_TRUE(revoked(bob.revoke(name, alice.owner(), token)));
    EXPECT_TRUE(granted(bob.acquire(name)));
}

TYPED_TEST_P(lease_contract, the_shortest_ttl_the_engine_promises_is_granted) {
    auto alice = this->join("alice");
    const auto ttl = alice.store().promises().minimum_ttl;
    EXPECT_TRUE(granted(alice.acquire(this->unique("stock"), {.ttl = ttl})));
}

TYPED_TEST_P(lease_contract, the_longest_ttl_the_engine_promises_is_granted) {
    auto alice = this->join("alice");
    const auto ttl = alice.store().promises().maximum_ttl;
    EXPECT_TRUE(granted(alice.acquire(this->unique("stock"), {.ttl = ttl})));
}

TYPED_TEST_P(lease_contract, a_ttl_that_makes_no_sense_is_refused_and_changes_nothing) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    const auto& promises = alice.store().promises();
    const std::chrono::milliseconds one{1};
    for (const auto ttl : {std::chrono::milliseconds::zero(), -one, promises.minimum_ttl - one,
                           promises.maximum_ttl + one, std::chrono::milliseconds::min(),
                           std::chrono::milliseconds::max()}) {
        EXPECT_TRUE(refused(alice.acquire(name, {.ttl = ttl}), errc::invalid_argument))
            << ttl.count() << " ms";
    }
    EXPECT_TRUE(alice.inspect(name).holders.empty());
}

REGISTER_TYPED_TEST_SUITE_P(
    lease_contract,  //
    a_lease_nobody_renews_ends_by_itself_and_not_before_its_ttl,
    a_renewed_lease_lasts_from_the_renewal_on, a_lease_that_is_renewed_in_time_outlives_its_first_ttl,
    an_acquire_sent_again_extends_the_lease, a_renewal_with_a_shorter_ttl_keeps_the_longer_lease,
    a_renewal_by_somebody_else_is_gone_and_extends_nothing,
    a_renewal_of_what_was_never_held_creates_nothing,
    a_renewal_after_expiry_does_not_bring_the_lease_back,
    a_renewal_after_release_does_not_bring_the_lease_back,
    a_renewal_after_revocation_does_not_bring_the_lease_back,
    a_renewal_after_a_takeover_leaves_the_new_holder_alone,
    a_batch_of_renewals_is_answered_item_by_item_in_order,
    a_large_batch_of_renewals_is_answered_completely,
    an_empty_batch_of_renewals_is_answered_with_nothing,
    a_lingering_name_stays_taken_until_the_linger_ends,
    a_linger_may_be_longer_than_what_was_left_of_the_lease,
    a_lingering_name_can_be_neither_renewed_nor_released_by_its_owner,
    a_lingering_name_is_shown_as_such_and_outlives_its_client, a_lingering_name_can_be_revoked,
    the_shortest_ttl_the_engine_promises_is_granted, the_longest_ttl_the_engine_promises_is_granted,
    a_ttl_that_makes_no_sense_is_refused_and_changes_nothing);

}  // namespace holdfast::testing
