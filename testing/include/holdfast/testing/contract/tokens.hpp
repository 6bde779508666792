#pragma once

#include <holdfast/testing/contract/fixture.hpp>

/// Fencing tokens rise with every grant.
namespace holdfast::testing {

template <class Store>
class token_contract : public engine_contract<Store> {};
TYPED_TEST_SUITE_P(token_contract);

TYPED_TEST_P(token_contract, a_token_is_never_zero) {
    auto alice = this->join("alice");
    if (!this->offers_tokens(alice)) {
        return;
    }
    EXPECT_GT(alice.hold(this->unique("stock")), fencing_token{});
}

TYPED_TEST_P(token_contract, tokens_rise_with_every_grant_whoever_gets_it) {
    constexpr int rounds = 50;
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_tokens(alice)) {
        return;
    }
    fencing_token last{};
    for (int round = 0; round < rounds; ++round) {
        auto& asker = round % 2 == 0 ? alice : bob;
        asker.become_fresh_owner();
        const auto token = asker.hold(name);
        ASSERT_GT(token, last) << "in round " << round;
        last = token;
        ASSERT_TRUE(released(asker.release(name)));
    }
}

TYPED_TEST_P(token_contract, tokens_rise_even_for_an_owner_that_comes_back) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_tokens(alice)) {
        return;
    }
    const auto first = alice.hold(name);
    ASSERT_TRUE(released(alice.release(name)));
    EXPECT_GT(alice.hold(name), first);
}

TYPED_TEST_P(token_contract, tokens_rise_after_an_expiry) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_tokens(alice)) {
        return;
    }
    const auto first = alice.hold(name, {.ttl = this->short_ttl});
    ASSERT_TRUE(bob.acquire_eventually(name));
    EXPECT_GT(bob.hold(name), first);
}

TYPED_TEST_P(token_contract, tokens_rise_after_a_revocation) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_tokens(alice)) {
        return;
    }
    const auto first = alice.hold(name);
    ASSERT_TRUE(revoked(bob.revoke(name, alice.owner(), first)));
    EXPECT_GT(bob.hold(name), first);
}

TYPED_TEST_P(token_contract, tokens_rise_after_all_clients_have_gone_and_come_back) {
    const auto name = this->unique("stock");
    auto keeper = this->join("keeper of the store");
    if (!this->offers_tokens(keeper)) {
        return;
    }
    fencing_token first;
    {
        auto alice = this->join("alice");
        first = alice.hold(name);
        ASSERT_TRUE(released(alice.release(name)));
    }
    auto bob = this->join("bob");
    EXPECT_GT(bob.hold(name), first);
}

TYPED_TEST_P(token_contract, a_reserved_block_of_tokens_is_used_by_nobody_else) {
    constexpr std::uint32_t block = 5;
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_tokens(alice)) {
        return;
    }
    for (int round = 0; round < 10; ++round) {
        alice.become_fresh_owner();
        const auto reserved = alice.acquire(name, {.token_count = block});
        ASSERT_TRUE(granted(reserved));
        ASSERT_EQ(reserved.token_count, block);
        EXPECT_EQ(bob.inspect(name).holders.at(0).token_count, block);
        ASSERT_TRUE(released(alice.release(name)));
        bob.become_fresh_owner();
        EXPECT_GE(bob.hold(name).value, reserved.first_token.value + block);
        ASSERT_TRUE(released(bob.release(name)));
    }
}

TYPED_TEST_P(token_contract, an_acquire_sent_again_is_given_the_same_block_of_tokens) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_tokens(alice)) {
        return;
    }
    const auto first = alice.acquire(name, {.token_count = 5});
    const auto again = alice.acquire(name, {.token_count = 5});
    ASSERT_TRUE(granted(again));
    EXPECT_EQ(again.first_token, first.first_token);
    EXPECT_EQ(again.token_count, first.token_count);
}

TYPED_TEST_P(token_contract, every_reader_has_a_token_larger_than_all_before) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice", lock_kind::shared_mutex);
    auto bob = this->join("bob", lock_kind::shared_mutex);
    if (!this->offers_tokens(alice) || !this->offers_shared(alice)) {
        return;
    }
    const auto writer = alice.hold(name);
    ASSERT_TRUE(released(alice.release(name)));
    alice.become_fresh_owner();
    const auto first_reader = alice.hold(name, {.mode = claim_mode::shared});
    const auto second_reader = bob.hold(name, {.mode = claim_mode::shared});
    EXPECT_GT(first_reader, writer);
    EXPECT_GT(second_reader, first_reader);
}

TYPED_TEST_P(token_contract, every_permit_has_a_token_larger_than_all_before) {
    const auto name = this->unique("slots");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_tokens(alice) || !this->offers_permits(alice)) {
        return;
    }
    const auto first = alice.hold(name, {.mode = claim_mode::permit, .limit = 3});
    const auto second = bob.hold(name, {.mode = claim_mode::permit, .limit = 3});
    EXPECT_GT(second, first);
}

TYPED_TEST_P(token_contract, a_grant_starts_no_lower_than_the_floor_asked_for) {
    constexpr std::uint32_t block = 5;
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_token_floor(alice)) {
        return;
    }
    const fencing_token floor{alice.hold(name).value + 1'000'000};
    ASSERT_TRUE(released(alice.release(name)));
    alice.become_fresh_owner();
    const auto reply = alice.acquire(name, {.token_count = block, .token_floor = floor});
    ASSERT_TRUE(granted(reply));
    EXPECT_EQ(reply.first_token, floor);
    ASSERT_TRUE(released(alice.release(name)));
    const auto next = bob.hold(name);
    EXPECT_GE(next.value, floor.value + block);
    ASSERT_TRUE(released(bob.release(name)));

    bob.become_fresh_owner();
    const auto above = bob.acquire(name, {.token_floor = floor});
    ASSERT_TRUE(granted(above));
    EXPECT_GT(above.first_token, next) << "a floor below what was granted changes nothing";
}

TYPED_TEST_P(token_contract, a_holder_that_asks_again_is_raised_to_the_floor) {
    for (const auto mode : {claim_mode::exclusive, claim_mode::shared}) {
        const auto name = this->unique("stock");
        auto alice = this->join("alice", lock_kind::shared_mutex);
        auto bob = this->join("bob", lock_kind::shared_mutex);
        if (!this->offers_token_floor(alice) || !this->offers_shared(alice)) {
            return;
        }
        const auto first = alice.acquire(name, {.mode = mode, .token_count = 5});
        ASSERT_TRUE(granted(first));
        const fencing_token floor{first.first_token.value + 1'000'000};
        const auto raised = alice.acquire(name, {.mode = mode, .token_count = 5, .token_floor = floor});
        ASSERT_TRUE(granted(raised));
        EXPECT_EQ(raised.first_token, floor);
        EXPECT_EQ(raised.token_count, first.token_count);
        const auto seen = bob.inspect(name);
        ASSERT_EQ(seen.holders.size(), 1U);
        EXPECT_EQ(seen.holders.front().token, floor);

        const auto below =
            alice.acquire(name, {.mode = mode, .token_count = 5, .token_floor = first.first_token});
        EXPECT_EQ(below.first_token, floor) << "a token never falls";
        ASSERT_TRUE(released(alice.release(name, {.mode = mode})));
        EXPECT_GE(bob.hold(name).value, floor.value + 5);
        ASSERT_TRUE(released(bob.release(name)));
    }
}

REGISTER_TYPED_TEST_SUITE_P(token_contract,  //
                            a_grant_starts_no_lower_than_the_floor_asked_for,
                            a_holder_that_asks_again_is_raised_to_the_floor, a_token_is_never_zero,
                            tokens_rise_with_every_grant_whoever_gets_it,
                            tokens_rise_even_for_an_owner_that_comes_back, tokens_rise_after_an_expiry,
                            tokens_rise_after_a_revocation,
                            tokens_rise_after_all_clients_have_gone_and_come_back,
                            a_reserved_block_of_tokens_is_used_by_nobody_else,
                            an_acquire_sent_again_is_given_the_same_block_of_tokens,
                            every_reader_has_a_token_larger_than_all_before,
                            every_permit_has_a_token_larger_than_all_before);

}  // namespace holdfast::testing
