#include "read_write_fixture.hpp"

namespace holdfast::engines::redis {
namespace {

class read_scripts : public read_write_scripts {};

TEST_F(read_scripts, a_reader_is_written_as_redisson_writes_it) {
    const auto token = token_of(read(alice, {.count = 2}));
    EXPECT_EQ(fields(), alice + "=1 mode=read");
    EXPECT_EQ(text({"GET", timeout(alice)}), "1");
    EXPECT_EQ(timeout(alice), "{stock}:" + alice + ":rwlock_timeout:1");
    expect_long_lease(name);
    expect_long_lease(timeout(alice));
    EXPECT_EQ(text({"HGETALL", holds}), alice + "\n" + text_of(token) + " 2 " + since);
    expect_lives_as_long(holds, name);
}

TEST_F(read_scripts, readers_do_not_exclude_each_other) {
    const auto first = token_of(read(alice));
    EXPECT_GT(token_of(read(bob)), first);
    EXPECT_EQ(fields(), alice + "=1 " + bob + "=1 mode=read");
}

TEST_F(read_scripts, the_lock_lives_as_long_as_its_longest_reader) {
    ASSERT_TRUE(granted(read(alice)));
    ASSERT_TRUE(granted(read(bob, {.ttl = 1000})));
    expect_long_lease(name);
    expect_long_lease(holds);
    expect_remaining(timeout(bob), 0, 1000);
    ASSERT_TRUE(granted(read(carol, {.ttl = 2 * long_ttl})));
    expect_remaining(name, long_ttl + 1, 2 * long_ttl);
    expect_remaining(holds, long_ttl + 1, 2 * long_ttl);
}

TEST_F(read_scripts, an_acquisition_sent_again_counts_once_and_never_shortens) {
    const auto first = read(alice, {.ttl = 1000, .count = 3});
    EXPECT_EQ(numbers_in(read(alice, {.count = 3})), numbers_in(first));
    EXPECT_EQ(fields(), alice + "=1 mode=read");
    expect_long_lease(name);
    expect_long_lease(timeout(alice));
    expect_long_lease(holds);
    EXPECT_EQ(numbers_in(read(alice, {.ttl = 1000, .count = 3})), numbers_in(first));
    expect_long_lease(name);
    expect_long_lease(timeout(alice));
    expect_long_lease(holds);
}

TEST_F(read_scripts, a_reader_whose_lease_ended_starts_anew) {
    const auto first = token_of(read(alice, {.ttl = short_ttl}));
    ASSERT_TRUE(granted(read(bob)));
    wait_until_gone(timeout(alice));
    EXPECT_GT(token_of(read(alice)), first);
    expect_long_lease(timeout(alice));
}

TEST_F(read_scripts, a_java_programs_readers_share) {
    java_reads(2, 30'000);
    EXPECT_TRUE(granted(read(alice)));
    EXPECT_EQ(text({"HGET", name, java}), "2");
    EXPECT_EQ(text({"HGET", name, alice}), "1");
}

TEST_F(read_scripts, a_writer_keeps_readers_out) {
    redis({"HSET", name, "mode", "write", java + ":write", "1"});
    redis({"PEXPIRE", name, "30000"});
    const auto retry = retry_of(read(alice));
    EXPECT_GT(retry, 15'000);
    EXPECT_LE(retry, 30'000);
    EXPECT_EQ(fields(), java + ":write=1 mode=write");
}

TEST_F(read_scripts, other_kinds_under_the_name_are_refused_and_left_alone) {
    for (const auto& command : std::vector<words>{{"SET", name, "5"}, {"HSET", name, alice, "1"}}) {
        redis({"DEL", name});
        redis(command);
        const auto before = contents();
        EXPECT_TRUE(wrong_kind(read(alice)));
        EXPECT_TRUE(wrong_kind(write(alice)));
        EXPECT_EQ(release_read(alice), gone);
        EXPECT_EQ(release_write(alice), gone);
        EXPECT_EQ(renew_read(alice), "0");
        EXPECT_EQ(contents(), before);
    }
}

TEST_F(read_scripts, a_downgraded_writer_keeps_its_tokens_and_tells_waiting_readers) {
    auto waiter = listener(channel);
    const auto first = write(alice, {.count = 3});
    EXPECT_EQ(numbers_in(read(alice, {.count = 3})), numbers_in(first));
    EXPECT_EQ(fields(), alice + "=1 mode=read");
    EXPECT_EQ(message(waiter), "1");
    expect_long_lease(timeout(alice));
    EXPECT_TRUE(granted(read(bob)));
}

TEST_F(read_scripts, a_downgrade_does_not_shorten_the_lease) {
    ASSERT_TRUE(granted(write(alice)));
    ASSERT_TRUE(granted(read(alice, {.ttl = 1000})));
    expect_long_lease(name);
    expect_long_lease(timeout(alice));
    expect_long_lease(holds);
}

TEST_F(read_scripts, a_downgrade_extends_the_lease) {
    ASSERT_TRUE(granted(write(alice, {.ttl = 1000})));
    ASSERT_TRUE(granted(read(alice)));
    expect_long_lease(name);
    expect_long_lease(timeout(alice));
    expect_long_lease(holds);
}

TEST_F(read_scripts, a_downgrade_whose_tokens_were_forgotten_takes_new_ones) {
    const auto first = token_of(write(alice));
    redis({"DEL", holds});
    const auto again = token_of(read(alice));
    EXPECT_GT(again, first);
    EXPECT_EQ(token_of(read(alice)), again);
}

TEST_F(read_scripts, the_last_reader_deletes_everything_and_tells_those_who_wait) {
    auto waiter = listener(channel);
    ASSERT_TRUE(granted(read(alice)));
    EXPECT_EQ(release_read(alice), (numbers{1, 1}));
    EXPECT_EQ(message(waiter), "0");
    EXPECT_EQ(text({"KEYS", "*"}), token_counter());
}

TEST_F(read_scripts, a_release_leaves_the_other_readers_alone) {
    ASSERT_TRUE(granted(read(alice, {.ttl = 2 * long_ttl})));
    ASSERT_TRUE(granted(read(bob)));
    ASSERT_TRUE(granted(read(carol, {.ttl = 1000})));
    EXPECT_EQ(release_read(alice), released);
    EXPECT_EQ(fields(), bob + "=1 " + carol + "=1 mode=read");
    EXPECT_EQ(number({"EXISTS", timeout(alice)}), 0);
    EXPECT_EQ(number({"HEXISTS", holds, alice}), 0);
    expect_long_lease(name);
}

TEST_F(read_scripts, a_reader_that_is_left_alone_is_told_with_a_number_that_redisson_ignores) {
    auto waiter = listener(channel);
    ASSERT_TRUE(granted(read(alice)));
    ASSERT_TRUE(granted(read(bob)));
    EXPECT_EQ(release_read(alice), (numbers{1, 1}));
    EXPECT_EQ(message(waiter), "2");
}

TEST_F(read_scripts, with_only_dead_readers_left_the_lock_goes) {
    auto waiter = listener(channel);
    ASSERT_TRUE(granted(read(bob)));
    ASSERT_TRUE(granted(read(alice)));
    redis({"DEL", timeout(bob)});
    EXPECT_EQ(release_read(alice), (numbers{1, 1}));
    EXPECT_EQ(message(waiter), "0");
    EXPECT_EQ(number({"EXISTS", name, holds}), 0);
}

TEST_F(read_scripts, a_java_reader_with_several_holds_keeps_the_lock) {
    java_reads(3, 30'000);
    redis({"DEL", timeout(java, 1), timeout(java, 2)});
    ASSERT_TRUE(granted(read(alice)));
    EXPECT_EQ(release_read(alice), released);
    EXPECT_EQ(fields(), java + "=3 mode=read");
    expect_remaining(name, 15'000, 30'000);
}

TEST_F(read_scripts, a_reader_without_an_end_keeps_the_lock_whatever_the_others_leases_are) {
    java_reads(1, 30'000);
    redis({"PERSIST", timeout(java)});
    ASSERT_TRUE(granted(read(alice)));
    ASSERT_TRUE(granted(read(bob, {.ttl = 1000})));
    EXPECT_EQ(release_read(alice), released);
    expect_long_lease(name);
}

TEST_F(read_scripts, only_the_owner_releases_and_only_once) {
    ASSERT_TRUE(granted(read(alice)));
    EXPECT_EQ(release_read(bob), gone);
    EXPECT_EQ(fields(), alice + "=1 mode=read");
    EXPECT_EQ(release_read(alice), released);
    EXPECT_EQ(release_read(alice), gone);
}

TEST_F(read_scripts, releasing_a_lease_that_ended_cleans_up_and_is_gone) {
    ASSERT_TRUE(granted(read(alice, {.ttl = short_ttl})));
    ASSERT_TRUE(granted(read(bob)));
    wait_until_gone(timeout(alice));
    EXPECT_EQ(release_read(alice), gone);
    EXPECT_EQ(fields(), bob + "=1 mode=read");
    expect_long_lease(name);
}

/// Its client may not know: the answer to the change of modes was lost.
TEST_F(read_scripts, an_owner_releases_what_it_has_after_a_change_of_modes) {
    ASSERT_TRUE(granted(read(alice)));
    ASSERT_TRUE(granted(write(alice)));
    EXPECT_EQ(release_any(alice), released);
    EXPECT_EQ(text({"KEYS", "*"}), token_counter());

    ASSERT_TRUE(granted(write(alice)));
    ASSERT_TRUE(granted(read(alice)));
    EXPECT_EQ(release_any(alice), released);
    EXPECT_EQ(text({"KEYS", "*"}), token_counter());
}

TEST_F(read_scripts, a_lingering_reader_is_nobodys_and_keeps_writers_out) {
    const auto token = token_of(read(alice));
    EXPECT_EQ(release_read(alice, 5000), released);
    EXPECT_EQ(fields(), alice + "=1 mode=read");
    EXPECT_EQ(text({"HGET", holds, alice}), text_of(token) + " 1 " + since + " lingering");
    expect_remaining(name, 2000, 5000);
    expect_remaining(timeout(alice), 2000, 5000);
    EXPECT_TRUE(busy(read(alice)));
    EXPECT_EQ(renew_read(alice), "0");
    EXPECT_EQ(release_read(alice), gone);
    EXPECT_EQ(release_read(alice, 5000), released);
    EXPECT_TRUE(busy(write(bob)));
    EXPECT_TRUE(busy(write(alice)));
    EXPECT_TRUE(granted(read(bob)));
    expect_remaining(timeout(alice), 1, 5000);
}

TEST_F(read_scripts, a_linger_may_be_longer_than_the_lease) {
    ASSERT_TRUE(granted(read(alice, {.ttl = 1000})));
    EXPECT_EQ(release_read(alice, long_ttl), released);
    expect_long_lease(name);
    expect_long_lease(timeout(alice));
    expect_long_lease(holds);
}

TEST_F(read_scripts, a_linger_does_not_cut_the_other_readers_short) {
    ASSERT_TRUE(granted(read(alice)));
    ASSERT_TRUE(granted(read(bob)));
    EXPECT_EQ(release_read(alice, short_ttl), released);
    expect_long_lease(name);
    wait_until_gone(timeout(alice));
    EXPECT_TRUE(granted(write(bob)));
}

TEST_F(read_scripts, a_linger_is_marked_even_when_the_hold_was_forgotten) {
    ASSERT_TRUE(granted(read(alice)));
    redis({"DEL", holds});
    EXPECT_EQ(release_read(alice, 5000), released);
    EXPECT_EQ(renew_read(alice), "0");
    EXPECT_EQ(release_read(alice), gone);
    expect_remaining(holds, 2000, 5000);
}

TEST_F(read_scripts, a_renewal_extends_and_never_shortens) {
    ASSERT_TRUE(granted(read(alice, {.ttl = 1000})));
    EXPECT_EQ(renew_read(alice), "1");
    expect_long_lease(name);
    expect_long_lease(timeout(alice));
    expect_long_lease(holds);
    EXPECT_EQ(renew_read(alice, 1000), "1");
    expect_long_lease(name);
    expect_long_lease(timeout(alice));
}

TEST_F(read_scripts, a_renewal_keeps_no_other_reader_alive) {
    ASSERT_TRUE(granted(read(alice, {.ttl = 1000})));
    ASSERT_TRUE(granted(read(bob, {.ttl = 1000})));
    EXPECT_EQ(renew_read(bob), "1");
    expect_remaining(timeout(alice), 0, 1000);
}

TEST_F(read_scripts, a_renewal_creates_nothing) {
    EXPECT_EQ(renew_read(alice), "0");
    EXPECT_EQ(number({"DBSIZE"}), 0);
    ASSERT_TRUE(granted(read(alice)));
    redis({"DEL", timeout(alice)});
    EXPECT_EQ(renew_read(alice), "0");
    EXPECT_EQ(number({"EXISTS", timeout(alice)}), 0);
    EXPECT_EQ(renew_read(bob), "0");
    EXPECT_EQ(number({"EXISTS", timeout(bob)}), 0);
}

TEST_F(read_scripts, a_revoked_reader_hears_why) {
    const auto record = alice + " 17 1700000000000 bob stuck";
    redis({"SET", revocation, record});
    EXPECT_EQ(renew_read(alice), record);
    EXPECT_EQ(renew_read(bob), "0");
}

TEST_F(read_scripts, an_owner_with_the_write_lock_is_renewed_when_it_thinks_it_reads) {
    ASSERT_TRUE(granted(write(alice, {.ttl = 1000})));
    EXPECT_EQ(renew_read(alice), "1");
    expect_long_lease(name);
    EXPECT_EQ(fields(), alice + ":write=1 mode=write");
}

TEST_F(read_scripts, trouble_with_one_of_a_batch_does_not_touch_the_others) {
    ASSERT_TRUE(granted(read(alice, {.ttl = 1000})));
    redis({"SET", "text", "x"});
    const auto ttl = text_of(long_ttl);
    const auto reply = run(scripts::read_renew(),
                           {"text", "t1", "h1", "r1", name, timeout(alice), holds, revocation, "none",
                            "t3", "text", "text"},
                           {alice, ttl, alice, ttl, alice, ttl});
    EXPECT_EQ(reply.as_text(), "0\n1\n0");
    expect_long_lease(timeout(alice));
}

/// Redisson appends the transaction's id to the name of the thread.
TEST_F(read_scripts, a_reader_in_a_transaction_of_redissons_counts) {
    const auto transaction = java + ":9d3c00ffee";
    redis({"HSET", name, "mode", "read", transaction, "1"});
    redis({"SET", timeout(transaction), "1", "PX", text_of(long_ttl)});
    redis({"PEXPIRE", name, text_of(long_ttl)});
    EXPECT_TRUE(busy(write(bob)));
    ASSERT_TRUE(granted(read(alice)));
    EXPECT_EQ(release_read(alice)[0], 1);
    EXPECT_EQ(fields(), transaction + "=1 mode=read");
    expect_long_lease(name);
}

}  // namespace
}  // namespace holdfast::engines::redis
