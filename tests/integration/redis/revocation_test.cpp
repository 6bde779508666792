#include <string>

#include <integration/redis/redis_stage.hpp>

/// Looking at locks, and taking them away from their holders.
namespace holdfast::testing {

namespace {

/// What an operator may wait for; far less than a third of the ttl, when renewal would tell anyway.
constexpr auto soon_enough = 1s;

class redis_revocation : public redis_stage {
protected:
    /// A hold as a Java service leaves it: a field of its own, and no more.
    owner_id held_by_java(const std::string& name) const {
        auto owner = owner_id::random_client();
        owner.sequence = 47;
        server_.cli({"HSET", name, owner.text(), "1"});
        server_.cli({"PEXPIRE", name, "30000"});
        return owner;
    }

    client holder_{make_client({.label = "billing worker 3"})};
    client operator_{address()};
    mutex stock_{holder_, "stock", {.ttl = 30s}};
};

TEST_F(redis_revocation, is_told_to_the_holder_at_once) {
    auto held = stock_.acquire();
    const auto seen = operator_.inspect("stock").holders.at(0);
    const stopwatch watch;

    EXPECT_TRUE(operator_.revoke("stock", seen.owner, seen.token, "stuck since noon"));

    EXPECT_TRUE(events_->wait_for(event_kind::lost));
    EXPECT_LT(watch.elapsed(), soon_enough);
    EXPECT_EQ(held.loss_reason(), errc::revoked);
    EXPECT_TRUE(held.lost().stop_requested());
    const auto& why = events_->last(event_kind::lost).error.detail;
    EXPECT_NE(why.find("stuck since noon"), std::string::npos) << why;
    EXPECT_EQ(held.loss_detail(), why);
    EXPECT_NE(error_text_of([&] { held.check(); }).find("stuck since noon"), std::string::npos);
    EXPECT_EQ(held.release(), release_outcome::already_lost);
}

TEST_F(redis_revocation, is_told_although_the_subscription_had_ended_before) {
    auto held = stock_.acquire();
    server_.client_kill("pubsub");
    const stopwatch watch;

    EXPECT_TRUE(operator_.revoke("stock", held.owner(), held.token(), "for the test"));

    EXPECT_TRUE(events_->wait_for(event_kind::lost));
    EXPECT_LT(watch.elapsed(), recheck_bound);
    EXPECT_EQ(held.loss_reason(), errc::revoked);
}

TEST_F(redis_revocation, leaves_other_holds_of_the_same_client_alone) {
    auto other = mutex{holder_, "other", {.ttl = 30s}}.acquire();
    auto held = stock_.acquire();

    EXPECT_TRUE(operator_.revoke("stock", held.owner(), held.token(), "for the test"));

    EXPECT_TRUE(events_->wait_for(event_kind::lost));
    EXPECT_TRUE(events_->wait_for(event_kind::renewed));  // asked about as well, and still there
    EXPECT_TRUE(other);
    EXPECT_EQ(events_->count(event_kind::lost), 1);
}

TEST_F(redis_revocation, of_a_hold_that_changed_hands_does_nothing) {
    const auto first = stock_.acquire();
    const auto old_token = fencing_token{first.token().value - 1};

    EXPECT_FALSE(operator_.revoke("stock", first.owner(), old_token, "for the test"));
    EXPECT_FALSE(operator_.revoke("stock", owner_id::random_client(), first.token(), "for the test"));

    EXPECT_EQ(field_of(first), "1");
    EXPECT_TRUE(first);
}

TEST_F(redis_revocation, gives_the_lock_to_those_who_wait_at_once) {
    auto held = stock_.acquire();
    const auto waiter_events = std::make_shared<recorder>();
    auto waiter = make_client({.events = waiter_events});
    auto waiting = in_background([&] { return mutex{waiter, "stock"}.try_acquire_for(20s); });
    EXPECT_TRUE(waiter_events->wait_for(event_kind::contended));
    const stopwatch watch;

    EXPECT_TRUE(operator_.revoke("stock", held.owner(), held.token(), "for the test"));

    const auto next = waiting.get();
    EXPECT_LT(watch.elapsed(), recheck_bound);
    ASSERT_TRUE(next.has_value());
    EXPECT_GT(next->token(), held.token());
}

/// The holder lets go before its client knows what became of the lock, but not that something may have.
TEST_F(redis_revocation, keeps_the_next_thread_of_the_process_from_being_handed_the_lock) {
    const auto identity = engines::make_identity();
    const auto plan = std::make_shared<fault_plan>();
    client_options unhurried;
    unhurried.handover_time = 1min;
    unhurried.events = events_;
    client process{std::make_unique<fault_engine>(engines::open(address(), identity), plan), identity,
                   unhurried};
    mutex stock{process, "stock", {.ttl = 30s}};
    auto busy = mutex{operator_, "stock"}.acquire();
    auto first = in_background([&] { return stock.acquire(); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended, 1));
    auto second = in_background([&] { return stock.acquire(); });
    ASSERT_TRUE(events_->wait_for(event_kind::contended, 2));
    busy.release();
    auto held = first.get();
    plan->delay_replies_of_next(call_kind::renew);
    ASSERT_TRUE(operator_.revoke("stock", held.owner(), held.token(), "for the test"));
    ASSERT_TRUE(plan->wait_until_held(1, 10s));

    EXPECT_EQ(held.release(), release_outcome::already_lost);

    const auto next = second.get();
    EXPECT_EQ(field_of(next), "1") << "it was handed what somebody had taken away";
    EXPECT_GT(next.token(), held.token());
    plan->let_go();
}

TEST_F(redis_revocation, is_remembered_with_actor_and_reason) {
    auto held = stock_.acquire();
    EXPECT_TRUE(operator_.revoke("stock", held.owner(), held.token(), "stuck since noon"));

    const auto record = operator_.inspect("stock").last_revocation;
    ASSERT_TRUE(record.has_value());
    EXPECT_EQ(record->owner, held.owner());
    EXPECT_EQ(record->token, held.token());
    EXPECT_EQ(record->reason, "stuck since noon");
    EXPECT_FALSE(record->actor.empty());
}

class redis_inspection : public redis_revocation {};

TEST_F(redis_inspection, shows_who_holds_a_lock) {
    const auto held = stock_.acquire();

    const auto seen = operator_.inspect("stock");

    ASSERT_EQ(seen.holders.size(), 1);
    const auto& holder = seen.holders[0];
    EXPECT_EQ(holder.owner, held.owner());
    EXPECT_EQ(holder.token, held.token());
    EXPECT_GT(holder.remaining, 20s);
    EXPECT_LE(holder.remaining, 30s);
    ASSERT_TRUE(holder.card.has_value());
    EXPECT_EQ(holder.card->label, "billing worker 3");
    EXPECT_EQ(holder.card->pid, ::getpid());
}

TEST_F(redis_inspection, lists_the_locks_of_all_clients_with_their_cards) {
    const auto first = stock_.acquire();
    const auto second = mutex{operator_, "stock:2"}.acquire();
    const auto java = held_by_java("stock:3");
    server_.cli({"SET", "stock:4", "not a lock"});

    const auto page = operator_.list("stock");

    ASSERT_EQ(page.locks.size(), 3);
    EXPECT_TRUE(page.next.empty());
    for (const auto& lock : page.locks) {
        ASSERT_EQ(lock.holders.size(), 1) << lock.name;
        EXPECT_EQ(lock.holders[0].card.has_value(), lock.holders[0].owner != java) << lock.name;
    }
}

TEST_F(redis_inspection, lists_semaphores_under_their_own_names_in_braces_or_not) {
    const auto plain = semaphore{operator_, "stock", 3}.acquire();
    const auto braced = semaphore{operator_, "{stocks}", 2}.acquire();
    const auto partly = semaphore{operator_, "{stock}s", 1}.acquire();
    // Not sixteen bytes each: somebody else's numbers.
    server_.cli({"ZADD", "stock:timeout", "99999999999999", "not a permit"});
    server_.cli({"SET", "stock:2", "1"});
    server_.cli({"ZADD", "{stock:2}:timeout", "99999999999999", "not a permit"});

    const auto page = operator_.list();

    std::vector<std::string> names;
    for (const auto& lock : page.locks) {
        EXPECT_EQ(lock.holders.size(), 1) << lock.name;
        names.push_back(lock.name);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"stock", "{stocks}", "{stock}s"}));
}

TEST_F(redis_inspection, a_hold_without_an_end_is_shown_as_such) {
    constexpr auto no_end = std::chrono::milliseconds::max();
    server_.cli({"SET", "slots", "2"});
    server_.cli({"ZADD", "{slots}:timeout", "922337203685477", "0123456789abcdef"});
    server_.cli({"HSET", "stock", "9f0c1e52-7d1b-4c54-9c0a-5f6e7d8c9b0a:47", "1"});

    EXPECT_EQ(operator_.inspect("slots").holders.at(0).remaining, no_end);
    EXPECT_EQ(operator_.inspect("stock").holders.at(0).remaining, no_end);
    for (const auto& lock : operator_.list().locks) {
        EXPECT_EQ(lock.holders.at(0).remaining, no_end) << lock.name;
    }
}

TEST_F(redis_inspection, a_client_that_ends_takes_its_card_away) {
    const auto cards = [&] { return server_.ask({"KEYS", "holdfast_card:*"}).items.size(); };
    const auto before = cards();
    {
        client brief{address_of(server_.port())};
        mutex{brief, "stock:5"}.acquire().release();
        EXPECT_EQ(cards(), before + 1);
    }
    EXPECT_EQ(cards(), before);
}

TEST_F(redis_inspection, a_client_that_ends_leaves_its_card_with_a_lock_that_lingers) {
    {
        client brief{address_of(server_.port()), {.label = "nightly"}};
        mutex{brief, "stock:5"}.acquire().release_after(20s);
    }
    const auto seen = operator_.inspect("stock:5");
    ASSERT_EQ(seen.holders.size(), 1);
    ASSERT_TRUE(seen.holders[0].card.has_value());
    EXPECT_EQ(seen.holders[0].card->label, "nightly");
}

/// A client that is killed cannot take its card away.
TEST_F(redis_inspection, a_card_lasts_a_little_longer_than_the_locks_of_its_client) {
    client brief{address_of(server_.port())};
    const auto life = [&] {
        const auto card =
            "holdfast_card:{" + mutex{brief, "probe"}.acquire().owner().client_text() + "}";
        return std::chrono::milliseconds{server_.ask({"PTTL", card}).integer};
    };
    EXPECT_GT(life(), 1min);
    EXPECT_LE(life(), 5min);
    const auto lasting = mutex{brief, "stock:5", {.ttl = 1h}}.acquire();
    EXPECT_GT(life(), 1h);
    EXPECT_LE(life(), 2h);
    mutex{brief, "stock:6"}.acquire().release_after(3h);
    EXPECT_GT(life(), 3h) << "a lock that lingers is shown with its last holder";
}

TEST_F(redis_inspection, lists_more_locks_than_are_looked_at_together_in_order) {
    constexpr int locks = 300;
    const auto name = [](int number) { return "stock:" + std::to_string(1000 + number); };
    for (int number = 0; number < locks; ++number) {
        server_.cli({"HSET", name(number), owner_id::random_client().text(), "1"});
    }

    const auto page = operator_.list("stock");

    ASSERT_EQ(page.locks.size(), locks);
    for (int number = 0; number < locks; ++number) {
        EXPECT_EQ(page.locks[static_cast<std::size_t>(number)].name, name(number));
    }
}

TEST_F(redis_inspection, counts_those_who_wait) {
    const auto held = stock_.acquire();
    client waiter{address()};
    std::stop_source enough;
    auto waiting = in_background([&] {
        return mutex{waiter, "stock"}.acquire_unless_stopped(enough.get_token()).has_value();
    });

    EXPECT_TRUE(eventually([&] { return operator_.inspect("stock").waiters == 1U; }));
    enough.request_stop();
    EXPECT_FALSE(waiting.get());
    EXPECT_TRUE(eventually([&] { return operator_.inspect("stock").waiters.value_or(0) == 0; }));
}

TEST_F(redis_inspection, shows_a_foreign_holder_without_a_card) {
    const auto java = held_by_java("stock");

    const auto seen = operator_.inspect("stock");

    ASSERT_EQ(seen.holders.size(), 1);
    EXPECT_EQ(seen.holders[0].owner, java);
    EXPECT_EQ(seen.holders[0].token, fencing_token{});
    EXPECT_FALSE(seen.holders[0].card.has_value());
    EXPECT_GT(seen.holders[0].remaining, 20s);
}

TEST_F(redis_revocation, frees_a_lock_that_a_foreign_client_holds) {
    const auto java = held_by_java("stock");
    auto waiting = in_background([this] { return stock_.try_acquire_for(20s); });
    EXPECT_TRUE(events_->wait_for(event_kind::contended));
    const stopwatch watch;

    EXPECT_TRUE(operator_.revoke("stock", java, {0}, "its service is gone"));

    EXPECT_TRUE(waiting.get().has_value());
    EXPECT_LT(watch.elapsed(), recheck_bound);
    EXPECT_EQ(operator_.inspect("stock").last_revocation.value().owner, java);
}

TEST_F(redis_revocation, with_a_token_does_not_touch_a_foreign_holder) {
    const auto java = held_by_java("stock");
    EXPECT_FALSE(operator_.revoke("stock", java, {1}, "for the test"));
    EXPECT_EQ(server_.cli({"HGETALL", "stock"}), java.text() + "\n1");
}

}  // namespace

}  // namespace holdfast::testing
