#pragma once

#include <string>
#include <vector>

#include <holdfast/testing/contract/fixture.hpp>

/// Several locks in one step: all or none. Engines need not offer it.
namespace holdfast::testing {

template <class Store>
class together_contract : public engine_contract<Store> {
protected:
    /// Three names that the store can take together; empty when it cannot, and then says so.
    [[nodiscard]] std::vector<std::string> names_for(contender& anybody) {
        // The braces make a Redis cluster keep them in one place.
        std::vector<std::string> names;
        for (const auto* number : {"1", "2", "3"}) {
            names.push_back(this->unique("{basket}") + number);
        }
        const auto* const ability = anybody.store().raw().offers().joint_locking;
        if (ability != nullptr && ability->acquires_together(names)) {
            return names;
        }
        EXPECT_EQ(anybody.store().acquire_all(requests(anybody, names)).error.code,
                  errc::guarantee_not_met);
        return {};
    }
    /// With an owner for each.
    [[nodiscard]] static std::vector<engines::acquire_request> requests(
        contender& by, const std::vector<std::string>& names) {
        std::vector<engines::acquire_request> all;
        for (const auto& name : names) {
            engines::acquire_request one;
            one.name = name;
            one.owner = by.another_owner();
            one.ttl = long_ttl;
            all.push_back(one);
        }
        return all;
    }
};
TYPED_TEST_SUITE_P(together_contract);

TYPED_TEST_P(together_contract, free_names_are_all_granted) {
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    const auto names = this->names_for(alice);
    if (names.empty()) {
        return;
    }
    const auto asked = this->requests(alice, names);
    const auto reply = alice.store().acquire_all(asked);
    ASSERT_EQ(reply.result, engines::acquire_reply::outcome::granted) << reply.error.detail;
    ASSERT_EQ(reply.grants.size(), names.size());
    for (std::size_t index = 0; index < names.size(); ++index) {
        EXPECT_TRUE(busy(bob.acquire(names[index])));
        const auto info = bob.inspect(names[index]);
        ASSERT_EQ(info.holders.size(), 1U);
        EXPECT_EQ(info.holders[0].owner, asked[index].owner);
        EXPECT_EQ(info.holders[0].token, reply.grants[index].first_token);
        EXPECT_TRUE(renewed(alice.renew(names[index], {.as = asked[index].owner})));
        EXPECT_TRUE(released(alice.release(names[index], {.as = asked[index].owner})));
    }
}

TYPED_TEST_P(together_contract, one_busy_name_keeps_all_of_them_free) {
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    const auto names = this->names_for(alice);
    if (names.empty()) {
        return;
    }
    bob.hold(names[1]);
    const auto reply = alice.store().acquire_all(this->requests(alice, names));
    EXPECT_EQ(reply.result, engines::acquire_reply::outcome::busy);
    EXPECT_EQ(reply.busy, 1U);
    EXPECT_LE(reply.retry_after, long_ttl);
    EXPECT_TRUE(alice.inspect(names[0]).holders.empty());
    EXPECT_TRUE(alice.inspect(names[2]).holders.empty());
}

TYPED_TEST_P(together_contract, sent_again_they_are_granted_with_the_same_tokens) {
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    const auto names = this->names_for(alice);
    if (names.empty()) {
        return;
    }
    const auto asked = this->requests(alice, names);
    const auto first = alice.store().acquire_all(asked);
    const auto again = alice.store().acquire_all(asked);
    ASSERT_EQ(first.result, engines::acquire_reply::outcome::granted);
    ASSERT_EQ(again.result, engines::acquire_reply::outcome::granted);
    for (std::size_t index = 0; index < names.size(); ++index) {
        EXPECT_EQ(again.grants[index].first_token, first.grants[index].first_token);
        EXPECT_EQ(alice.inspect(names[index]).holders.size(), 1U);
    }
}

TYPED_TEST_P(together_contract, tokens_are_larger_than_all_before) {
    auto alice = this->join("alice");
    const auto names = this->names_for(alice);
    if (names.empty() || !this->offers_tokens(alice)) {
        return;
    }
    const auto before = alice.hold(names[2]);
    ASSERT_TRUE(released(alice.release(names[2])));
    const auto reply = alice.store().acquire_all(this->requests(alice, names));
    ASSERT_EQ(reply.result, engines::acquire_reply::outcome::granted);
    EXPECT_GT(reply.grants[2].first_token, before);
}

REGISTER_TYPED_TEST_SUITE_P(together_contract,  //
                            free_names_are_all_granted, one_busy_name_keeps_all_of_them_free,
                            sent_again_they_are_granted_with_the_same_tokens,
                            tokens_are_larger_than_all_before);

}  // namespace holdfast::testing
