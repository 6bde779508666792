#include "permit_fixture.hpp"

namespace holdfast::engines::redis {
namespace {

class permit_acquire_script : public permit_scripts {};

std::string other_limit(int permits) {
    return "WRONGKIND the semaphore has " + std::to_string(permits) +
           " permits; all who use it must agree on the limit";
}

TEST_F(permit_acquire_script, permits_are_written_as_redisson_writes_them) {
    const auto token = token_of(acquire(alice, {.permits = 2, .limit = 3, .count = 4}));
    EXPECT_EQ(free_permits(), "1");
    EXPECT_EQ(number({"PTTL", name}), -1);
    EXPECT_EQ(text({"ZRANGE", timeouts, "0", "-1"}),
              ids(alice, 2).substr(0, 16) + "\n" + ids(alice, 2).substr(16));
    expect_ends_in(ids(alice, 2).substr(0, 16), long_ttl / 2, long_ttl);
    expect_ends_in(ids(alice, 2).substr(16), long_ttl / 2, long_ttl);
    EXPECT_EQ(number({"PTTL", timeouts}), -1);
    EXPECT_EQ(text({"HGET", holds, alice}), text_of(token) + " 4 " + since + " 2 " + ids(alice, 2));
    EXPECT_EQ(text({"HGET", holds, "limit"}), "3 ours");
}

TEST_F(permit_acquire_script, as_many_as_the_limit_are_let_in) {
    EXPECT_TRUE(granted(acquire(alice, {.limit = 2})));
    EXPECT_TRUE(granted(acquire(bob, {.limit = 2})));
    EXPECT_TRUE(busy(acquire(carol, {.limit = 2})));
    EXPECT_EQ(free_permits(), "0");
    EXPECT_EQ(members(), "2");
}

TEST_F(permit_acquire_script, several_permits_are_taken_together_or_not_at_all) {
    ASSERT_TRUE(granted(acquire(alice, {.permits = 2})));
    EXPECT_TRUE(busy(acquire(bob, {.permits = 2})));
    EXPECT_EQ(free_permits(), "1");
    EXPECT_TRUE(granted(acquire(carol)));
}

TEST_F(permit_acquire_script, busy_lasts_until_the_first_permit_ends) {
    ASSERT_TRUE(granted(acquire(alice, {.limit = 2})));
    ASSERT_TRUE(granted(acquire(bob, {.ttl = 10'000, .limit = 2})));
    const auto retry = retry_of(acquire(carol, {.limit = 2}));
    EXPECT_GT(retry, 5000);
    EXPECT_LE(retry, 10'000);
}

TEST_F(permit_acquire_script, busy_with_permits_that_never_end_is_unknown) {
    redis({"SET", name, "0"});
    EXPECT_EQ(retry_of(acquire(alice)), 0);
    redis({"ZADD", timeouts, never, java_id('j')});
    EXPECT_EQ(retry_of(acquire(alice, {.limit = 1})), 0);
}

TEST_F(permit_acquire_script, an_acquisition_sent_again_counts_once) {
    const auto first = acquire(alice, {.permits = 2, .count = 3});
    EXPECT_EQ(numbers_in(acquire(alice, {.permits = 2, .count = 3})), numbers_in(first));
    EXPECT_EQ(free_permits(), "1");
    EXPECT_EQ(members(), "2");
}

TEST_F(permit_acquire_script, an_acquisition_sent_again_is_granted_when_nothing_is_free) {
    const auto first = acquire(alice, {.limit = 1});
    EXPECT_EQ(numbers_in(acquire(alice, {.limit = 1})), numbers_in(first));
}

TEST_F(permit_acquire_script, an_acquisition_sent_again_extends_and_never_shortens) {
    ASSERT_TRUE(granted(acquire(alice, {.ttl = 1000})));
    ASSERT_TRUE(granted(acquire(alice)));
    expect_ends_in(ids(alice), long_ttl / 2, long_ttl);
    ASSERT_TRUE(granted(acquire(alice, {.ttl = 1000})));
    expect_ends_in(ids(alice), long_ttl / 2, long_ttl);
}

TEST_F(permit_acquire_script, tokens_that_were_forgotten_are_taken_anew) {
    const auto first = token_of(acquire(alice));
    redis({"DEL", holds});
    const auto again = token_of(acquire(alice));
    EXPECT_GT(again, first);
    EXPECT_EQ(token_of(acquire(alice)), again);
    EXPECT_EQ(free_permits(), "2");
}

TEST_F(permit_acquire_script, another_number_of_permits_for_the_same_owner_is_refused) {
    ASSERT_TRUE(granted(acquire(alice)));
    const auto reply = acquire(alice, {.permits = 2});
    EXPECT_TRUE(reply.text.starts_with("WRONGCOUNT this owner has 1 permits")) << reply.as_text();
    EXPECT_EQ(free_permits(), "2");
}

TEST_F(permit_acquire_script, all_expired_permits_are_taken_back_and_waiters_are_told) {
    auto waiter = listener(channel);
    ASSERT_TRUE(granted(acquire(alice, {.permits = 2})));
    ASSERT_TRUE(granted(acquire(bob)));
    expire(ids(alice, 2).substr(0, 16));
    expire(ids(alice, 2).substr(16));
    ASSERT_TRUE(granted(acquire(carol)));
    EXPECT_EQ(message(waiter), "2");
    EXPECT_EQ(free_permits(), "1");
    EXPECT_EQ(members(), "2");
    EXPECT_EQ(number({"HEXISTS", holds, alice}), 0);
    EXPECT_EQ(number({"HEXISTS", holds, bob}), 1);
}

TEST_F(permit_acquire_script, permits_come_back_by_themselves_when_a_lease_ends) {
    ASSERT_TRUE(granted(acquire(alice, {.ttl = short_ttl, .permits = 3})));
    wait_until("bob to be let in", [&] { return acquire(bob, {.permits = 3}).items.size() == 3; });
    EXPECT_EQ(members(), "3");
}

TEST_F(permit_acquire_script, an_owner_whose_permits_expired_gets_new_tokens) {
    const auto first = token_of(acquire(alice));
    expire(ids(alice));
    EXPECT_GT(token_of(acquire(alice)), first);
    EXPECT_EQ(free_permits(), "2");
}

TEST_F(permit_acquire_script, a_java_programs_permits_count) {
    redis({"SET", name, "1"});
    redis({"ZADD", timeouts, text_of(now() + 30'000), java_id('1'), never, java_id('2')});
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(free_permits(), "0");
    EXPECT_TRUE(busy(acquire(bob)));
}

TEST_F(permit_acquire_script, a_java_programs_expired_permits_are_taken_back) {
    redis({"SET", name, "0"});
    redis({"ZADD", timeouts, text_of(now() - 5), java_id('1'), never, java_id('2')});
    EXPECT_TRUE(granted(acquire(alice, {.limit = 2})));
    EXPECT_EQ(free_permits(), "0");
    EXPECT_EQ(members(), "2");
}

TEST_F(permit_acquire_script, a_missing_counter_is_made_with_what_live_permits_leave) {
    redis({"ZADD", timeouts, text_of(now() + 30'000), java_id('1'), text_of(now() - 5), java_id('2')});
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(free_permits(), "1");
}

TEST_F(permit_acquire_script, a_missing_counter_is_made_even_when_nothing_is_free) {
    redis({"ZADD", timeouts, never, java_id('1'), never, java_id('2')});
    EXPECT_TRUE(busy(acquire(alice, {.permits = 2})));
    EXPECT_EQ(free_permits(), "1");
}

TEST_F(permit_acquire_script, more_permits_than_the_limit_are_refused) {
    redis({"SET", name, "4"});
    auto reply = acquire(alice);
    EXPECT_TRUE(wrong_kind(reply));
    EXPECT_EQ(reply.text, other_limit(4));
    redis({"SET", name, "2"});
    redis({"ZADD", timeouts, never, java_id('1'), never, java_id('2')});
    reply = acquire(alice);
    EXPECT_EQ(reply.text, other_limit(4));
    redis({"DEL", name});
    EXPECT_EQ(acquire(alice, {.limit = 1}).text, other_limit(2));
}

TEST_F(permit_acquire_script, another_limit_is_refused_while_permits_are_out) {
    ASSERT_TRUE(granted(acquire(alice, {.limit = 3})));
    EXPECT_EQ(acquire(bob, {.limit = 4}).text, other_limit(3));
    EXPECT_EQ(acquire(bob, {.limit = 2}).text, other_limit(3));
    EXPECT_TRUE(granted(acquire(bob, {.limit = 3})));
}

TEST_F(permit_acquire_script, another_limit_is_fine_once_all_permits_are_back) {
    ASSERT_TRUE(granted(acquire(alice, {.limit = 3})));
    ASSERT_EQ(release(alice), released);
    ASSERT_TRUE(granted(acquire(bob, {.limit = 5})));
    EXPECT_EQ(free_permits(), "4");
    ASSERT_EQ(release(bob), released);
    ASSERT_TRUE(granted(acquire(bob, {.limit = 2})));
    EXPECT_EQ(free_permits(), "1");
    EXPECT_EQ(text({"HGET", holds, "limit"}), "2 ours");
}

TEST_F(permit_acquire_script, another_limit_is_fine_once_all_permits_have_expired) {
    ASSERT_TRUE(granted(acquire(alice, {.limit = 3})));
    expire(ids(alice));
    ASSERT_TRUE(granted(acquire(bob, {.limit = 1})));
    EXPECT_EQ(free_permits(), "0");
}

TEST_F(permit_acquire_script,
       another_limit_is_refused_while_users_of_redissons_plain_semaphore_are_in) {
    ASSERT_TRUE(granted(acquire(alice, {.limit = 3})));
    ASSERT_EQ(release(alice), released);
    redis({"DECRBY", name, "1"});
    EXPECT_TRUE(wrong_kind(acquire(bob, {.limit = 5})));
    EXPECT_EQ(free_permits(), "2");
    EXPECT_TRUE(granted(acquire(bob, {.limit = 3})));
    EXPECT_EQ(free_permits(), "1");
}

TEST_F(permit_acquire_script, a_limit_that_others_agreed_on_meanwhile_is_adopted) {
    ASSERT_TRUE(granted(acquire(alice, {.limit = 3})));
    ASSERT_EQ(release(alice), released);
    redis({"SET", name, "7"});
    EXPECT_TRUE(wrong_kind(acquire(bob, {.limit = 3})));
    EXPECT_TRUE(granted(acquire(bob, {.limit = 7})));
    EXPECT_EQ(free_permits(), "6");
}

TEST_F(permit_acquire_script, a_limit_larger_than_that_of_java_is_refused_while_java_has_permits) {
    redis({"SET", name, "2"});
    redis({"ZADD", timeouts, never, java_id('1')});
    EXPECT_EQ(acquire(alice, {.limit = 5}).text, other_limit(3));
    EXPECT_TRUE(granted(acquire(alice, {.limit = 3})));
    EXPECT_EQ(acquire(bob, {.limit = 5}).text, other_limit(3));
}

/// Users of RSemaphore may have the others, which nobody can tell.
TEST_F(permit_acquire_script, a_limit_that_is_not_certain_is_not_remembered) {
    redis({"SET", name, "3"});
    ASSERT_TRUE(granted(acquire(alice, {.limit = 5})));
    EXPECT_EQ(number({"HEXISTS", holds, "limit"}), 0);
    EXPECT_TRUE(granted(acquire(bob, {.limit = 3})));
    EXPECT_EQ(text({"HGET", holds, "limit"}), "3");
    EXPECT_EQ(acquire(carol, {.limit = 5}).text, other_limit(3));
    EXPECT_TRUE(granted(acquire(carol, {.limit = 3})));
}

TEST_F(permit_acquire_script, a_limit_that_is_not_certain_lets_in_no_more_than_the_counter_has) {
    redis({"SET", name, "1"});
    ASSERT_TRUE(granted(acquire(alice, {.limit = 5})));
    EXPECT_TRUE(busy(acquire(bob, {.limit = 5})));
    ASSERT_EQ(release(alice), released);
    EXPECT_EQ(free_permits(), "1");
}

TEST_F(permit_acquire_script, the_limit_of_a_counter_that_java_made_is_not_changed) {
    redis({"SET", name, "3"});
    ASSERT_TRUE(granted(acquire(alice, {.limit = 3})));
    ASSERT_EQ(release(alice), released);
    EXPECT_TRUE(wrong_kind(acquire(bob, {.limit = 5})));
    EXPECT_TRUE(wrong_kind(acquire(bob, {.limit = 2})));
    EXPECT_EQ(free_permits(), "3");
}

TEST_F(permit_acquire_script, what_we_know_of_a_semaphore_goes_by_itself_but_not_before_its_permits) {
    constexpr std::int64_t month = 2'592'000'000;
    ASSERT_TRUE(granted(acquire(alice)));
    expect_remaining(holds, month / 2, month);
    redis({"PEXPIRE", holds, "1000"});
    ASSERT_EQ(renew(alice), "1");
    expect_remaining(holds, month / 2, month);
    redis({"PEXPIRE", holds, "1000"});
    ASSERT_EQ(release(alice, 1, 5000), released);
    expect_remaining(holds, month / 2, month);
    ASSERT_TRUE(granted(acquire(bob, {.ttl = 2 * month})));
    expect_remaining(holds, month + month / 2, 2 * month);
}

TEST_F(permit_acquire_script, what_a_lock_of_the_same_name_left_behind_goes) {
    redis({"HSET", holds, bob, "5 1 " + since});
    redis({"PEXPIRE", holds, "1000"});
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(number({"HEXISTS", holds, bob}), 0);
    EXPECT_GT(number({"PTTL", holds}), long_ttl);
}

TEST_F(permit_acquire_script, a_counters_lifetime_is_that_of_everything) {
    redis({"SET", name, "3", "PX", "30000"});
    ASSERT_TRUE(granted(acquire(alice)));
    expect_remaining(name, 15'000, 30'000);
    expect_remaining(timeouts, 15'000, 30'000);
    expect_remaining(holds, 15'000, 30'000);
}

TEST_F(permit_acquire_script, other_kinds_under_the_name_are_refused_and_left_alone) {
    std::vector<words> occupants{{"HSET", name, bob, "1"}, {"RPUSH", name, "x"}};
    for (const auto* text : {"x", "", "1.5", "2.0", "0x2", "1e0", " 2", "2 ", "nan"}) {
        occupants.push_back({"SET", name, text});
    }
    for (const auto& command : occupants) {
        redis({"DEL", name});
        redis(command);
        const auto before = contents();
        EXPECT_TRUE(wrong_kind(acquire(alice)));
        EXPECT_EQ(release(alice), gone);
        EXPECT_EQ(renew(alice), "0");
        EXPECT_EQ(contents(), before);
    }
}

TEST_F(permit_acquire_script, a_key_of_others_in_the_place_of_the_ends_is_refused_and_left_alone) {
    const std::vector<words> occupants{{"ZADD", timeouts, "1", "order:1", "2", "order:2"},
                                       {"ZADD", timeouts, "1", java_id('j'), "9e15", "an order"},
                                       {"RPUSH", timeouts, "x"}};
    for (const auto& occupant : occupants) {
        for (const bool counted : {false, true}) {
            redis({"DEL", timeouts, name});
            redis(occupant);
            if (counted) {
                redis({"SET", name, "3"});
            }
            const auto before = contents();
            EXPECT_TRUE(wrong_kind(acquire(alice)));
            EXPECT_EQ(release(alice), gone);
            EXPECT_EQ(contents(), before);
        }
    }
}

TEST_F(permit_acquire_script, more_members_than_permits_without_a_semaphore_are_left_alone) {
    // As long as ids of permits, by chance.
    redis(
        {"ZADD", timeouts, "1", java_id('a'), "1", java_id('b'), "1", java_id('c'), "1", java_id('d')});
    const auto before = contents();
    EXPECT_TRUE(wrong_kind(acquire(alice)));
    EXPECT_EQ(contents(), before);
}

class many_expired_permits : public permit_acquire_script {
protected:
    static constexpr std::uint32_t many = 2000;

    void add_expired() {
        words command{"ZADD", timeouts};
        for (std::uint32_t index = 0; index < many; ++index) {
            auto digits = text_of(index);
            command.push_back("1");
            command.push_back(std::string(16 - digits.size(), '0') + digits);
        }
        redis(command);
    }
    [[nodiscard]] int left() { return std::stoi(members()); }
};

TEST_F(many_expired_permits, are_taken_back_some_at_a_time) {
    redis({"SET", name, "0"});
    add_expired();
    ASSERT_TRUE(granted(acquire(alice, {.limit = many})));
    EXPECT_GT(left(), 1000);
    EXPECT_EQ(std::stoi(free_permits()) + left(), many) << "a permit went astray";
}

TEST_F(many_expired_permits, come_back_as_many_as_are_wanted) {
    redis({"SET", name, "0"});
    add_expired();
    EXPECT_TRUE(granted(acquire(alice, {.permits = 1500, .limit = many})));
}

TEST_F(many_expired_permits, do_not_hide_the_owners_own) {
    redis({"SET", name, text_of(many + 1)});
    const auto first = token_of(acquire(alice, {.limit = many + 1}));
    redis({"SET", name, "0"});
    add_expired();
    redis({"ZADD", timeouts, "XX", "2", ids(alice)});  // after all the others
    EXPECT_EQ(release(alice), gone);
    ASSERT_TRUE(granted(acquire(alice, {.limit = many + 1})));
    redis({"ZADD", timeouts, "XX", "2", ids(alice)});
    EXPECT_GT(token_of(acquire(alice, {.limit = many + 1})), first + 1);
    EXPECT_EQ(std::stoi(free_permits()) + left(), static_cast<int>(many) + 1) << "counted twice";
}

}  // namespace
}  // namespace holdfast::engines::redis
