#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <holdfast/testing/contract/fixture.hpp>

/// Never more permits out than the limit, and all who use a name agree on what it is.
namespace holdfast::testing {

template <class Store>
class permit_contract : public engine_contract<Store> {
protected:
    [[nodiscard]] static claim_terms permits(std::uint32_t count, std::uint32_t limit) {
        return {.mode = claim_mode::permit, .permits = count, .limit = limit};
    }
    [[nodiscard]] static claim_terms permits(std::uint32_t count, std::uint32_t limit,
                                             const owner_id& owner) {
        return {.mode = claim_mode::permit, .permits = count, .limit = limit, .as = owner};
    }
    static constexpr release_terms permit{.mode = claim_mode::permit};
};
TYPED_TEST_SUITE_P(permit_contract);

TYPED_TEST_P(permit_contract, as_many_holders_as_the_limit_are_let_in) {
    const auto name = this->unique("slots");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_permits(alice)) {
        return;
    }
    alice.hold(name, this->permits(1, 3));
    bob.hold(name, this->permits(1, 3));
    alice.hold(name, this->permits(1, 3, alice.another_owner()));
    EXPECT_TRUE(busy(bob.acquire(name, this->permits(1, 3, bob.another_owner()))));
    ASSERT_TRUE(released(alice.release(name, this->permit)));
    EXPECT_TRUE(granted(bob.acquire(name, this->permits(1, 3, bob.another_owner()))));
}

TYPED_TEST_P(permit_contract, several_permits_are_taken_together_or_not_at_all) {
    const auto name = this->unique("slots");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    auto carol = this->join("carol");
    if (!this->offers_permits(alice)) {
        return;
    }
    alice.hold(name, this->permits(2, 3));
    EXPECT_TRUE(busy(bob.acquire(name, this->permits(2, 3))));
    EXPECT_TRUE(granted(carol.acquire(name, this->permits(1, 3))));
    ASSERT_TRUE(released(alice.release(name, this->permit)));
    EXPECT_TRUE(granted(bob.acquire(name, this->permits(2, 3))));
}

TYPED_TEST_P(permit_contract, an_acquire_sent_again_counts_once) {
    const auto name = this->unique("slots");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_permits(alice)) {
        return;
    }
    const auto first = alice.hold(name, this->permits(1, 2));
    EXPECT_EQ(alice.hold(name, this->permits(1, 2)), first);
    EXPECT_TRUE(granted(bob.acquire(name, this->permits(1, 2))));
}

TYPED_TEST_P(permit_contract, a_release_sent_again_returns_nothing_twice) {
    const auto name = this->unique("slots");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_permits(alice)) {
        return;
    }
    alice.hold(name, this->permits(1, 1));
    ASSERT_TRUE(released(alice.release(name, this->permit)));
    EXPECT_TRUE(gone(alice.release(name, this->permit)));
    bob.hold(name, this->permits(1, 1));
    EXPECT_TRUE(gone(alice.release(name, this->permit)));
    EXPECT_TRUE(busy(alice.acquire(name, this->permits(1, 1))));
}

TYPED_TEST_P(permit_contract, permits_return_by_themselves_and_not_before_the_ttl) {
    const auto name = this->unique("slots");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_permits(alice)) {
        return;
    }
    const auto asked_at = clock::now();
    alice.hold(name, {.mode = claim_mode::permit, .ttl = this->short_ttl, .permits = 2, .limit = 2});
    const auto freed_at = bob.acquire_eventually(name, this->permits(2, 2));
    ASSERT_TRUE(freed_at);
    this->expect_not_before(this->short_ttl, asked_at, *freed_at);
    EXPECT_TRUE(gone(alice.renew(name, {.mode = claim_mode::permit})));
}

TYPED_TEST_P(permit_contract, a_permit_is_renewed_by_its_owner_only) {
    const auto name = this->unique("slots");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_permits(alice)) {
        return;
    }
    alice.hold(name, this->permits(1, 2));
    EXPECT_TRUE(renewed(alice.renew(name, {.mode = claim_mode::permit})));
    EXPECT_TRUE(gone(bob.renew(name, {.mode = claim_mode::permit})));
}

TYPED_TEST_P(permit_contract, permits_and_limit_are_shown) {
    const auto name = this->unique("slots");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    if (!this->offers_permits(alice)) {
        return;
    }
    alice.hold(name, this->permits(2, 5));
    const auto info = alice.inspect(name);
    EXPECT_EQ(info.limit, 5U);
    ASSERT_EQ(info.holders.size(), 1U);
    EXPECT_EQ(info.holders[0].permits, 2U);
    EXPECT_EQ(info.holders[0].mode, claim_mode::permit);
}

TYPED_TEST_P(permit_contract, counts_that_make_no_sense_are_refused_and_change_nothing) {
    const auto name = this->unique("slots");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    if (!this->offers_permits(alice)) {
        return;
    }
    EXPECT_TRUE(refused(alice.acquire(name, this->permits(4, 3)), errc::invalid_argument));
    EXPECT_TRUE(refused(alice.acquire(name, this->permits(0, 3)), errc::invalid_argument));
    EXPECT_TRUE(refused(alice.acquire(name, this->permits(1, 0)), errc::invalid_argument));
    EXPECT_TRUE(refused(alice.acquire(name, this->permits(65'537, 70'000)), errc::invalid_argument));
    EXPECT_TRUE(alice.inspect(name).holders.empty());
}

TYPED_TEST_P(permit_contract, another_limit_is_refused_while_permits_are_out) {
    const auto name = this->unique("slots");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_permits(alice)) {
        return;
    }
    alice.hold(name, this->permits(1, 3));
    EXPECT_TRUE(refused(bob.acquire(name, this->permits(1, 4)), errc::wrong_kind));
    EXPECT_TRUE(refused(bob.acquire(name, this->permits(1, 2)), errc::wrong_kind));
    EXPECT_TRUE(granted(bob.acquire(name, this->permits(1, 3))));
}

TYPED_TEST_P(permit_contract, another_limit_is_fine_once_all_permits_are_back) {
    const auto name = this->unique("slots");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_permits(alice)) {
        return;
    }
    alice.hold(name, this->permits(1, 3));
    ASSERT_TRUE(released(alice.release(name, this->permit)));
    EXPECT_TRUE(granted(bob.acquire(name, this->permits(1, 4))));
}

TYPED_TEST_P(permit_contract, a_name_with_permits_out_is_not_a_lock) {
    const auto name = this->unique("slots");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_permits(alice)) {
        return;
    }
    alice.hold(name, this->permits(1, 3));
    EXPECT_TRUE(refused(bob.acquire(name), errc::wrong_kind));
    if (this->offers_shared(bob)) {
        EXPECT_TRUE(refused(bob.acquire(name, {.mode = claim_mode::shared}), errc::wrong_kind));
    }
    EXPECT_TRUE(renewed(alice.renew(name, {.mode = claim_mode::permit})));
}

TYPED_TEST_P(permit_contract, a_name_that_is_locked_has_no_permits) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_permits(alice)) {
        return;
    }
    alice.hold(name);
    EXPECT_TRUE(refused(bob.acquire(name, this->permits(1, 3)), errc::wrong_kind));
    EXPECT_TRUE(renewed(alice.renew(name)));
}

TYPED_TEST_P(permit_contract, any_sequence_of_calls_agrees_with_a_simple_model) {
    constexpr std::uint32_t limit = 7;
    constexpr int steps = 400;
    constexpr std::uint32_t seed = 20240711;
    const auto name = this->unique("slots");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_permits(alice)) {
        return;
    }
    struct participant {
        contender& asker;
        owner_id owner;
        std::uint32_t held{};
    };
    std::vector<participant> participants;
    for (int index = 0; index < 3; ++index) {
        participants.push_back({alice, alice.another_owner()});
        participants.push_back({bob, bob.another_owner()});
    }
    std::mt19937 random{seed};
    const auto pick = [&](std::uint32_t from, std::uint32_t to) {
        return std::uniform_int_distribution<std::uint32_t>{from, to}(random);
    };
    std::uint32_t out = 0;

    for (int step = 0; step < steps; ++step) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", step " + std::to_string(step));
        auto& one = participants[pick(0, static_cast<std::uint32_t>(participants.size() - 1))];
        const auto wanted = one.held != 0 ? one.held : pick(1, limit);
        if (pick(0, 1) == 0) {
            const auto reply = one.asker.acquire(name, this->permits(wanted, limit, one.owner));
            const bool fits = one.held != 0 || out + wanted <= limit;
            ASSERT_TRUE(fits ? granted(reply) : busy(reply)) << out << " out, " << wanted << " wanted";
            if (fits && one.held == 0) {
                one.held = wanted;
                out += wanted;
            }
        } else {
            const auto reply = one.asker.release(name, {.mode = claim_mode::permit, .as = one.owner});
            ASSERT_TRUE(one.held != 0 ? released(reply) : gone(reply));
            out -= one.held;
            one.held = 0;
        }
        std::uint32_t shown = 0;
        for (const auto& holder : one.asker.inspect(name).holders) {
            shown += holder.permits;
        }
        ASSERT_EQ(shown, out);
    }
}

REGISTER_TYPED_TEST_SUITE_P(
    permit_contract,  //
    as_many_holders_as_the_limit_are_let_in, several_permits_are_taken_together_or_not_at_all,
    an_acquire_sent_again_counts_once, a_release_sent_again_returns_nothing_twice,
    permits_return_by_themselves_and_not_before_the_ttl, a_permit_is_renewed_by_its_owner_only,
    permits_and_limit_are_shown, counts_that_make_no_sense_are_refused_and_change_nothing,
    another_limit_is_refused_while_permits_are_out, another_limit_is_fine_once_all_permits_are_back,
    a_name_with_permits_out_is_not_a_lock, a_name_that_is_locked_has_no_permits,
    any_sequence_of_calls_agrees_with_a_simple_model);

}  // namespace holdfast::testing
