#include <memory/store_model.hpp>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

using memory::store_model;

const clock::time_point start{1h};
const owner_id alice{1, 1, 1};
const owner_id bob{2, 2, 1};
const owner_id carol{3, 3, 1};

renew_request renewal(owner_id owner, std::chrono::milliseconds ttl = 1min,
                      claim_mode mode = claim_mode::exclusive) {
    return {.name = "stock", .mode = mode, .owner = owner, .ttl = ttl};
}
release_request letting_go(owner_id owner, std::chrono::milliseconds linger = 0ms) {
    return {.name = "stock", .owner = owner, .linger = linger};
}

TEST(store_model, a_free_name_is_granted_with_a_token_above_the_floor) {
    store_model store{100};
    const auto reply = store.acquire(exclusive("stock", alice), start);
    EXPECT_EQ(reply.result, granted);
    EXPECT_EQ(reply.first_token.value, 101U);
}

TEST(store_model, every_grant_has_a_larger_token_than_all_before_it_on_any_name) {
    store_model store;
    auto first = exclusive("a", alice);
    first.token_count = 5;
    EXPECT_EQ(store.acquire(first, start).token_count, 5U);
    EXPECT_EQ(store.acquire(exclusive("b", bob), start).first_token.value, 6U);
}

TEST(store_model, a_taken_name_is_busy_until_its_ttl_ends) {
    store_model store;
    ASSERT_EQ(store.acquire(exclusive("stock", alice, 10s), start).result, granted);
    const auto reply = store.acquire(exclusive("stock", bob), start + 4s);
    EXPECT_EQ(reply.result, busy);
    EXPECT_EQ(reply.retry_after, 6s);
    EXPECT_EQ(store.acquire(exclusive("stock", bob), start + 10s).result, granted);
}

TEST(store_model, an_owner_that_asks_again_gets_the_same_tokens_and_a_later_end) {
    store_model store;
    auto request = exclusive("stock", alice, 10s);
    request.token_count = 3;
    const auto first = store.acquire(request, start);
    request.token_count = 1;
    const auto again = store.acquire(request, start + 5s);
    EXPECT_EQ(again.result, granted);
    EXPECT_EQ(again.first_token, first.first_token);
    EXPECT_EQ(again.token_count, 3U);
    EXPECT_EQ(store.acquire(exclusive("stock", bob), start + 14s).result, busy);
}

TEST(store_model, asking_again_with_a_shorter_ttl_does_not_shorten_the_lease) {
    store_model store;
    ASSERT_EQ(store.acquire(exclusive("stock", alice, 10s), start).result, granted);
    ASSERT_EQ(store.acquire(exclusive("stock", alice, 1s), start).result, granted);
    EXPECT_EQ(store.acquire(exclusive("stock", bob), start + 9s).result, busy);
}

TEST(store_model, shared_owners_hold_together_and_keep_an_exclusive_one_out) {
    store_model store;
    EXPECT_EQ(store.acquire(shared("stock", alice, 5s), start).result, granted);
    EXPECT_EQ(store.acquire(shared("stock", bob, 9s), start).result, granted);
    const auto reply = store.acquire(exclusive("stock", carol), start);
    EXPECT_EQ(reply.result, busy);
    EXPECT_EQ(reply.retry_after, 5s);
}

TEST(store_model, a_downgraded_owner_keeps_its_token_and_lets_sharers_in) {
    store_model store;
    const auto first = store.acquire(exclusive("stock", alice), start);
    const auto less = store.acquire(shared("stock", alice), start);
    EXPECT_EQ(less.result, granted);
    EXPECT_EQ(less.first_token, first.first_token);
    EXPECT_EQ(store.take_hints(), std::vector<std::string>{"stock"});
    EXPECT_EQ(store.acquire(shared("stock", bob), start).result, granted);
}

TEST(store_model, the_only_sharer_is_upgraded_with_a_new_token) {
    store_model store;
    const auto first = store.acquire(shared("stock", alice), start);
    const auto more = store.acquire(exclusive("stock", alice), start);
    EXPECT_EQ(more.result, granted);
    EXPECT_GT(more.first_token, first.first_token);
    EXPECT_EQ(store.acquire(shared("stock", bob), start).result, busy);
}

TEST(store_model, a_sharer_among_others_is_not_upgraded_and_keeps_its_share) {
    store_model store;
    ASSERT_EQ(store.acquire(shared("stock", alice, 10s), start).result, granted);
    ASSERT_EQ(store.acquire(shared("stock", bob, 7s), start).result, granted);
    const auto reply = store.acquire(exclusive("stock", alice), start);
    EXPECT_EQ(reply.result, busy);
    EXPECT_EQ(reply.retry_after, 7s);
    EXPECT_EQ(store.renew(renewal(alice, 1min, claim_mode::shared), start).result,
              renew_reply::outcome::renewed);
}

TEST(store_model, permits_are_never_given_above_the_limit) {
    store_model store;
    EXPECT_EQ(store.acquire(permits("pool", alice, 2, 3), start).result, granted);
    EXPECT_EQ(store.acquire(permits("pool", bob, 2, 3), start).result, busy);
    EXPECT_EQ(store.acquire(permits("pool", carol, 1, 3), start).result, granted);
    EXPECT_EQ(store.inspect("pool", start).limit, 3U);
}

TEST(store_model, a_permit_request_sent_twice_counts_once) {
    store_model store;
    const auto first = store.acquire(permits("pool", alice, 2, 3), start);
    const auto again = store.acquire(permits("pool", alice, 2, 3), start);
    EXPECT_EQ(again.first_token, first.first_token);
    EXPECT_EQ(store.acquire(permits("pool", bob, 1, 3), start).result, granted);
}

TEST(store_model, another_limit_while_permits_are_out_is_refused) {
    store_model store;
    ASSERT_EQ(store.acquire(permits("pool", alice, 1, 3), start).result, granted);
    const auto reply = store.acquire(permits("pool", bob, 1, 4), start);
    EXPECT_EQ(reply.result, failed);
    EXPECT_EQ(reply.error.code, errc::wrong_kind);
}

TEST(store_model, a_name_is_a_lock_or_a_semaphore_but_not_both_at_once) {
    store_model store;
    ASSERT_EQ(store.acquire(permits("pool", alice, 1, 3), start).result, granted);
    EXPECT_EQ(store.acquire(exclusive("pool", bob), start).error.code, errc::wrong_kind);
    EXPECT_EQ(store.acquire(shared("pool", bob), start).error.code, errc::wrong_kind);
    ASSERT_EQ(store.acquire(exclusive("stock", alice), start).result, granted);
    EXPECT_EQ(store.acquire(permits("stock", bob, 1, 3), start).error.code, errc::wrong_kind);
}

TEST(store_model, more_permits_than_the_limit_or_none_are_refused) {
    store_model store;
    EXPECT_EQ(store.acquire(permits("pool", alice, 4, 3), start).error.code, errc::invalid_argument);
    EXPECT_EQ(store.acquire(permits("pool", alice, 0, 3), start).error.code, errc::invalid_argument);
}

TEST(store_model, a_renewal_extends_and_never_shortens) {
    store_model store;
    ASSERT_EQ(store.acquire(exclusive("stock", alice, 10s), start).result, granted);
    EXPECT_EQ(store.renew(renewal(alice, 10s), start + 5s).result, renew_reply::outcome::renewed);
    EXPECT_EQ(store.renew(renewal(alice, 1s), start + 6s).result, renew_reply::outcome::renewed);
    EXPECT_EQ(store.acquire(exclusive("stock", bob), start + 14s).result, busy);
}

TEST(store_model, a_renewal_never_recreates_what_expired) {
    store_model store;
    ASSERT_EQ(store.acquire(exclusive("stock", alice, 10s), start).result, granted);
    const auto reply = store.renew(renewal(alice), start + 10s);
    EXPECT_EQ(reply.result, renew_reply::outcome::gone);
    EXPECT_EQ(reply.error.code, errc::lost);
    EXPECT_EQ(store.hold_count(start), 0U);
}

TEST(store_model, a_sharer_cannot_renew_as_if_it_were_exclusive) {
    store_model store;
    ASSERT_EQ(store.acquire(shared("stock", alice), start).result, granted);
    EXPECT_EQ(store.renew(renewal(alice), start).result, renew_reply::outcome::gone);
}

TEST(store_model, a_release_frees_the_name_and_hints) {
    store_model store;
    ASSERT_EQ(store.acquire(exclusive("stock", alice), start).result, granted);
    EXPECT_EQ(store.release(letting_go(alice), start).result, release_reply::outcome::released);
    EXPECT_EQ(store.take_hints(), std::vector<std::string>{"stock"});
    EXPECT_TRUE(store.take_hints().empty());
    EXPECT_EQ(store.acquire(exclusive("stock", bob), start).result, granted);
}

TEST(store_model, a_release_never_touches_another_owner) {
    store_model store;
    ASSERT_EQ(store.acquire(exclusive("stock", alice), start).result, granted);
    EXPECT_EQ(store.release(letting_go(bob), start).result, release_reply::outcome::gone);
    EXPECT_EQ(store.acquire(exclusive("stock", bob), start).result, busy);
}

TEST(store_model, a_lingering_hold_keeps_the_name_taken_and_belongs_to_nobody) {
    store_model store;
    ASSERT_EQ(store.acquire(exclusive("stock", alice, 10s), start).result, granted);
    EXPECT_EQ(store.release(letting_go(alice, 1min), start).result, release_reply::outcome::released);
    EXPECT_TRUE(store.take_hints().empty());
    EXPECT_EQ(store.renew(renewal(alice), start).result, renew_reply::outcome::gone);
    EXPECT_EQ(store.release(letting_go(alice), start).result, release_reply::outcome::gone);
    EXPECT_EQ(store.acquire(exclusive("stock", alice), start + 59s).result, busy);
    EXPECT_TRUE(store.inspect("stock", start).holders.at(0).lingering);
    EXPECT_EQ(store.acquire(exclusive("stock", bob), start + 60s).result, granted);
}

TEST(store_model, a_revoked_owner_learns_why_at_its_next_renewal) {
    store_model store;
    const auto hold = store.acquire(exclusive("stock", alice), start);
    const auto reply = store.revoke({"stock", alice, hold.first_token, "ops", "stuck deploy"}, start);
    EXPECT_EQ(reply.result, revoke_reply::outcome::revoked);
    EXPECT_EQ(store.take_hints(), std::vector<std::string>{"stock"});
    const auto renewed = store.renew(renewal(alice), start);
    EXPECT_EQ(renewed.result, renew_reply::outcome::gone);
    EXPECT_EQ(renewed.error.code, errc::revoked);
    EXPECT_NE(renewed.error.detail.find("stuck deploy"), std::string::npos);
    EXPECT_EQ(store.inspect("stock", start).last_revocation->actor, "ops");
}

TEST(store_model, a_revocation_with_another_token_changes_nothing) {
    store_model store;
    const auto hold = store.acquire(exclusive("stock", alice), start);
    const fencing_token other{hold.first_token.value + 1};
    EXPECT_EQ(store.revoke({"stock", alice, other, "ops", ""}, start).result,
              revoke_reply::outcome::gone);
    EXPECT_EQ(store.renew(renewal(alice), start).result, renew_reply::outcome::renewed);
}

TEST(store_model, only_so_many_revocations_are_remembered) {
    store_model store;
    for (std::size_t index = 0; index <= store_model::remembered_revocations; ++index) {
        const std::string name = "n" + std::to_string(index);
        const auto hold = store.acquire(exclusive(name, alice), start);
        ASSERT_EQ(store.revoke({name, alice, hold.first_token, "ops", ""}, start).result,
                  revoke_reply::outcome::revoked);
    }
    EXPECT_FALSE(store.inspect("n0", start).last_revocation);
    EXPECT_TRUE(store.inspect("n1", start).last_revocation);
}

TEST(store_model, a_list_comes_in_pages_of_names_in_order) {
    store_model store;
    for (const char* name : {"b/2", "a/1", "b/1", "b/3", "c/1"}) {
        ASSERT_EQ(store.acquire(exclusive(name, alice), start).result, granted);
    }
    const auto first = store.list({.prefix = "b/", .from = {}, .limit = 2}, start);
    ASSERT_EQ(first.locks.size(), 2U);
    EXPECT_EQ(first.locks[0].name, "b/1");
    EXPECT_EQ(first.next, "b/2");
    const auto second = store.list({.prefix = "b/", .from = first.next, .limit = 2}, start);
    ASSERT_EQ(second.locks.size(), 1U);
    EXPECT_EQ(second.locks[0].name, "b/3");
    EXPECT_EQ(second.next, "");
}

TEST(store_model, a_list_leaves_out_what_expired) {
    store_model store;
    ASSERT_EQ(store.acquire(exclusive("stock", alice, 1s), start).result, granted);
    EXPECT_TRUE(store.list({}, start + 1s).locks.empty());
}

TEST(store_model, after_a_loss_of_data_tokens_go_on_from_the_new_floor) {
    store_model store;
    ASSERT_EQ(store.acquire(exclusive("stock", alice), start).result, granted);
    store.reset(store.last_token() + 1000);
    EXPECT_EQ(store.hold_count(start), 0U);
    EXPECT_EQ(store.acquire(exclusive("stock", bob), start).first_token.value, 1002U);
}

TEST(store_model, names_nobody_asks_for_again_are_forgotten_in_the_end) {
    store_model store;
    for (std::uint32_t index = 0; index < store_model::requests_between_sweeps; ++index) {
        ASSERT_EQ(store.acquire(exclusive("n" + std::to_string(index), alice, 1s), start).result,
                  granted);
    }
    ASSERT_EQ(store.acquire(exclusive("stock", alice), start + 2s).result, granted);
    EXPECT_LE(store.hold_count(clock::time_point{}), store_model::requests_between_sweeps + 1);
}

latch_request latch_call(latch_request::operation what, std::uint32_t count, std::int64_t request) {
    return {.what = what, .name = "gate", .count = count, .lifetime = 1h, .request = {9, 9, request}};
}
using operation = latch_request::operation;

TEST(store_model, a_latch_opens_when_it_is_counted_down_to_zero) {
    store_model store;
    EXPECT_TRUE(store.latch(latch_call(operation::set, 2, 1), start).applied);
    EXPECT_EQ(store.latch(latch_call(operation::count_down, 1, 2), start).count, 1U);
    EXPECT_TRUE(store.take_hints().empty());
    EXPECT_EQ(store.latch(latch_call(operation::count_down, 5, 3), start).count, 0U);
    EXPECT_EQ(store.take_hints(), std::vector<std::string>{"gate"});
}

TEST(store_model, a_latch_that_counts_is_not_set_again) {
    store_model store;
    ASSERT_TRUE(store.latch(latch_call(operation::set, 2, 1), start).applied);
    const auto reply = store.latch(latch_call(operation::set, 7, 2), start);
    EXPECT_FALSE(reply.applied);
    EXPECT_EQ(reply.count, 2U);
}

TEST(store_model, a_latch_request_sent_twice_counts_once) {
    store_model store;
    ASSERT_TRUE(store.latch(latch_call(operation::set, 3, 1), start).applied);
    EXPECT_TRUE(store.latch(latch_call(operation::set, 3, 1), start).applied);
    EXPECT_EQ(store.latch(latch_call(operation::count_down, 1, 2), start).count, 2U);
    EXPECT_EQ(store.latch(latch_call(operation::count_down, 1, 2), start).count, 2U);
}

TEST(store_model, a_late_copy_of_a_count_down_does_not_count_in_the_next_life_of_the_latch) {
    store_model store;
    ASSERT_TRUE(store.latch(latch_call(operation::set, 1, 1), start).applied);
    ASSERT_EQ(store.latch(latch_call(operation::count_down, 1, 2), start).count, 0U);
    EXPECT_EQ(store.latch(latch_call(operation::count_down, 1, 2), start).count, 0U);
    ASSERT_TRUE(store.latch(latch_call(operation::set, 4, 3), start).applied);
    EXPECT_EQ(store.latch(latch_call(operation::count_down, 1, 2), start).count, 4U);
}

TEST(store_model, an_abandoned_latch_disappears) {
    store_model store;
    ASSERT_TRUE(store.latch(latch_call(operation::set, 1, 1), start).applied);
    EXPECT_EQ(store.latch(latch_call(operation::read, 0, 0), start + 1h).count, 0U);
}

}  // namespace

}  // namespace holdfast::engines::test
