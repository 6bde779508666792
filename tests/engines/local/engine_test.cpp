#include <thread>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

class local_engine : public testing::Test {
protected:
    std::unique_ptr<engine> open(const client_identity& who) { return open_local(base_.path(), who); }

    temporary_directory base_;
    client_identity alice_ = identity("alice");
    client_identity bob_ = identity("bob");
    std::unique_ptr<engine> a_ = open(alice_);
    std::unique_ptr<engine> b_ = open(bob_);
};

TEST_F(local_engine, promises_locks_of_one_host) {
    EXPECT_EQ(a_->promises().reach, scope::host);
    EXPECT_TRUE(a_->promises().notices_dead_holders);
    EXPECT_EQ(a_->address(), "local:" + base_.path());
}

TEST_F(local_engine, one_of_two_clients_gets_the_lock_and_the_other_is_told_how_long_to_wait) {
    EXPECT_EQ(acquire(*a_, exclusive("stock", owner_of(alice_), 10s)).result, granted);
    const auto reply = acquire(*b_, exclusive("stock", owner_of(bob_)));
    EXPECT_EQ(reply.result, busy);
    EXPECT_GT(reply.retry_after, 5s);
    EXPECT_LE(reply.retry_after, 10s);
    EXPECT_EQ(release(*a_, {.name = "stock", .owner = owner_of(alice_)}).result,
              release_reply::outcome::released);
    EXPECT_EQ(acquire(*b_, exclusive("stock", owner_of(bob_))).result, granted);
}

TEST_F(local_engine, an_owner_that_asks_again_gets_the_same_tokens) {
    auto request = exclusive("stock", owner_of(alice_));
    request.token_count = 4;
    const auto first = acquire(*a_, request);
    const auto again = acquire(*a_, request);
    EXPECT_EQ(again.result, granted);
    EXPECT_EQ(again.first_token, first.first_token);
    EXPECT_EQ(again.token_count, 4U);
    EXPECT_EQ(acquire(*b_, exclusive("other", owner_of(bob_))).first_token.value,
              first.first_token.value + 4);
}

TEST_F(local_engine, a_lease_nobody_renews_expires) {
    ASSERT_EQ(acquire(*a_, exclusive("stock", owner_of(alice_), 20ms)).result, granted);
    const auto deadline = clock::now() + patience;
    auto reply = acquire(*b_, exclusive("stock", owner_of(bob_)));
    while (reply.result == busy && clock::now() < deadline) {
        std::this_thread::sleep_for(reply.retry_after);  // not a guess: what the store said
        reply = acquire(*b_, exclusive("stock", owner_of(bob_)));
    }
    EXPECT_EQ(reply.result, granted);
    EXPECT_EQ(renew(*a_, {"stock", claim_mode::exclusive, owner_of(alice_), 1s}).error.code,
              errc::lost);
    EXPECT_EQ(release(*a_, {.name = "stock", .owner = owner_of(alice_)}).result,
              release_reply::outcome::gone);
}

TEST_F(local_engine, sharing_upgrading_and_downgrading_follow_the_contract) {
    const auto first = acquire(*a_, shared("stock", owner_of(alice_)));
    EXPECT_EQ(acquire(*b_, shared("stock", owner_of(bob_))).result, granted);
    EXPECT_EQ(acquire(*a_, exclusive("stock", owner_of(alice_))).result, busy);
    ASSERT_EQ(
        release(*b_, {.name = "stock", .mode = claim_mode::shared, .owner = owner_of(bob_)}).result,
        release_reply::outcome::released);
    const auto more = acquire(*a_, exclusive("stock", owner_of(alice_)));
    EXPECT_GT(more.first_token, first.first_token);
    EXPECT_EQ(acquire(*b_, shared("stock", owner_of(bob_))).result, busy);
    const auto less = acquire(*a_, shared("stock", owner_of(alice_)));
    EXPECT_EQ(less.first_token, more.first_token);
    EXPECT_EQ(acquire(*b_, shared("stock", owner_of(bob_))).result, granted);
}

TEST_F(local_engine, permits_are_counted_over_all_clients) {
    EXPECT_EQ(acquire(*a_, permits("pool", owner_of(alice_), 2, 3)).result, granted);
    EXPECT_EQ(acquire(*b_, permits("pool", owner_of(bob_), 2, 3)).result, busy);
    EXPECT_EQ(acquire(*b_, permits("pool", owner_of(bob_), 1, 3)).result, granted);
    EXPECT_EQ(acquire(*b_, permits("pool", owner_of(bob_, 2), 1, 4)).error.code, errc::wrong_kind);
    EXPECT_EQ(acquire(*b_, exclusive("pool", owner_of(bob_, 2))).error.code, errc::wrong_kind);
    EXPECT_EQ(inspect(*a_, "pool").limit, 3U);
}

TEST_F(local_engine, a_batch_of_renewals_is_answered_one_by_one) {
    ASSERT_EQ(acquire(*a_, exclusive("one", owner_of(alice_))).result, granted);
    const auto replies = answer_of<std::vector<renew_reply>>([&](auto done) {
        a_->renew({{"one", claim_mode::exclusive, owner_of(alice_), 1min},
                   {"", claim_mode::exclusive, owner_of(alice_), 1min},
                   {"two", claim_mode::exclusive, owner_of(alice_), 1min}},
                  soon(), done);
    });
    ASSERT_EQ(replies.size(), 3U);
    EXPECT_EQ(replies[0].result, renew_reply::outcome::renewed);
    EXPECT_EQ(replies[1].error.code, errc::invalid_name);
    EXPECT_EQ(replies[2].result, renew_reply::outcome::gone);
}

TEST_F(local_engine, a_release_hints_the_waiting_client_at_once) {
    ASSERT_EQ(acquire(*a_, exclusive("stock", owner_of(alice_))).result, granted);
    counter hints;
    const auto watch = b_->offers().watching->watch("stock", lock_kind::mutex, [&] { hints.add(); });
    ASSERT_EQ(acquire(*b_, exclusive("stock", owner_of(bob_))).result, busy);
    EXPECT_EQ(release(*a_, {.name = "stock", .owner = owner_of(alice_)}).others_waiting, 1U);
    EXPECT_TRUE(hints.reaches(1, 200ms));
    EXPECT_EQ(acquire(*b_, exclusive("stock", owner_of(bob_))).result, granted);
}

TEST_F(local_engine, a_downgrade_and_an_open_latch_hint_as_well) {
    ASSERT_EQ(acquire(*a_, exclusive("stock", owner_of(alice_))).result, granted);
    counter hints;
    const auto lock_watch =
        b_->offers().watching->watch("stock", lock_kind::mutex, [&] { hints.add(); });
    ASSERT_EQ(acquire(*a_, shared("stock", owner_of(alice_))).result, granted);
    EXPECT_TRUE(hints.reaches(1));
    counter opened;
    const auto latch_watch =
        b_->offers().watching->watch("gate", lock_kind::latch, [&] { opened.add(); });
    using operation = latch_request::operation;
    ASSERT_TRUE(latch(*a_, {operation::set, "gate", 1, 1h, owner_of(alice_, 1)}).applied);
    EXPECT_EQ(latch(*a_, {operation::count_down, "gate", 1, 0ms, owner_of(alice_, 2)}).count, 0U);
    EXPECT_TRUE(opened.reaches(1));
}

TEST_F(local_engine, waiters_are_counted_while_they_watch) {
    auto first = a_->offers().watching->watch("stock", lock_kind::mutex, [] {});
    const auto second = b_->offers().watching->watch("stock", lock_kind::mutex, [] {});
    EXPECT_EQ(inspect(*a_, "stock").waiters, 2U);
    first.reset();
    EXPECT_EQ(inspect(*a_, "stock").waiters, 1U);
}

TEST_F(local_engine, a_subscription_may_outlive_its_engine) {
    auto watch = a_->offers().watching->watch("stock", lock_kind::mutex, [] {});
    a_.reset();
    EXPECT_TRUE(watch->active());
    watch.reset();
    EXPECT_EQ(inspect(*b_, "stock").waiters, 0U);
}

TEST_F(local_engine, a_revocation_tells_the_holder_and_hints_the_waiter) {
    counter told;
    counter hints;
    a_->attach({[&] { told.add(); }});
    const auto hold = acquire(*a_, exclusive("stock", owner_of(alice_)));
    const auto watch = b_->offers().watching->watch("stock", lock_kind::mutex, [&] { hints.add(); });
    EXPECT_EQ(revoke(*b_, {"stock", owner_of(alice_), {hold.first_token.value + 1}, "ops", ""}).result,
              revoke_reply::outcome::gone);
    EXPECT_EQ(revoke(*b_, {"stock", owner_of(alice_), hold.first_token, "ops", "stuck deploy"}).result,
              revoke_reply::outcome::revoked);
    EXPECT_TRUE(told.reaches(1));
    EXPECT_TRUE(hints.reaches(1));
    const auto renewed = renew(*a_, {"stock", claim_mode::exclusive, owner_of(alice_), 1s});
    EXPECT_EQ(renewed.error.code, errc::revoked);
    EXPECT_NE(renewed.error.detail.find("stuck deploy"), std::string::npos);
    EXPECT_EQ(inspect(*a_, "stock").last_revocation.value().actor, "ops");
}

TEST_F(local_engine, inspect_tells_who_holds_what_since_when) {
    const auto before = std::chrono::system_clock::now() - 1ms;
    ASSERT_EQ(acquire(*a_, exclusive("stock", owner_of(alice_))).result, granted);
    const auto info = inspect(*b_, "stock");
    ASSERT_EQ(info.holders.size(), 1U);
    EXPECT_EQ(info.holders[0].owner, owner_of(alice_));
    EXPECT_EQ(info.holders[0].card.value().label, "alice");
    EXPECT_EQ(info.holders[0].process, liveness::alive);
    EXPECT_GE(info.holders[0].since, before);
    EXPECT_FALSE(info.holders[0].lingering);
    EXPECT_TRUE(inspect(*b_, "free").holders.empty());
}

TEST_F(local_engine, a_list_comes_in_pages_and_shows_semaphores) {
    for (const char* name : {"b/2", "a/1", "b/1", "c/1"}) {
        ASSERT_EQ(acquire(*a_, exclusive(name, owner_of(alice_))).result, granted);
    }
    ASSERT_EQ(acquire(*a_, permits("b/3", owner_of(alice_), 1, 5)).result, granted);
    const auto first = list(*b_, {.prefix = "b/", .from = {}, .limit = 2});
    ASSERT_EQ(first.locks.size(), 2U);
    EXPECT_EQ(first.locks[0].name, "b/1");
    EXPECT_EQ(first.next, "b/2");
    const auto second = list(*b_, {.prefix = "b/", .from = first.next, .limit = 2});
    ASSERT_EQ(second.locks.size(), 1U);
    EXPECT_EQ(second.locks[0].limit, 5U);
    EXPECT_EQ(second.next, "");
    EXPECT_EQ(list(*b_, {}).locks.size(), 5U);
}

TEST_F(local_engine, a_lingering_hold_keeps_the_name_taken) {
    ASSERT_EQ(acquire(*a_, exclusive("stock", owner_of(alice_))).result, granted);
    ASSERT_EQ(release(*a_, {.name = "stock", .owner = owner_of(alice_), .linger = 1min}).result,
              release_reply::outcome::released);
    EXPECT_EQ(acquire(*a_, exclusive("stock", owner_of(alice_))).result, busy);
    EXPECT_EQ(renew(*a_, {"stock", claim_mode::exclusive, owner_of(alice_), 1s}).result,
              renew_reply::outcome::gone);
    EXPECT_TRUE(inspect(*b_, "stock").holders.at(0).lingering);
}

TEST_F(local_engine, a_latch_request_sent_twice_counts_once) {
    using operation = latch_request::operation;
    EXPECT_TRUE(latch(*a_, {operation::set, "gate", 3, 1h, owner_of(alice_, 1)}).applied);
    EXPECT_TRUE(latch(*a_, {operation::set, "gate", 3, 1h, owner_of(alice_, 1)}).applied);
    EXPECT_FALSE(latch(*b_, {operation::set, "gate", 9, 1h, owner_of(bob_, 1)}).applied);
    EXPECT_EQ(latch(*a_, {operation::count_down, "gate", 1, 0ms, owner_of(alice_, 2)}).count, 2U);
    EXPECT_EQ(latch(*a_, {operation::count_down, "gate", 1, 0ms, owner_of(alice_, 2)}).count, 2U);
    EXPECT_EQ(latch(*b_, {operation::count_down, "gate", 5, 0ms, owner_of(bob_, 2)}).count, 0U);
    EXPECT_TRUE(latch(*b_, {operation::set, "gate", 4, 1h, owner_of(bob_, 3)}).applied);
    EXPECT_EQ(latch(*a_, {operation::count_down, "gate", 1, 0ms, owner_of(alice_, 2)}).count, 4U);
}

TEST_F(local_engine, a_call_that_comes_too_late_does_nothing) {
    for (const caller from : {caller::may_block, caller::must_not_block}) {
        const auto reply =
            acquire(*a_, exclusive("stock", owner_of(alice_)), {clock::now() - 1ms, from});
        EXPECT_EQ(reply.error.code, errc::store_unavailable);
    }
    EXPECT_TRUE(inspect(*a_, "stock").holders.empty());
}

TEST_F(local_engine, requests_on_one_name_take_effect_in_the_order_they_were_made) {
    for (std::int64_t round = 1; round <= 50; ++round) {
        std::promise<void> acquired;
        a_->acquire(exclusive("stock", owner_of(alice_, round)), soon(caller::must_not_block),
                    [&](acquire_reply) { acquired.set_value(); });
        const auto let_go = release(*a_, {.name = "stock", .owner = owner_of(alice_, round)});
        EXPECT_EQ(let_go.result, release_reply::outcome::released);
        acquired.get_future().wait();
    }
}

TEST_F(local_engine, what_is_pending_at_the_end_is_answered) {
    counter answered;
    for (std::int64_t number = 1; number <= 200; ++number) {
        a_->acquire(exclusive("n" + std::to_string(number), owner_of(alice_, number)),
                    soon(caller::must_not_block), [&](const acquire_reply& reply) {
                        EXPECT_TRUE(reply.result == granted || reply.error.code == errc::shut_down);
                        answered.add();
                    });
    }
    a_.reset();
    EXPECT_EQ(answered.value(), 200);
}

TEST_F(local_engine, threads_exclude_each_other) {
    int unprotected = 0;
    std::atomic<std::int64_t> sequence{};
    const auto work = [&](engine& store, const client_identity& who) {
        for (int round = 0; round < 50;) {
            const owner_id owner = owner_of(who, ++sequence);
            if (acquire(store, exclusive("stock", owner)).result == granted) {
                ++unprotected;
                ++round;
                static_cast<void>(release(store, {.name = "stock", .owner = owner}));
            }
        }
    };
    {
        const std::jthread one{[&] { work(*a_, alice_); }};
        const std::jthread two{[&] { work(*a_, alice_); }};
        const std::jthread three{[&] { work(*b_, bob_); }};
    }
    EXPECT_EQ(unprotected, 150);
}

}  // namespace

}  // namespace holdfast::engines::test
