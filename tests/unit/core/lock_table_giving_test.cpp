#include <core/table_script.hpp>

namespace {

using namespace script;
using namespace holdfast::core;
using holdfast::errc;

[[nodiscard]] table_settings handing_over() {
    table_settings settings;
    settings.contention.store_hands_over = true;
    return settings;
}

/// Plain locks in a store that gives them to those who wait.
class lock_table_giving : public table_conversation {
protected:
    lock_table_giving() : table_conversation{handing_over()} {}

    void gives(const holdfast::owner_id& who, const holdfast::engines::turn_grant& what) {
        table.on_turn("stock", who, what, now);
        at(now - start);
    }
    /// Refused, and refused again once it listens; the second request left after 10 ms.
    send_acquire wait_for_it(const claim& what = exclusive()) {
        who_waits = acquire(what);
        const auto first = only<send_acquire>();
        EXPECT_FALSE(first.request.queue) << "it does not listen yet";
        answer(first, busy());
        static_cast<void>(only<update_watch>());
        at(10ms);
        watch_active();
        auto again = only<send_acquire>();
        answer(again, busy());
        return again;
    }
    void stop_watching() { static_cast<void>(only<update_watch>()); }

    waiter_id who_waits{};
    static constexpr holdfast::engines::turn_grant grant{{30}, 1, start + 10ms};
};

TEST_F(lock_table_giving, one_that_was_refused_says_that_it_may_be_given_the_lock) {
    const auto asked = wait_for_it();
    EXPECT_TRUE(asked.request.queue);
    at(100ms);

    gives(asked.request.owner, grant);

    const auto got = only<finish_acquire>();
    EXPECT_EQ(got.id, who_waits);
    EXPECT_EQ(got.token.value, 30U);
    stop_watching();
    let_go(who_waits);
}

TEST_F(lock_table_giving, one_that_waits_behind_one_that_asked_once_may_be_given_the_lock) {
    acquire(once(exclusive()));
    who_waits = acquire();
    answer(only<send_acquire>(), busy());
    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy);
    static_cast<void>(only<update_watch>());
    at(10ms);

    watch_active();

    const auto asked = only<send_acquire>();
    EXPECT_TRUE(asked.request.queue);
    answer(asked, granted(7));
    stop_watching();
    let_go(who_waits);
}

TEST_F(lock_table_giving, what_is_given_counts_from_the_request_that_was_told_to_wait) {
    const auto asked = wait_for_it();
    at(100ms);
    gives(asked.request.owner, grant);
    const auto how = lease_terms();
    EXPECT_EQ(only<finish_acquire>().valid_until, start + 10ms + how.ttl - how.margin);
    stop_watching();
    let_go(who_waits);
}

TEST_F(lock_table_giving, a_lease_that_is_not_renewed_is_asked_for_once_more) {
    auto how = lease_terms();
    how.renewal = holdfast::renewal_mode::none;
    const auto asked = wait_for_it(on_terms(how, exclusive()));
    EXPECT_TRUE(asked.request.queue);
    at(100ms);

    gives(asked.request.owner, grant);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    const auto again = only<send_acquire>();
    EXPECT_EQ(again.request.owner, asked.request.owner);
    answer(again, granted(30));
    EXPECT_EQ(only<finish_acquire>().valid_until, start + 100ms + how.ttl - how.margin);
    stop_watching();
    let_go(who_waits);
}

TEST_F(lock_table_giving, a_lease_that_replicas_confirm_is_asked_for_once_more) {
    auto how = lease_terms();
    how.replicas = holdfast::replica_policy::at_least(1);
    const auto asked = wait_for_it(on_terms(how, exclusive()));
    EXPECT_TRUE(asked.request.queue);

    gives(asked.request.owner, grant);

    EXPECT_EQ(said<finish_acquire>(), 0U);
    const auto again = only<send_acquire>();
    EXPECT_EQ(again.request.owner, asked.request.owner);
    EXPECT_EQ(again.request.replicas, how.replicas);
    answer(again, granted(30));
    EXPECT_EQ(only<finish_acquire>().token.value, 30U);
    stop_watching();
    let_go(who_waits);
}

TEST_F(lock_table_giving, what_refers_to_an_older_request_is_asked_for) {
    const auto asked = wait_for_it();
    at(100ms);
    gives(asked.request.owner, {{30}, 1, start});
    EXPECT_EQ(said<finish_acquire>(), 0U);
    answer(only<send_acquire>(), granted(30));
    EXPECT_EQ(only<finish_acquire>().token.value, 30U);
    stop_watching();
    let_go(who_waits);
}

TEST_F(lock_table_giving, one_that_gives_up_tells_the_store) {
    const auto asked = wait_for_it();
    cancel(who_waits);
    const auto left = only<send_release>();
    EXPECT_EQ(left.request.owner, asked.request.owner);
    EXPECT_EQ(only<finish_acquire>().error.code, errc::cancelled);

    gives(asked.request.owner, grant);

    EXPECT_TRUE(requests_nothing());
    stop_watching();
    answer(left, released());
}

TEST_F(lock_table_giving, what_is_given_to_an_owner_that_waits_no_more_is_given_back) {
    const auto asked = wait_for_it();
    cancel(who_waits);
    answer(only<send_release>(), released());
    EXPECT_EQ(only<finish_acquire>().error.code, errc::cancelled);
    stop_watching();

    // A request of its arrived late: the store kept it in mind once more.
    gives(asked.request.owner, grant);

    const auto back = only<send_release>();
    EXPECT_EQ(back.request.name, "stock");
    EXPECT_EQ(back.request.owner, asked.request.owner);
    EXPECT_EQ(back.on_behalf_of, 0U);
    answer(back, released());
}

TEST_F(lock_table_giving, what_is_given_to_an_owner_nobody_knows_is_given_back_while_others_wait) {
    const auto asked = wait_for_it();
    auto other = asked.request.owner;
    other.sequence += 100;
    gives(other, grant);
    const auto back = only<send_release>();
    EXPECT_EQ(back.request.owner, other);
    answer(back, released());
    gives(asked.request.owner, grant);
    EXPECT_EQ(only<finish_acquire>().token.value, 30U);
    stop_watching();
    let_go(who_waits);
}

TEST_F(lock_table_giving, what_is_told_to_an_owner_that_holds_it_already_is_kept) {
    const auto asked = wait_for_it();
    at(100ms);
    gives(asked.request.owner, {{30}, 1, start});  // it asks, and is answered first
    answer(only<send_acquire>(), granted(30));
    static_cast<void>(only<finish_acquire>());
    stop_watching();

    gives(asked.request.owner, grant);

    EXPECT_TRUE(requests_nothing());
    let_go(who_waits);
}

TEST_F(lock_table_giving, one_that_was_never_refused_tells_the_store_nothing) {
    auto what = exclusive();
    what.wait = false;
    who_waits = acquire(what);
    const auto asked = only<send_acquire>();
    EXPECT_FALSE(asked.request.queue);
    answer(asked, busy());
    EXPECT_EQ(only<finish_acquire>().error.code, errc::busy);
    EXPECT_TRUE(requests_nothing());
}

/// Others are given the lock from hand to hand. Without a wish in the store it would hear of nothing.
TEST_F(lock_table_giving, one_that_is_refused_while_its_process_listens_leaves_its_wish_at_once) {
    const auto asked = wait_for_it();
    const auto next = acquire(on_terms(lease_terms(10s), exclusive()));  // not handed over to it
    at(100ms);
    gives(asked.request.owner, grant);
    release(who_waits);
    answer(only<send_release>(), released());
    const auto first = only<send_acquire>();
    EXPECT_EQ(first.on_behalf_of, next);
    EXPECT_FALSE(first.request.queue) << "most of the time it is free, and a wish costs the store more";

    answer(first, busy());

    const auto again = only<send_acquire>();
    EXPECT_TRUE(again.request.queue);
    EXPECT_EQ(again.request.owner, first.request.owner);
    answer(again, busy());
    EXPECT_EQ(said<send_acquire>(), 0U) << "once";
    hint();
    answer(only<send_acquire>(), granted(40));
    stop_watching();
    let_go(next);
}

/// Any other store.
class lock_table_keeping : public table_conversation {};

TEST_F(lock_table_keeping, nobody_says_that_it_may_be_given_the_lock) {
    const auto who = acquire();
    answer(only<send_acquire>(), busy());
    static_cast<void>(only<update_watch>());
    watch_active();
    const auto again = only<send_acquire>();
    EXPECT_FALSE(again.request.queue);
    answer(again, busy());
    cancel(who);
    EXPECT_EQ(said<send_release>(), 0U);
    EXPECT_EQ(only<finish_acquire>().error.code, errc::cancelled);
    static_cast<void>(only<update_watch>());
}

}  // namespace
