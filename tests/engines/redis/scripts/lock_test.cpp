#include "fixture.hpp"

namespace holdfast::engines::redis {
namespace {

const std::string name = "stock";
const std::string holds = holds_key(name);
const std::string channel = lock_channel(name);
const std::string revocation = revocation_key(name);

class lock_scripts : public script_test {
protected:
    redis_reply acquire(const std::string& owner, const terms& asked = {}) {
        return run(scripts::lock_acquire(), {name, holds, token_counter(), lock_turn(name)},
                   {owner, text_of(asked.ttl), text_of(asked.count), text_of(asked.floor), since});
    }
    numbers release(const std::string& owner, std::int64_t linger = 0) {
        return numbers_in(run(scripts::lock_release(), lock_release_keys(name),
                              lock_release_arguments(owner, linger)));
    }
    std::string renew(const std::string& owner, std::int64_t ttl = long_ttl) {
        return run(scripts::lock_renew(), {name, holds, revocation}, {owner, owner, text_of(ttl)})
            .as_text();
    }
};

TEST_F(lock_scripts, a_free_lock_is_written_as_redisson_writes_it) {
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(text({"TYPE", name}), "hash");
    EXPECT_EQ(text({"HGETALL", name}), alice + "\n1");
    expect_long_lease(name);
}

TEST_F(lock_scripts, what_we_know_of_a_hold_stands_beside_it) {
    const auto token = token_of(acquire(alice, {.count = 5}));
    EXPECT_EQ(text({"HGETALL", holds}), alice + "\n" + text_of(token) + " 5 " + since);
    expect_lives_as_long(holds, name);
}

TEST_F(lock_scripts, nothing_else_is_left_in_the_store) {
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(number({"DBSIZE"}), 3);
    EXPECT_EQ(release(alice), released);
    EXPECT_EQ(text({"KEYS", "*"}), token_counter());
}

TEST_F(lock_scripts, a_held_lock_is_busy_for_as_long_as_its_lease) {
    ASSERT_TRUE(granted(acquire(alice)));
    const auto retry = retry_of(acquire(bob));
    EXPECT_GT(retry, long_ttl / 2);
    EXPECT_LE(retry, long_ttl);
    EXPECT_EQ(text({"HGETALL", name}), alice + "\n1");
}

TEST_F(lock_scripts, a_lock_without_an_end_is_busy_for_an_unknown_time) {
    redis({"HSET", name, java, "1"});
    EXPECT_EQ(retry_of(acquire(alice)), 0);
}

TEST_F(lock_scripts, an_acquisition_sent_again_is_granted_with_the_same_tokens) {
    const auto first = acquire(alice, {.count = 3});
    const auto again = acquire(alice, {.count = 3});
    EXPECT_EQ(numbers_in(again), numbers_in(first));
    EXPECT_EQ(text({"HGET", name, alice}), "1");
}

TEST_F(lock_scripts, an_acquisition_sent_again_extends_the_lease) {
    ASSERT_TRUE(granted(acquire(alice, {.ttl = 1000})));
    ASSERT_TRUE(granted(acquire(alice)));
    expect_long_lease(name);
    expect_long_lease(holds);
}

TEST_F(lock_scripts, an_acquisition_sent_again_does_not_shorten_the_lease) {
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(granted(acquire(alice, {.ttl = 1000})));
    expect_long_lease(name);
    expect_long_lease(holds);
}

TEST_F(lock_scripts, tokens_that_were_forgotten_are_taken_anew) {
    const auto first = token_of(acquire(alice));
    redis({"DEL", holds});
    const auto again = token_of(acquire(alice));
    EXPECT_GT(again, first);
    EXPECT_EQ(token_of(acquire(alice)), again);
    expect_lives_as_long(holds, name);
}

TEST_F(lock_scripts, an_expired_lock_is_free) {
    const auto first = token_of(acquire(alice, {.ttl = short_ttl}));
    wait_until_gone(name);
    EXPECT_GT(token_of(acquire(bob)), first);
    EXPECT_EQ(text({"HKEYS", holds}), bob);
}

TEST_F(lock_scripts, what_an_earlier_holder_left_behind_goes) {
    ASSERT_TRUE(granted(acquire(alice)));
    redis({"DEL", name});
    ASSERT_TRUE(granted(acquire(bob)));
    EXPECT_EQ(text({"HKEYS", holds}), bob);
}

TEST_F(lock_scripts, a_lock_of_a_java_program_is_respected) {
    redis({"HSET", name, java, "2"});
    redis({"PEXPIRE", name, "30000"});
    EXPECT_GT(retry_of(acquire(alice)), 20000);
    EXPECT_EQ(release(alice), gone);
    EXPECT_EQ(text({"HGETALL", name}), java + "\n2");
}

TEST_F(lock_scripts, other_kinds_under_the_name_are_refused_and_left_alone) {
    const std::vector<words> foreign{{"SET", name, "5"},
                                     {"RPUSH", name, "x"},
                                     {"ZADD", name, "1", "x"},
                                     {"HSET", name, "mode", "read"}};
    for (const auto& command : foreign) {
        redis({"DEL", name});
        redis(command);
        const auto before = contents();
        EXPECT_TRUE(wrong_kind(acquire(alice))) << command[0];
        EXPECT_EQ(release(alice), gone) << command[0];
        EXPECT_EQ(renew(alice), "0") << command[0];
        EXPECT_EQ(contents(), before) << command[0];
    }
}

TEST_F(lock_scripts, a_release_deletes_everything_and_tells_those_who_wait) {
    auto waiter = listener(channel);
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(release(alice), (numbers{1, 1}));
    EXPECT_EQ(number({"EXISTS", name, holds}), 0);
    EXPECT_EQ(message(waiter), "0");
}

TEST_F(lock_scripts, a_release_may_use_a_sharded_channel) {
    auto waiter = server().connect();
    waiter.command({"SSUBSCRIBE", channel});
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(numbers_in(run(scripts::lock_release(), lock_release_keys(name),
                             lock_release_arguments(alice, 0, "spublish"))),
              (numbers{1, 1}));
    EXPECT_EQ(message(waiter), "0");
}

TEST_F(lock_scripts, only_the_owner_releases) {
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(release(bob), gone);
    EXPECT_EQ(text({"HGETALL", name}), alice + "\n1");
    EXPECT_EQ(release(alice), released);
}

TEST_F(lock_scripts, a_release_sent_again_is_gone_and_spares_the_next_holder) {
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(release(alice), released);
    ASSERT_TRUE(granted(acquire(bob)));
    EXPECT_EQ(release(alice), gone);
    EXPECT_EQ(text({"HKEYS", name}), bob);
}

TEST_F(lock_scripts, a_lingering_lock_is_nobodys_and_stays_taken) {
    auto waiter = listener(channel);
    const auto token = token_of(acquire(alice));
    EXPECT_EQ(release(alice, 5000), released);
    EXPECT_EQ(text({"HGETALL", name}), alice + ":lingering\n1");
    EXPECT_EQ(text({"HGET", holds, alice}), text_of(token) + " 1 " + since + " lingering");
    expect_remaining(name, 2000, 5000);
    expect_remaining(holds, 2000, 5000);
    EXPECT_EQ(renew(alice), "0");
    EXPECT_TRUE(busy(acquire(alice)));
    EXPECT_TRUE(busy(acquire(bob)));
    EXPECT_EQ(release(alice), gone);
    redis({"PUBLISH", channel, "end"});
    EXPECT_EQ(message(waiter), "end");
}

TEST_F(lock_scripts, a_linger_may_be_longer_than_the_lease) {
    ASSERT_TRUE(granted(acquire(alice, {.ttl = 1000})));
    EXPECT_EQ(release(alice, long_ttl), released);
    expect_long_lease(name);
    expect_long_lease(holds);
}

TEST_F(lock_scripts, a_linger_sent_again_says_the_same) {
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(release(alice, 5000), released);
    EXPECT_EQ(release(alice, 5000), released);
    EXPECT_EQ(release(bob, 5000), gone);
}

TEST_F(lock_scripts, a_linger_ends) {
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(release(alice, short_ttl), released);
    wait_until_gone(name);
    EXPECT_TRUE(granted(acquire(bob)));
}

TEST_F(lock_scripts, a_renewal_extends) {
    ASSERT_TRUE(granted(acquire(alice, {.ttl = 1000})));
    EXPECT_EQ(renew(alice), "1");
    expect_long_lease(name);
    expect_lives_as_long(holds, name);
}

TEST_F(lock_scripts, a_renewal_never_shortens) {
    ASSERT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(renew(alice, 1000), "1");
    expect_long_lease(name);
}

TEST_F(lock_scripts, a_renewal_creates_nothing) {
    EXPECT_EQ(renew(alice), "0");
    EXPECT_EQ(number({"DBSIZE"}), 0);
}

TEST_F(lock_scripts, only_the_owner_renews) {
    ASSERT_TRUE(granted(acquire(alice, {.ttl = 1000})));
    EXPECT_EQ(renew(bob), "0");
    expect_remaining(name, 0, 1000);
}

TEST_F(lock_scripts, a_revoked_owner_hears_why_and_nobody_else_does) {
    const auto record = alice + " 17 1700000000000 bob stuck";
    redis({"SET", revocation, record});
    EXPECT_EQ(renew(alice), record);
    EXPECT_EQ(renew(bob), "0");
    EXPECT_EQ(renew(alice.substr(0, alice.size() - 1)), "0");
}

TEST_F(lock_scripts, trouble_with_one_of_a_batch_does_not_touch_the_others) {
    ASSERT_TRUE(granted(acquire(alice, {.ttl = 1000})));
    redis({"SET", "text", "x"});
    redis({"RPUSH", "list", "x"});
    redis({"HSET", "plain", bob, "1"});
    redis({"PEXPIRE", "plain", "1000"});
    const auto reply =
        run(scripts::lock_renew(),
            {"text", "h1", "list", "gone", "h2", "r2", name, holds, revocation, "plain", "list", "r4"},
            {alice, alice, text_of(long_ttl), alice, alice, text_of(long_ttl), alice, alice,
             text_of(long_ttl), bob, bob, text_of(long_ttl)});
    EXPECT_EQ(reply.as_text(), "0\n0\n1\n1");
    expect_long_lease(name);
    expect_long_lease("plain");
}

TEST_F(lock_scripts, a_writer_is_renewed_by_its_own_field) {
    redis({"HSET", name, "mode", "write", alice + ":write", "1"});
    redis({"PEXPIRE", name, "1000"});
    const auto reply = run(scripts::lock_renew(), {name, holds, revocation},
                           {alice + ":write", alice, text_of(long_ttl)});
    EXPECT_EQ(reply.as_text(), "1");
    expect_long_lease(name);
}

/// Half of it would look like somebody else's hash, or like a lock that is held for as long.
TEST_F(lock_scripts, a_linger_that_is_refused_changes_nothing) {
    ASSERT_TRUE(granted(acquire(alice)));
    for (const std::string permission : {"hdel", "hset", "pexpire"}) {
        redis({"ACL", "SETUSER", "default", "-" + permission});
        const auto answer = run(scripts::lock_release(), lock_release_keys(name),
                                lock_release_arguments(alice, 20 * long_ttl));
        const auto while_moving =
            run(scripts::moving_release(), {name}, {alice, "publish", text_of(20 * long_ttl), ""});
        redis({"ACL", "SETUSER", "default", "+" + permission});
        EXPECT_TRUE(answer.is_error()) << permission;
        EXPECT_TRUE(while_moving.is_error()) << permission;
        EXPECT_EQ(text({"HGETALL", name}), alice + "\n1") << permission;
        expect_long_lease(name);
    }
    EXPECT_EQ(release(alice, 20 * long_ttl), released);
    EXPECT_EQ(text({"HGETALL", name}), alice + ":lingering\n1");
}

/// As a server that refused HDEL left it, before that was tried first.
TEST_F(lock_scripts, a_lock_with_the_fields_of_both_is_still_a_lock) {
    redis({"HSET", name, bob, "1", bob + ":lingering", "1"});
    redis({"PEXPIRE", name, text_of(long_ttl)});
    EXPECT_GT(retry_of(acquire(alice)), long_ttl / 2);
    redis({"HSET", name, "somebody else's", "1"});
    EXPECT_TRUE(acquire(alice).is_error());
}

/// Holders leave their record behind when a server is restarted in the middle, or somebody deletes the
/// lock. What else is there is somebody else's.
TEST_F(lock_scripts, what_is_beside_a_free_lock_is_removed_only_if_it_is_ours) {
    for (const words& command :
         {words{"SET", holds, "precious"}, words{"HSET", holds, "precious", "x"},
          words{"HSET", holds, alice, "1 1 1", "precious", "x"}, words{"RPUSH", holds, "precious"}}) {
        SetUp();
        redis(command);
        const auto before = contents();
        const auto refused = acquire(alice);
        EXPECT_TRUE(refused.is_error());
        EXPECT_NE(refused.text.find("WRONGKIND the key " + holds), std::string::npos) << refused.text;
        EXPECT_NE(refused.text.find("; remove it: DEL " + holds), std::string::npos) << refused.text;
        EXPECT_EQ(contents(), before);
    }
    SetUp();
    for (int reader = 0; reader < 40; ++reader) {
        redis({"HSET", holds, alice + text_of(reader), "1 1 1"});
    }
    EXPECT_TRUE(granted(acquire(bob)));
    EXPECT_EQ(text({"HKEYS", holds}), bob);
}

}  // namespace
}  // namespace holdfast::engines::redis
