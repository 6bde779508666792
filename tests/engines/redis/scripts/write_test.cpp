#include "read_write_fixture.hpp"

namespace holdfast::engines::redis {
namespace {

class write_scripts : public read_write_scripts {};

TEST_F(write_scripts, a_writer_is_written_as_redisson_writes_it) {
    const auto token = token_of(write(alice, {.count = 2}));
    EXPECT_EQ(fields(), alice + ":write=1 mode=write");
    expect_long_lease(name);
    EXPECT_EQ(text({"HGETALL", holds}), alice + "\n" + text_of(token) + " 2 " + since);
    EXPECT_EQ(number({"EXISTS", timeout(alice)}), 0);
}

TEST_F(write_scripts, a_writer_keeps_writers_out) {
    ASSERT_TRUE(granted(write(alice)));
    const auto retry = retry_of(write(bob));
    EXPECT_GT(retry, long_ttl / 2);
    EXPECT_LE(retry, long_ttl);
}

TEST_F(write_scripts, an_acquisition_sent_again_is_granted_with_the_same_tokens_and_never_shortens) {
    const auto first = write(alice, {.ttl = 1000});
    EXPECT_EQ(numbers_in(write(alice)), numbers_in(first));
    expect_long_lease(name);
    EXPECT_EQ(numbers_in(write(alice, {.ttl = 1000})), numbers_in(first));
    expect_long_lease(name);
    expect_long_lease(holds);
    EXPECT_EQ(fields(), alice + ":write=1 mode=write");
}

TEST_F(write_scripts, a_reader_keeps_writers_out_until_its_lease_ends) {
    ASSERT_TRUE(granted(read(alice)));
    EXPECT_TRUE(busy(write(bob)));
    redis({"PEXPIRE", timeout(alice), "1"});
    wait_until("bob to be let in", [&] { return write(bob).items.size() == 3; });
    EXPECT_EQ(fields(), bob + ":write=1 mode=write");
    EXPECT_EQ(text({"HKEYS", holds}), bob);
}

TEST_F(write_scripts, busy_lasts_until_the_first_readers_lease_ends) {
    ASSERT_TRUE(granted(read(alice)));
    ASSERT_TRUE(granted(read(bob, {.ttl = 10'000})));
    const auto retry = retry_of(write(carol));
    EXPECT_GT(retry, 5000);
    EXPECT_LE(retry, 10'000);
}

TEST_F(write_scripts, a_readers_own_lease_is_not_what_it_waits_for) {
    ASSERT_TRUE(granted(read(alice, {.ttl = 10'000})));
    ASSERT_TRUE(granted(read(bob)));
    EXPECT_GT(retry_of(write(alice)), long_ttl / 2);
    EXPECT_EQ(fields(), alice + "=1 " + bob + "=1 mode=read");
}

TEST_F(write_scripts, dead_readers_are_dropped_while_others_live) {
    ASSERT_TRUE(granted(read(alice)));
    ASSERT_TRUE(granted(read(bob)));
    redis({"DEL", timeout(alice)});
    EXPECT_TRUE(busy(write(carol)));
    EXPECT_EQ(fields(), bob + "=1 mode=read");
    EXPECT_EQ(text({"HKEYS", holds}), bob);
}

TEST_F(write_scripts, with_only_dead_readers_the_lock_is_free) {
    ASSERT_TRUE(granted(read(alice)));
    ASSERT_TRUE(granted(read(bob)));
    redis({"DEL", timeout(alice), timeout(bob)});
    EXPECT_TRUE(granted(write(carol, {.ttl = 10'000})));
    EXPECT_EQ(fields(), carol + ":write=1 mode=write");
    EXPECT_EQ(text({"HKEYS", holds}), carol);
    expect_remaining(name, 5000, 10'000);
}

TEST_F(write_scripts, a_java_reader_lives_as_long_as_any_of_its_holds) {
    java_reads(3, 30'000);
    redis({"DEL", timeout(java, 1), timeout(java, 2)});
    EXPECT_TRUE(busy(write(alice)));
    redis({"DEL", timeout(java, 3)});
    EXPECT_TRUE(granted(write(alice)));
}

TEST_F(write_scripts, a_reader_whose_key_has_no_end_is_alive) {
    java_reads(1, 30'000);
    redis({"PERSIST", timeout(java)});
    EXPECT_EQ(retry_of(write(alice)), 0);
}

TEST_F(write_scripts, the_only_reader_is_upgraded_with_new_tokens) {
    const auto as_reader = token_of(read(alice));
    const auto as_writer = token_of(write(alice, {.count = 2}));
    EXPECT_GT(as_writer, as_reader);
    EXPECT_EQ(fields(), alice + ":write=1 mode=write");
    EXPECT_EQ(number({"EXISTS", timeout(alice)}), 0);
    EXPECT_EQ(text({"HGETALL", holds}), alice + "\n" + text_of(as_writer) + " 2 " + since);
}

TEST_F(write_scripts, an_upgrade_keeps_the_start_and_does_not_shorten_the_lease) {
    ASSERT_TRUE(granted(read(alice)));
    redis({"HSET", holds, alice, "5 1 1600000000000"});
    const auto token = token_of(write(alice, {.ttl = 1000}));
    EXPECT_EQ(text({"HGET", holds, alice}), text_of(token) + " 1 1600000000000");
    expect_long_lease(name);
    expect_long_lease(holds);
}

TEST_F(write_scripts, an_upgrade_takes_no_notice_of_dead_readers) {
    ASSERT_TRUE(granted(read(alice)));
    ASSERT_TRUE(granted(read(bob)));
    redis({"DEL", timeout(bob)});
    EXPECT_TRUE(granted(write(alice)));
    EXPECT_EQ(fields(), alice + ":write=1 mode=write");
}

TEST_F(write_scripts, one_of_two_readers_is_not_upgraded_and_keeps_its_share) {
    ASSERT_TRUE(granted(read(alice)));
    ASSERT_TRUE(granted(read(bob)));
    EXPECT_TRUE(busy(write(alice)));
    EXPECT_EQ(renew_read(alice), "1");
    release_read(bob);
    EXPECT_TRUE(granted(write(alice)));
}

TEST_F(write_scripts, a_release_deletes_everything_and_tells_those_who_wait) {
    auto waiter = listener(channel);
    ASSERT_TRUE(granted(write(alice)));
    EXPECT_EQ(release_write(alice), (numbers{1, 1}));
    EXPECT_EQ(message(waiter), "1");
    EXPECT_EQ(text({"KEYS", "*"}), token_counter());
}

TEST_F(write_scripts, only_the_owner_releases_and_only_once) {
    ASSERT_TRUE(granted(write(alice)));
    EXPECT_EQ(release_write(bob), gone);
    EXPECT_EQ(fields(), alice + ":write=1 mode=write");
    EXPECT_EQ(release_write(alice), released);
    EXPECT_EQ(release_write(alice), gone);
}

TEST_F(write_scripts, reads_within_a_java_writers_lock_live_on) {
    auto waiter = listener(channel);
    redis({"HSET", name, "mode", "write", java + ":write", "1", java, "1"});
    redis({"SET", timeout(java), "1", "PX", "30000"});
    redis({"PEXPIRE", name, "30000"});
    redis({"HSET", holds, java, "5 1 " + since, alice, "6 1 " + since});
    EXPECT_EQ(release_write(java), (numbers{1, 1}));
    EXPECT_EQ(fields(), java + "=1 mode=read");
    EXPECT_EQ(text({"HKEYS", holds}), alice);
    EXPECT_EQ(message(waiter), "1");
}

TEST_F(write_scripts, a_lingering_writer_is_nobodys_and_keeps_everybody_out) {
    const auto token = token_of(write(alice));
    EXPECT_EQ(release_write(alice, 5000), released);
    EXPECT_EQ(fields(), alice + ":lingering=1 mode=write");
    EXPECT_EQ(text({"HGET", holds, alice}), text_of(token) + " 1 " + since + " lingering");
    expect_remaining(name, 2000, 5000);
    EXPECT_TRUE(busy(write(alice)));
    EXPECT_TRUE(busy(read(alice)));
    EXPECT_TRUE(busy(read(bob)));
    EXPECT_EQ(renew_write(alice), "0");
    EXPECT_EQ(release_write(alice), gone);
    EXPECT_EQ(release_write(alice, 5000), released);
}

TEST_F(write_scripts, a_renewal_extends_and_never_shortens) {
    ASSERT_TRUE(granted(write(alice, {.ttl = 1000})));
    EXPECT_EQ(renew_write(alice), "1");
    expect_long_lease(name);
    EXPECT_EQ(renew_write(alice, 1000), "1");
    expect_long_lease(name);
    EXPECT_EQ(renew_write(bob), "0");
}

TEST_F(write_scripts, names_with_braces_keep_their_readers_together) {
    const std::string braced = "{shop}:stock";
    const auto readers_key = reader_timeout(braced, alice) + ":1";
    ASSERT_TRUE(granted(
        run(scripts::read_acquire(),
            {braced, holds_key(braced), token_counter(), read_write_channel(braced), readers_key},
            {alice, text_of(long_ttl), "1", "0", since, "publish"})));
    const words keys{braced, holds_key(braced), token_counter(), reader_timeout(braced, bob) + ":1"};
    const words arguments{bob, text_of(long_ttl), "1", "0", since, braced};
    EXPECT_TRUE(busy(run(scripts::write_acquire(), keys, arguments)));
    redis({"DEL", readers_key});
    EXPECT_TRUE(granted(run(scripts::write_acquire(), keys, arguments)));
}

/// Whatever it has in it: only a lock's own two modes make it one.
TEST_F(write_scripts, a_hash_of_somebody_else_with_a_mode_is_not_taken_for_a_lock) {
    for (const std::string mode : {"precious", "", "0644", "Read", "WRITE", "readwrite"}) {
        for (const words& more : {words{}, {"size", "5"}, {alice, "1"}, {alice + ":write", "1"}}) {
            redis({"FLUSHALL"});
            words file{"HSET", name, "mode", mode};
            file.insert(file.end(), more.begin(), more.end());
            redis(file);
            const auto before = contents();
            EXPECT_TRUE(wrong_kind(write(alice))) << mode;
            EXPECT_TRUE(wrong_kind(read(alice))) << mode;
            EXPECT_EQ(contents(), before) << mode;
        }
    }
}

TEST_F(write_scripts, a_hash_of_somebody_else_that_happens_to_be_in_a_locks_mode_is_not_touched) {
    for (const words& more : {words{"size", "5"}, {"path", "/etc/stock"}, {alice, "many"}}) {
        redis({"FLUSHALL"});
        redis({"HSET", name, "mode", "read", more[0], more[1]});
        const auto before = contents();
        EXPECT_TRUE(wrong_kind(write(alice))) << more[0];
        EXPECT_TRUE(wrong_kind(read(bob))) << more[0];
        EXPECT_EQ(contents(), before) << more[0];
    }
}

}  // namespace
}  // namespace holdfast::engines::redis
