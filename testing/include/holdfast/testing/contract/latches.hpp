#pragma once

#include <holdfast/testing/contract/fixture.hpp>

/// A counter that opens a gate at zero, and counts every request once.
namespace holdfast::testing {

template <class Store>
class latch_contract : public engine_contract<Store> {
protected:
    [[nodiscard]] static engines::latch_request set(const std::string& name, std::uint32_t count,
                                                    const owner_id& request) {
        return {.what = engines::latch_request::operation::set,
                .name = name,
                .count = count,
                .lifetime = long_ttl,
                .request = request};
    }
    [[nodiscard]] static engines::latch_request count_down(const std::string& name,
                                                           const owner_id& request) {
        return {.what = engines::latch_request::operation::count_down,
                .name = name,
                .count = 1,
                .lifetime = {},
                .request = request};
    }
};
TYPED_TEST_SUITE_P(latch_contract);

TYPED_TEST_P(latch_contract, a_latch_that_is_not_there_counts_zero) {
    const auto name = this->unique("gate");
    auto alice = this->join("alice");
    if (!this->offers_latches(alice)) {
        return;
    }
    const auto reply = alice.read_latch(name);
    EXPECT_TRUE(answered(reply));
    EXPECT_EQ(reply.count, 0U);
    EXPECT_EQ(alice.count_down(name).count, 0U);
}

TYPED_TEST_P(latch_contract, a_latch_is_set_once_and_seen_by_all) {
    const auto name = this->unique("gate");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_latches(alice)) {
        return;
    }
    const auto first = alice.set_latch(name, 3);
    EXPECT_TRUE(answered(first));
    EXPECT_TRUE(first.applied);
    EXPECT_EQ(first.count, 3U);
    const auto second = bob.set_latch(name, 5);
    EXPECT_TRUE(answered(second));
    EXPECT_FALSE(second.applied);
    EXPECT_EQ(second.count, 3U);
    EXPECT_EQ(bob.read_latch(name).count, 3U);
}

TYPED_TEST_P(latch_contract, counting_down_stops_at_zero_and_the_name_can_be_set_again) {
    const auto name = this->unique("gate");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_latches(alice)) {
        return;
    }
    ASSERT_TRUE(alice.set_latch(name, 3).applied);
    EXPECT_EQ(alice.count_down(name).count, 2U);
    EXPECT_EQ(bob.count_down(name, 7).count, 0U);
    EXPECT_EQ(alice.read_latch(name).count, 0U);
    EXPECT_EQ(alice.count_down(name).count, 0U);
    EXPECT_TRUE(bob.set_latch(name, 2).applied);
}

TYPED_TEST_P(latch_contract, a_set_sent_again_says_the_same_and_does_not_start_over) {
    const auto name = this->unique("gate");
    auto alice = this->join("alice");
    if (!this->offers_latches(alice)) {
        return;
    }
    const auto request = this->set(name, 3, alice.another_owner());
    ASSERT_TRUE(alice.store().latch(request).applied);
    ASSERT_EQ(alice.count_down(name).count, 2U);
    const auto again = alice.store().latch(request);
    EXPECT_TRUE(again.applied);
    EXPECT_EQ(again.count, 2U);
    EXPECT_EQ(alice.read_latch(name).count, 2U);
}

TYPED_TEST_P(latch_contract, a_count_down_sent_again_counts_once) {
    const auto name = this->unique("gate");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_latches(alice)) {
        return;
    }
    ASSERT_TRUE(alice.set_latch(name, 3).applied);
    const auto request = this->count_down(name, alice.another_owner());
    EXPECT_EQ(alice.store().latch(request).count, 2U);
    EXPECT_EQ(alice.store().latch(request).count, 2U);
    EXPECT_EQ(bob.count_down(name).count, 1U);
    EXPECT_EQ(alice.store().latch(request).count, 1U);
}

TYPED_TEST_P(latch_contract, the_last_count_down_sent_again_is_harmless) {
    const auto name = this->unique("gate");
    auto alice = this->join("alice");
    if (!this->offers_latches(alice)) {
        return;
    }
    ASSERT_TRUE(alice.set_latch(name, 1).applied);
    const auto request = this->count_down(name, alice.another_owner());
    EXPECT_EQ(alice.store().latch(request).count, 0U);
    const auto again = alice.store().latch(request);
    EXPECT_TRUE(answered(again));
    EXPECT_EQ(again.count, 0U);
}

TYPED_TEST_P(latch_contract, an_abandoned_latch_disappears_and_not_before_its_lifetime) {
    const auto name = this->unique("gate");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_latches(alice)) {
        return;
    }
    const auto asked_at = clock::now();
    ASSERT_TRUE(alice.set_latch(name, 3, this->short_ttl).applied);
    ASSERT_TRUE(eventually([&] { return bob.read_latch(name).count == 0; }));
    this->expect_not_before(this->short_ttl, asked_at, clock::now());
}

TYPED_TEST_P(latch_contract, a_latch_that_opened_is_known_and_one_that_ended_is_not) {
    const auto opened = this->unique("opened");
    const auto ended = this->unique("ended");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_latches(alice)) {
        return;
    }
    EXPECT_FALSE(bob.read_latch(opened).known);
    EXPECT_TRUE(alice.set_latch(opened, 2, this->short_ttl * 10).known);
    EXPECT_TRUE(alice.set_latch(ended, 2, this->short_ttl).known);
    EXPECT_TRUE(bob.read_latch(opened).known);
    EXPECT_TRUE(bob.count_down(opened).known);
    EXPECT_TRUE(bob.count_down(opened).known);
    EXPECT_TRUE(alice.read_latch(opened).known);
    ASSERT_TRUE(eventually([&] { return bob.read_latch(ended).count == 0; }));
    EXPECT_FALSE(bob.read_latch(ended).known);
    EXPECT_TRUE(bob.read_latch(opened).known) << "for two minutes";
}

TYPED_TEST_P(latch_contract, one_that_is_set_again_after_it_opened_goes_on_in_its_line) {
    const auto name = this->unique("gate");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_latches(alice)) {
        return;
    }
    const auto first = alice.set_latch(name, 2).life;
    EXPECT_NE(first.line, 0U);
    EXPECT_EQ(bob.count_down(name).life, first);
    EXPECT_EQ(bob.read_latch(name).life, first);
    bob.count_down(name);
    const auto second = alice.set_latch(name, 1).life;
    EXPECT_EQ(second.line, first.line);
    EXPECT_EQ(second.openings, first.openings + 1);
    EXPECT_EQ(bob.read_latch(name).life, second);
}

TYPED_TEST_P(latch_contract, one_that_is_set_again_after_it_ended_begins_another_line) {
    const auto name = this->unique("gate");
    auto alice = this->join("alice");
    auto bob = this->join("bob");
    if (!this->offers_latches(alice)) {
        return;
    }
    const auto first = alice.set_latch(name, 2, this->short_ttl).life;
    ASSERT_TRUE(eventually([&] { return bob.read_latch(name).count == 0; }));
    const auto second = bob.set_latch(name, 2).life;
    EXPECT_NE(second.line, first.line);
    EXPECT_EQ(alice.read_latch(name).life, second);
}

TYPED_TEST_P(latch_contract, two_latches_do_not_interfere) {
    const auto first = this->unique("first");
    const auto second = this->unique("second");
    auto alice = this->join("alice");
    if (!this->offers_latches(alice)) {
        return;
    }
    ASSERT_TRUE(alice.set_latch(first, 2).applied);
    ASSERT_TRUE(alice.set_latch(second, 2).applied);
    EXPECT_EQ(alice.count_down(first, 2).count, 0U);
    EXPECT_EQ(alice.read_latch(second).count, 2U);
}

REGISTER_TYPED_TEST_SUITE_P(latch_contract,  //
                            a_latch_that_is_not_there_counts_zero, a_latch_is_set_once_and_seen_by_all,
                            counting_down_stops_at_zero_and_the_name_can_be_set_again,
                            a_set_sent_again_says_the_same_and_does_not_start_over,
                            a_count_down_sent_again_counts_once,
                            the_last_count_down_sent_again_is_harmless,
                            an_abandoned_latch_disappears_and_not_before_its_lifetime,
                            a_latch_that_opened_is_known_and_one_that_ended_is_not,
                            one_that_is_set_again_after_it_opened_goes_on_in_its_line,
                            one_that_is_set_again_after_it_ended_begins_another_line,
                            two_latches_do_not_interfere);

}  // namespace holdfast::testing
