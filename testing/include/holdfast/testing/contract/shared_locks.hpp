#pragma once

#include <algorithm>

#include <holdfast/testing/contract/fixture.hpp>

/// Many readers or one writer; every reader with a lease of its own.
namespace holdfast::testing {

template <class Store>
class shared_contract : public engine_contract<Store> {
protected:
    [[nodiscard]] contender join(const std::string& label) {
        return engine_contract<Store>::join(label, lock_kind::shared_mutex);
    }
};
TYPED_TEST_SUITE_P(shared_contract);

inline constexpr claim_terms reading{.mode = claim_mode::shared};

TYPED_TEST_P(shared_contract, readers_do_not_exclude_each_other) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    alice.hold(name, reading);
    bob.hold(name, reading);
    alice.hold(name, {.mode = claim_mode::shared, .as = alice.another_owner()});
    EXPECT_EQ(bob.inspect(name).holders.size(), 3U);
}

TYPED_TEST_P(shared_contract, a_reader_keeps_writers_out) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    alice.hold(name, reading);
    EXPECT_TRUE(busy(bob.acquire(name)));
    ASSERT_TRUE(released(alice.release(name, {.mode = claim_mode::shared})));
    EXPECT_TRUE(granted(bob.acquire(name)));
}

TYPED_TEST_P(shared_contract, a_writer_keeps_readers_out) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    alice.hold(name);
    EXPECT_TRUE(busy(bob.acquire(name, reading)));
    ASSERT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(granted(bob.acquire(name, reading)));
}

TYPED_TEST_P(shared_contract, writers_wait_for_the_last_reader) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    auto carol = this->join("carol");
    if (!this->offers_shared(alice)) {
        return;
    }
    alice.hold(name, reading);
    bob.hold(name, reading);
    ASSERT_TRUE(released(alice.release(name, {.mode = claim_mode::shared})));
    EXPECT_TRUE(busy(carol.acquire(name)));
    EXPECT_TRUE(renewed(bob.renew(name, {.mode = claim_mode::shared})));
    ASSERT_TRUE(released(bob.release(name, {.mode = claim_mode::shared})));
    EXPECT_TRUE(granted(carol.acquire(name)));
}

TYPED_TEST_P(shared_contract, a_reader_sent_again_counts_once) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    const auto first = alice.hold(name, reading);
    EXPECT_EQ(alice.hold(name, reading), first);
    ASSERT_TRUE(released(alice.release(name, {.mode = claim_mode::shared})));
    EXPECT_TRUE(gone(alice.release(name, {.mode = claim_mode::shared})));
    EXPECT_TRUE(granted(bob.acquire(name)));
}

TYPED_TEST_P(shared_contract, a_reader_releases_only_its_own_share) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    alice.hold(name, reading);
    EXPECT_TRUE(gone(bob.release(name, {.mode = claim_mode::shared})));
    EXPECT_TRUE(renewed(alice.renew(name, {.mode = claim_mode::shared})));
}

TYPED_TEST_P(shared_contract, a_reader_that_expires_lets_the_writer_in_and_not_before_its_ttl) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    const auto asked_at = clock::now();
    alice.hold(name, {.mode = claim_mode::shared, .ttl = this->short_ttl});
    const auto freed_at = bob.acquire_eventually(name);
    ASSERT_TRUE(freed_at);
    this->expect_not_before(this->short_ttl, asked_at, *freed_at);
}

TYPED_TEST_P(shared_contract, a_reader_that_expires_takes_no_other_reader_with_it) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    auto carol = this->join("carol");
    if (!this->offers_shared(alice)) {
        return;
    }
    bob.hold(name, reading);
    alice.hold(name, {.mode = claim_mode::shared, .ttl = this->short_ttl});
    ASSERT_TRUE(eventually([&] { return carol.inspect(name).holders.size() == 1; }));
    EXPECT_TRUE(gone(alice.renew(name, {.mode = claim_mode::shared})));
    EXPECT_TRUE(renewed(bob.renew(name, {.mode = claim_mode::shared})));
    EXPECT_TRUE(busy(carol.acquire(name)));
}

TYPED_TEST_P(shared_contract, one_readers_renewal_does_not_keep_another_reader_alive) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    alice.hold(name, {.mode = claim_mode::shared, .ttl = this->short_ttl});
    bob.hold(name, reading);
    ASSERT_TRUE(renewed(bob.renew(name, {.mode = claim_mode::shared})));
    EXPECT_TRUE(eventually([&] { return bob.inspect(name).holders.size() == 1; }));
    EXPECT_TRUE(gone(alice.renew(name, {.mode = claim_mode::shared})));
}

TYPED_TEST_P(shared_contract, a_downgraded_writer_keeps_its_token_and_lets_readers_in) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    const auto token = alice.hold(name);
    EXPECT_EQ(alice.hold(name, reading), token);
    EXPECT_TRUE(granted(bob.acquire(name, reading)));
    EXPECT_TRUE(busy(bob.acquire(name, {.as = bob.another_owner()})));
    EXPECT_TRUE(renewed(alice.renew(name, {.mode = claim_mode::shared})));
}

TYPED_TEST_P(shared_contract, the_only_reader_is_upgraded_with_a_new_token) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    const auto as_reader = alice.hold(name, reading);
    const auto as_writer = alice.hold(name);
    if (alice.store().promises().tokens != engines::fencing::none) {
        EXPECT_GT(as_writer, as_reader);
    }
    EXPECT_TRUE(busy(bob.acquire(name, reading)));
    const auto holders = bob.inspect(name).holders;
    ASSERT_EQ(holders.size(), 1U);
    EXPECT_EQ(holders[0].mode, claim_mode::exclusive);
    ASSERT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(granted(bob.acquire(name)));
}

TYPED_TEST_P(shared_contract, one_of_two_readers_is_not_upgraded_and_keeps_its_share) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    alice.hold(name, reading);
    bob.hold(name, reading);
    EXPECT_TRUE(busy(alice.acquire(name)));
    EXPECT_TRUE(renewed(alice.renew(name, {.mode = claim_mode::shared})));
    EXPECT_EQ(bob.inspect(name).holders.size(), 2U);

    ASSERT_TRUE(released(bob.release(name, {.mode = claim_mode::shared})));
    EXPECT_TRUE(granted(alice.acquire(name)));
}

/// After a lost answer to an upgrade or a downgrade the client does not know what it has.
TYPED_TEST_P(shared_contract, a_release_takes_what_the_owner_has_whatever_mode_it_names) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    alice.hold(name, reading);
    alice.hold(name);
    EXPECT_TRUE(renewed(alice.renew(name, {.mode = claim_mode::shared})));
    EXPECT_TRUE(released(alice.release(name, {.mode = claim_mode::shared})));
    EXPECT_TRUE(bob.inspect(name).holders.empty());

    alice.become_fresh_owner();
    alice.hold(name);
    alice.hold(name, reading);
    EXPECT_TRUE(gone(alice.renew(name))) << "it is no writer any more";
    EXPECT_TRUE(released(alice.release(name)));
    EXPECT_TRUE(bob.inspect(name).holders.empty());
    EXPECT_TRUE(granted(bob.acquire(name)));
}

/// Others may have written in between, and the owner would not learn of it.
TYPED_TEST_P(shared_contract, a_conversion_of_a_claim_that_is_gone_grants_nothing) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    const auto expect_lost = [&](const std::string& step) {
        for (const auto mode : {claim_mode::exclusive, claim_mode::shared}) {
            const auto reply = alice.acquire(name, {.mode = mode, .converts = true});
            EXPECT_EQ(reply.result, engines::acquire_reply::outcome::failed) << step;
            EXPECT_EQ(reply.error.code, errc::lost) << step;
        }
    };
    const auto token = alice.hold(name, reading);
    ASSERT_TRUE(revoked(bob.revoke(name, alice.owner(), token)));
    expect_lost("nobody is there");
    EXPECT_TRUE(bob.inspect(name).holders.empty());
    bob.hold(name, reading);
    expect_lost("another reads");
    ASSERT_TRUE(released(bob.release(name, {.mode = claim_mode::shared})));
    bob.become_fresh_owner();
    bob.hold(name);
    expect_lost("another writes");
    EXPECT_EQ(bob.inspect(name).holders.size(), 1U);
}

TYPED_TEST_P(shared_contract, a_conversion_of_a_claim_that_is_there_is_one_like_any_other) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    alice.hold(name, reading);
    const auto as_writer = alice.acquire(name, {.converts = true});
    ASSERT_TRUE(granted(as_writer));
    EXPECT_EQ(alice.acquire(name, {.converts = true}).first_token, as_writer.first_token);
    const auto as_reader = alice.acquire(name, {.mode = claim_mode::shared, .converts = true});
    ASSERT_TRUE(granted(as_reader));
    EXPECT_EQ(as_reader.first_token, as_writer.first_token);
    EXPECT_TRUE(granted(alice.acquire(name, {.mode = claim_mode::shared, .converts = true})));
    bob.hold(name, reading);
    EXPECT_TRUE(busy(alice.acquire(name, {.converts = true})));
    EXPECT_EQ(bob.inspect(name).holders.size(), 2U);
}

TYPED_TEST_P(shared_contract, readers_are_shown_one_by_one) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    const auto alices = alice.hold(name, reading);
    const auto bobs = bob.hold(name, reading);
    const auto holders = alice.inspect(name).holders;
    ASSERT_EQ(holders.size(), 2U);
    const auto shown = [&](const contender& asker, fencing_token token) {
        return std::count_if(holders.begin(), holders.end(), [&](const holder_info& holder) {
            return holder.owner == asker.owner() && holder.token == token &&
                   holder.mode == claim_mode::shared;
        });
    };
    EXPECT_EQ(shown(alice, alices), 1);
    EXPECT_EQ(shown(bob, bobs), 1);
}

TYPED_TEST_P(shared_contract, revoking_one_reader_leaves_the_others_alone) {
    const auto name = this->unique("stock");
    auto alice = this->join("alice");
    if (!this->offers_operators(alice)) {
        return;
    }
    auto bob = this->join("bob");
    if (!this->offers_shared(alice)) {
        return;
    }
    const auto alices = alice.hold(name, reading);
    bob.hold(name, reading);
    EXPECT_TRUE(revoked(bob.revoke(name, alice.owner(), alices)));
    EXPECT_TRUE(gone(alice.renew(name, {.mode = claim_mode::shared})));
    EXPECT_TRUE(renewed(bob.renew(name, {.mode = claim_mode::shared})));
}

REGISTER_TYPED_TEST_SUITE_P(shared_contract,  //
                            readers_do_not_exclude_each_other, a_reader_keeps_writers_out,
                            a_writer_keeps_readers_out, writers_wait_for_the_last_reader,
                            a_reader_sent_again_counts_once, a_reader_releases_only_its_own_share,
                            a_reader_that_expires_lets_the_writer_in_and_not_before_its_ttl,
                            a_reader_that_expires_takes_no_other_reader_with_it,
                            one_readers_renewal_does_not_keep_another_reader_alive,
                            a_downgraded_writer_keeps_its_token_and_lets_readers_in,
                            the_only_reader_is_upgraded_with_a_new_token,
                            one_of_two_readers_is_not_upgraded_and_keeps_its_share,
                            a_conversion_of_a_claim_that_is_gone_grants_nothing,
                            a_conversion_of_a_claim_that_is_there_is_one_like_any_other,
                            a_release_takes_what_the_owner_has_whatever_mode_it_names,
                            readers_are_shown_one_by_one, revoking_one_reader_leaves_the_others_alone);

}  // namespace holdfast::testing
