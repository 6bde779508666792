#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>

#include <holdfast/testing/contract/fixture.hpp>

/// What somebody on call sees, and what they can take away, from whom exactly.
namespace holdfast::testing {

template <class Store>
class operator_contract : public engine_contract<Store> {};
TYPED_TEST_SUITE_P(operator_contract);

TYPED_TEST_P(operator_contract, a_free_name_has_no_holders) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    const auto info = alice.inspect(name);
    EXPECT_EQ(info.name, name);
    EXPECT_TRUE(info.holders.empty());
    EXPECT_EQ(info.limit, 0U);
    EXPECT_FALSE(info.last_revocation);
}

TYPED_TEST_P(operator_contract, a_holder_is_shown_with_its_terms) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    const auto before = std::chrono::system_clock::now();
    const auto token = alice.hold(name);
    const auto info = bob.inspect(name);
    const auto after = std::chrono::system_clock::now();

    ASSERT_EQ(info.holders.size(), 1U);
    const auto& holder = info.holders[0];
    EXPECT_EQ(holder.owner, alice.owner());
    EXPECT_EQ(holder.mode, claim_mode::exclusive);
    EXPECT_EQ(holder.permits, 1U);
    EXPECT_EQ(holder.token, token);
    EXPECT_EQ(holder.token_count, 1U);
    EXPECT_FALSE(holder.lingering);
    EXPECT_GT(holder.remaining, std::chrono::milliseconds::zero());
    EXPECT_LE(holder.remaining, long_ttl);
    // The store's clock is not ours, but nobody on call wants it to be off by a minute.
    EXPECT_GE(holder.since, before - std::chrono::minutes{1});
    EXPECT_LE(holder.since, after + std::chrono::minutes{1});
}

TYPED_TEST_P(operator_contract, a_holder_is_shown_with_its_card) {
    const auto name = this->unique("stock");
    auto alice = this->join("billing worker \"3\" / größe 100%");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    alice.hold(name);
    const auto holders = bob.inspect(name).holders;
    ASSERT_EQ(holders.size(), 1U);
    ASSERT_TRUE(holders[0].card);
    const auto& card = *holders[0].card;
    EXPECT_EQ(card.host, alice.identity().card.host);
    EXPECT_EQ(card.pid, alice.identity().card.pid);
    EXPECT_EQ(card.program, alice.identity().card.program);
    EXPECT_EQ(card.label, alice.identity().card.label);
}

TYPED_TEST_P(operator_contract, a_live_holder_is_never_called_dead) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    alice.hold(name);
    const auto process = bob.inspect(name).holders.at(0).process;
    EXPECT_NE(process, liveness::dead);
    if (alice.store().promises().notices_dead_holders) {
        EXPECT_EQ(process, liveness::alive);
    }
}

TYPED_TEST_P(operator_contract, the_start_of_a_hold_does_not_move_with_renewals) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    alice.hold(name);
    const auto since = alice.inspect(name).holders.at(0).since;
    ASSERT_TRUE(renewed(alice.renew(name)));
    alice.hold(name);
    EXPECT_EQ(alice.inspect(name).holders.at(0).since, since);
}

TYPED_TEST_P(operator_contract, a_list_holds_what_is_taken_under_the_prefix_and_nothing_else) {
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    alice.hold(this->unique("stock:1"));
    alice.hold(this->unique("stock:2"));
    alice.hold(this->unique("stick:3"));
    alice.hold(this->unique("Stock:4"));
    const auto reply = alice.list(this->unique("stock:"));
    std::set<std::string> names;
    for (const auto& lock : reply.locks) {
        names.insert(lock.name);
        ASSERT_EQ(lock.holders.size(), 1U) << lock.name;
        EXPECT_EQ(lock.holders[0].owner, alice.owner());
    }
    EXPECT_EQ(names, (std::set{this->unique("stock:1"), this->unique("stock:2")}));
    EXPECT_TRUE(reply.next.empty());
}

TYPED_TEST_P(operator_contract, a_prefix_means_itself_and_is_no_pattern) {
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    alice.hold(this->unique("abc"));
    alice.hold(this->unique("a%"));
    alice.hold(this->unique("a_"));
    alice.hold(this->unique("a*"));
    alice.hold(this->unique("a["));
    for (const auto* prefix : {"a%", "a_", "a*", "a["}) {
        const auto reply = alice.list(this->unique(prefix));
        ASSERT_EQ(reply.locks.size(), 1U) << prefix;
        EXPECT_EQ(reply.locks[0].name, this->unique(prefix));
    }
}

TYPED_TEST_P(operator_contract, a_released_name_is_no_longer_listed_as_taken) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    alice.hold(name);
    ASSERT_TRUE(released(alice.release(name)));
    const auto reply = alice.list(name);
    for (const auto& lock : reply.locks) {
        EXPECT_TRUE(lock.holders.empty());
    }
}

TYPED_TEST_P(operator_contract, an_expired_name_is_no_longer_listed_as_taken) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    alice.hold(name, {.ttl = this->short_ttl});
    EXPECT_TRUE(eventually([&] {
        const auto reply = alice.list(name);
        return reply.locks.empty() || reply.locks[0].holders.empty();
    }));
}

TYPED_TEST_P(operator_contract, a_long_list_comes_in_pages_with_every_name_once) {
    constexpr int total = 250;
    constexpr std::size_t page_size = 100;
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    std::map<std::string, int> seen;
    for (int index = 0; index < total; ++index) {
        const auto name = this->unique("page/" + std::to_string(index));
        alice.hold(name);
        seen[name] = 0;
    }
    alice.hold(this->unique("elsewhere"));

    std::string from;
    int pages = 0;
    do {
        const auto reply =
            alice.store().list({.prefix = this->unique("page/"), .from = from, .limit = page_size});
        ASSERT_TRUE(answered(reply));
        EXPECT_LE(reply.locks.size(), page_size);
        for (const auto& lock : reply.locks) {
            ASSERT_EQ(seen.count(lock.name), 1U) << lock.name;
            ++seen[lock.name];
        }
        from = reply.next;
        ++pages;
        ASSERT_LT(pages, total) << "the list does not end";
    } while (!from.empty());

    EXPECT_GE(pages, 3);
    for (const auto& [name, count] : seen) {
        EXPECT_EQ(count, 1) << name;
    }
}

TYPED_TEST_P(operator_contract, a_revoked_lock_is_free_at_once) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    const auto token = alice.hold(name);
    EXPECT_TRUE(revoked(bob.revoke(name, alice.owner(), token)));
    EXPECT_TRUE(bob.inspect(name).holders.empty());
    EXPECT_TRUE(granted(bob.acquire(name)));
}

TYPED_TEST_P(operator_contract, a_revocation_is_remembered_with_its_reason) {
    const auto name = this->unique("stock");
    const std::string reason = "stuck since \"noon\", größe 100%";
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    const auto token = alice.hold(name);
    const auto before = std::chrono::system_clock::now();
    ASSERT_TRUE(revoked(bob.revoke(name, alice.owner(), token, reason)));
    const auto last = alice.inspect(name).last_revocation;
    ASSERT_TRUE(last);
    EXPECT_EQ(last->owner, alice.owner());
    EXPECT_EQ(last->token, token);
    EXPECT_EQ(last->actor, "bob");
    EXPECT_EQ(last->reason, reason);
    EXPECT_GE(last->at, before - std::chrono::minutes{1});
}

TYPED_TEST_P(operator_contract, a_revocation_is_still_known_when_the_next_holder_is_in) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    const auto token = alice.hold(name);
    ASSERT_TRUE(revoked(bob.revoke(name, alice.owner(), token, "stuck")));
    bob.hold(name);
    const auto last = alice.inspect(name).last_revocation;
    ASSERT_TRUE(last);
    EXPECT_EQ(last->reason, "stuck");
    EXPECT_TRUE(gone(alice.renew(name)));
    EXPECT_TRUE(gone(alice.release(name)));
    EXPECT_TRUE(renewed(bob.renew(name)));
}

TYPED_TEST_P(operator_contract, a_revoked_holder_is_told_so_at_its_next_renewal) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    const auto token = alice.hold(name);
    ASSERT_TRUE(revoked(bob.revoke(name, alice.owner(), token, "stuck")));
    const auto reply = alice.renew(name);
    ASSERT_TRUE(gone(reply));
    EXPECT_EQ(reply.error.code, errc::revoked);
    EXPECT_NE(reply.error.detail.find("stuck"), std::string::npos) << reply.error.detail;
}

TYPED_TEST_P(operator_contract, a_revocation_of_another_owner_touches_nothing) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    const auto token = alice.hold(name);
    EXPECT_TRUE(gone(bob.revoke(name, bob.owner(), token)));
    EXPECT_TRUE(gone(bob.revoke(name, alice.another_owner(), token)));
    EXPECT_TRUE(renewed(alice.renew(name)));
    EXPECT_FALSE(alice.inspect(name).last_revocation);
}

TYPED_TEST_P(operator_contract, a_revocation_with_another_token_touches_nothing) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_tokens(alice)) {
        return;
    }
    const auto token = alice.hold(name);
    EXPECT_TRUE(gone(bob.revoke(name, alice.owner(), {token.value + 1})));
    EXPECT_TRUE(gone(bob.revoke(name, alice.owner(), {token.value - 1})));
    EXPECT_TRUE(gone(bob.revoke(name, alice.owner(), {})));
    EXPECT_TRUE(renewed(alice.renew(name)));
    EXPECT_FALSE(alice.inspect(name).last_revocation);
}

TYPED_TEST_P(operator_contract, a_revocation_that_comes_after_the_lock_changed_hands_touches_nothing) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    const auto token = alice.hold(name);
    ASSERT_TRUE(released(alice.release(name)));
    bob.hold(name);
    EXPECT_TRUE(gone(alice.revoke(name, alice.owner(), token)));
    EXPECT_TRUE(renewed(bob.renew(name)));
}

TYPED_TEST_P(operator_contract, a_revocation_sent_again_is_gone) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    const auto token = alice.hold(name);
    ASSERT_TRUE(revoked(bob.revoke(name, alice.owner(), token)));
    EXPECT_TRUE(gone(bob.revoke(name, alice.owner(), token)));
}

REGISTER_TYPED_TEST_SUITE_P(
    operator_contract,  //
    a_free_name_has_no_holders, a_holder_is_shown_with_its_terms, a_holder_is_shown_with_its_card,
    a_live_holder_is_never_called_dead, the_start_of_a_hold_does_not_move_with_renewals,
    a_list_holds_what_is_taken_under_the_prefix_and_nothing_else,
    a_prefix_means_itself_and_is_no_pattern, a_released_name_is_no_longer_listed_as_taken,
    an_expired_name_is_no_longer_listed_as_taken, a_long_list_comes_in_pages_with_every_name_once,
    a_revoked_lock_is_free_at_once, a_revocation_is_remembered_with_its_reason,
    a_revocation_is_still_known_when_the_next_holder_is_in,
    a_revoked_holder_is_told_so_at_its_next_renewal, a_revocation_of_another_owner_touches_nothing,
    a_revocation_with_another_token_touches_nothing,
    a_revocation_that_comes_after_the_lock_changed_hands_touches_nothing,
    a_revocation_sent_again_is_gone);

}  // namespace holdfast::testing
