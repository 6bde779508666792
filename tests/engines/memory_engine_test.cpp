#include <thread>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

TEST(memory_engine, clients_of_one_name_share_a_store_and_others_do_not) {
    const auto a = identity();
    const auto b = identity();
    const auto first = open_memory("one", a);
    const auto second = open_memory("one", b);
    const auto other = open_memory("two", b);
    EXPECT_EQ(acquire(*first, exclusive("stock", owner_of(a))).result, granted);
    EXPECT_EQ(acquire(*second, exclusive("stock", owner_of(b))).result, busy);
    EXPECT_EQ(acquire(*other, exclusive("stock", owner_of(b))).result, granted);
}

TEST(memory_engine, a_store_vanishes_with_its_last_client_and_tokens_still_rise) {
    const auto a = identity();
    auto store = open_memory("fleeting", a);
    const auto before = acquire(*store, exclusive("stock", owner_of(a)));
    store.reset();
    store = open_memory("fleeting", a);
    const auto after = acquire(*store, exclusive("stock", owner_of(a, 2)));
    EXPECT_EQ(after.result, granted);
    EXPECT_GT(after.first_token, before.first_token);
}

TEST(memory_engine, a_release_hints_those_who_watch_and_counts_the_others) {
    const auto a = identity();
    const auto first = open_memory("hints", a);
    const auto second = open_memory("hints", identity());
    counter hints;
    const auto own = first->offers().watching->watch("stock", lock_kind::mutex, [] {});
    const auto watch =
        second->offers().watching->watch("stock", lock_kind::mutex, [&] { hints.add(); });
    ASSERT_EQ(acquire(*first, exclusive("stock", owner_of(a))).result, granted);
    EXPECT_EQ(inspect(*first, "stock").waiters, 2U);
    EXPECT_EQ(release(*first, {.name = "stock", .owner = owner_of(a)}).others_waiting, 1U);
    EXPECT_TRUE(hints.reaches(1));
}

TEST(memory_engine, an_ended_watch_gets_no_hint) {
    const auto a = identity();
    const auto store = open_memory("ended", a);
    counter hints;
    store->offers().watching->watch("stock", lock_kind::mutex, [&] { hints.add(); }).reset();
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(a))).result, granted);
    EXPECT_EQ(release(*store, {.name = "stock", .owner = owner_of(a)}).others_waiting, 0U);
    EXPECT_EQ(hints.value(), 0);
}

TEST(memory_engine, a_revocation_tells_all_clients_to_ask) {
    const auto a = identity();
    const auto holder = open_memory("revoked", a);
    const auto other = open_memory("revoked", identity());
    counter told;
    holder->attach({[&] { told.add(); }});
    const auto hold = acquire(*holder, exclusive("stock", owner_of(a)));
    EXPECT_EQ(revoke(*other, {"stock", owner_of(a), hold.first_token, "ops", "why"}).result,
              revoke_reply::outcome::revoked);
    EXPECT_TRUE(told.reaches(1));
    EXPECT_EQ(renew(*holder, {"stock", claim_mode::exclusive, owner_of(a), 1s}).error.code,
              errc::revoked);
}

TEST(memory_engine, inspect_shows_the_holders_card) {
    const auto a = identity("billing");
    const auto store = open_memory("cards", a);
    ASSERT_EQ(acquire(*store, exclusive("stock", owner_of(a))).result, granted);
    const auto info = inspect(*store, "stock");
    ASSERT_EQ(info.holders.size(), 1U);
    EXPECT_EQ(info.holders[0].card.value().label, "billing");
    EXPECT_EQ(info.holders[0].process, liveness::alive);
    EXPECT_NE(info.holders[0].since, std::chrono::system_clock::time_point{});
}

TEST(memory_engine, a_call_that_comes_too_late_does_nothing) {
    const auto a = identity();
    const auto store = open_memory("late", a);
    const auto reply =
        acquire(*store, exclusive("stock", owner_of(a)), {clock::now() - 1ms, caller::may_block});
    EXPECT_EQ(reply.result, failed);
    EXPECT_EQ(reply.error.code, errc::store_unavailable);
    EXPECT_TRUE(inspect(*store, "stock").holders.empty());
}

TEST(memory_engine, bad_names_and_ttls_are_refused) {
    const auto a = identity();
    const auto store = open_memory("bad", a);
    EXPECT_EQ(acquire(*store, exclusive("", owner_of(a))).error.code, errc::invalid_name);
    EXPECT_EQ(acquire(*store, exclusive("stock", owner_of(a), 19ms)).error.code,
              errc::invalid_argument);
}

TEST(memory_engine, threads_exclude_each_other) {
    const auto a = identity();
    const auto store = open_memory("threads", a);
    int unprotected = 0;
    std::atomic<std::int64_t> sequence{};
    const auto work = [&] {
        for (int round = 0; round < 200;) {
            const owner_id owner = owner_of(a, ++sequence);
            if (acquire(*store, exclusive("stock", owner)).result == granted) {
                ++unprotected;
                ++round;
                static_cast<void>(release(*store, {.name = "stock", .owner = owner}));
            }
        }
    };
    {
        const std::jthread one{work};
        const std::jthread two{work};
    }
    EXPECT_EQ(unprotected, 400);
}

}  // namespace

}  // namespace holdfast::engines::test
