#include "fixture.hpp"

namespace holdfast::engines::redis {
namespace {

const std::string name = "stock";
const std::string holds = holds_key(name);
const std::string ids(16, 'i');
const std::string other_ids(16, 'o');

/// A server that has no memory left refuses new holds, and lets those who have one keep it and give it
/// back.
class scripts_without_memory : public script_test {
protected:
    [[nodiscard]] static words terms_of(const std::string& owner) {
        return {owner, text_of(long_ttl), "1", "0", since};
    }
    [[nodiscard]] static words with(words some, const words& more) {
        some.insert(some.end(), more.begin(), more.end());
        return some;
    }
    [[nodiscard]] static std::string timeout(const std::string& owner) {
        return reader_timeout(name, owner) + ":1";
    }

    redis_reply lock(const std::string& owner) {
        return run(scripts::lock_acquire(), {name, holds, token_counter(), lock_turn(name)},
                   terms_of(owner));
    }
    redis_reply fair(const std::string& owner) {
        return run(scripts::fair_acquire(),
                   {name, fair_queue(name), fair_timeouts(name), holds, token_counter(),
                    fair_wishes(name), lock_channel(name)},
                   with(terms_of(owner), {"20000", "1", "0", "4711", "publish"}));
    }
    redis_reply read(const std::string& owner) {
        return run(scripts::read_acquire(),
                   {name, holds, token_counter(), read_write_channel(name), timeout(owner)},
                   with(terms_of(owner), {"publish"}));
    }
    redis_reply write(const std::string& owner) {
        return run(scripts::write_acquire(), {name, holds, token_counter(), timeout(owner)},
                   with(terms_of(owner), {"{" + name + "}"}));
    }
    redis_reply permit(const std::string& owner, const std::string& which) {
        return run(scripts::permit_acquire(),
                   {name, semaphore_timeouts(name), semaphore_channel(name), holds, token_counter()},
                   {owner, text_of(long_ttl), "1", "3", "1", "0", since, "publish", which});
    }
    numbers release_permit(std::int64_t linger) {
        return numbers_in(run(scripts::permit_release(),
                              {name, semaphore_timeouts(name), semaphore_channel(name), holds},
                              {alice, "publish", text_of(linger), ids}));
    }
    numbers release_lock(std::int64_t linger) {
        return numbers_in(run(scripts::lock_release(), lock_release_keys(name),
                              lock_release_arguments(alice, linger)));
    }
    numbers release_read(std::int64_t linger) {
        return numbers_in(run(scripts::read_write_release(),
                              {name, holds, read_write_channel(name), timeout(alice)},
                              {alice, "publish", text_of(linger), "{" + name + "}"}));
    }
    numbers release_write(std::int64_t linger) { return release_read(linger); }
    void make_leases_short() {
        for (const auto& key : {name, holds, timeout(alice)}) {
            redis({"PEXPIRE", key, "5000"});
        }
    }
    void expect_refused(const redis_reply& reply) {
        EXPECT_TRUE(reply.is_error()) << reply.as_text();
        EXPECT_NE(reply.text.find("OOM "), std::string::npos) << reply.text;
    }
};

TEST_F(scripts_without_memory, an_acquisition_is_refused_and_changes_nothing) {
    run_out_of_memory();
    expect_refused(lock(alice));
    expect_refused(fair(alice));
    expect_refused(read(alice));
    expect_refused(write(alice));
    expect_refused(permit(alice, ids));
    EXPECT_EQ(number({"DBSIZE"}), 0);
}

TEST_F(scripts_without_memory, a_second_reader_and_a_second_permit_are_refused) {
    ASSERT_TRUE(granted(read(alice)));
    run_out_of_memory();
    auto before = contents();
    expect_refused(read(bob));
    EXPECT_EQ(contents(), before);
    SetUp();
    ASSERT_TRUE(granted(permit(alice, ids)));
    run_out_of_memory();
    before = contents();
    expect_refused(permit(bob, other_ids));
    EXPECT_EQ(contents(), before);
}

TEST_F(scripts_without_memory, a_place_in_the_line_is_refused) {
    ASSERT_TRUE(granted(fair(alice)));
    run_out_of_memory();
    const auto before = contents();
    expect_refused(fair(bob));
    EXPECT_EQ(contents(), before);
}

TEST_F(scripts_without_memory, an_upgrade_is_refused_and_the_share_stays) {
    ASSERT_TRUE(granted(read(alice)));
    run_out_of_memory();
    const auto before = contents();
    expect_refused(write(alice));
    EXPECT_EQ(contents(), before);
}

TEST_F(scripts_without_memory, dead_readers_do_not_open_a_way_around_the_refusal) {
    ASSERT_TRUE(granted(read(alice)));
    redis({"DEL", timeout(alice)});
    run_out_of_memory();
    const auto before = contents();
    expect_refused(write(bob));
    EXPECT_EQ(contents(), before);
}

TEST_F(scripts_without_memory, an_acquisition_sent_again_is_granted) {
    auto first = lock(alice);
    run_out_of_memory();
    EXPECT_EQ(numbers_in(lock(alice)), numbers_in(first));
    EXPECT_EQ(numbers_in(fair(alice)), numbers_in(first));
    SetUp();
    first = read(alice);
    run_out_of_memory();
    EXPECT_EQ(numbers_in(read(alice)), numbers_in(first));
    SetUp();
    first = write(alice);
    run_out_of_memory();
    EXPECT_EQ(numbers_in(write(alice)), numbers_in(first));
    SetUp();
    first = permit(alice, ids);
    redis({"ZADD", semaphore_timeouts(name), text_of(now() + 5000), ids});
    run_out_of_memory();
    EXPECT_EQ(numbers_in(permit(alice, ids)), numbers_in(first));
}

TEST_F(scripts_without_memory, a_downgrade_works) {
    const auto first = write(alice);
    run_out_of_memory();
    EXPECT_EQ(numbers_in(read(alice)), numbers_in(first));
    EXPECT_EQ(text({"HGET", name, "mode"}), "read");
    expect_long_lease(timeout(alice));
}

TEST_F(scripts_without_memory, a_release_works) {
    ASSERT_TRUE(granted(lock(alice)));
    run_out_of_memory();
    EXPECT_EQ(release_lock(0), released);
    SetUp();
    ASSERT_TRUE(granted(read(alice)));
    run_out_of_memory();
    EXPECT_EQ(release_read(0), released);
    SetUp();
    ASSERT_TRUE(granted(write(alice)));
    run_out_of_memory();
    EXPECT_EQ(release_write(0), released);
    SetUp();
    ASSERT_TRUE(granted(permit(alice, ids)));
    run_out_of_memory();
    EXPECT_EQ(release_permit(0), released);
    EXPECT_EQ(text({"GET", name}), "3");
}

TEST_F(scripts_without_memory, a_linger_works) {
    ASSERT_TRUE(granted(lock(alice)));
    run_out_of_memory();
    EXPECT_EQ(release_lock(5000), released);
    EXPECT_EQ(text({"HKEYS", name}), alice + ":lingering");
    SetUp();
    ASSERT_TRUE(granted(read(alice)));
    run_out_of_memory();
    EXPECT_EQ(release_read(5000), released);
    SetUp();
    ASSERT_TRUE(granted(write(alice)));
    run_out_of_memory();
    EXPECT_EQ(release_write(5000), released);
    SetUp();
    ASSERT_TRUE(granted(permit(alice, ids)));
    run_out_of_memory();
    EXPECT_EQ(release_permit(5000), released);
}

TEST_F(scripts_without_memory, a_fair_release_and_leaving_the_line_work) {
    const words keys{name,           fair_queue(name),   fair_timeouts(name),
                     holds,          lock_channel(name), fair_wishes(name),
                     token_counter()};
    auto carols = listener(fair_channel(name, carol));
    ASSERT_TRUE(granted(fair(alice)));
    ASSERT_TRUE(busy(fair(bob)));
    ASSERT_TRUE(busy(fair(carol)));
    run_out_of_memory();
    EXPECT_EQ(numbers_in(run(scripts::fair_release(), keys, {bob, "publish", "0", "20000", "0"})),
              gone);
    EXPECT_EQ(text({"LRANGE", fair_queue(name), "0", "-1"}), carol);
    EXPECT_EQ(numbers_in(run(scripts::fair_release(), keys, {alice, "publish", "0", "20000", "0"})),
              released);
    EXPECT_EQ(text({"HKEYS", name}), carol);
}

TEST_F(scripts_without_memory, a_renewal_works) {
    ASSERT_TRUE(granted(lock(alice)));
    make_leases_short();
    run_out_of_memory();
    EXPECT_EQ(
        run(scripts::lock_renew(), {name, holds, "r"}, {alice, alice, text_of(long_ttl)}).as_text(),
        "1");
    expect_long_lease(name);
    SetUp();
    ASSERT_TRUE(granted(read(alice)));
    make_leases_short();
    run_out_of_memory();
    EXPECT_EQ(run(scripts::read_renew(), {name, timeout(alice), holds, "r"}, {alice, text_of(long_ttl)})
                  .as_text(),
              "1");
    expect_long_lease(timeout(alice));
    SetUp();
    ASSERT_TRUE(granted(permit(alice, ids)));
    redis({"ZADD", semaphore_timeouts(name), text_of(now() + 5000), ids});
    run_out_of_memory();
    EXPECT_EQ(run(scripts::permit_renew(), {semaphore_timeouts(name), holds, "r"},
                  {alice, text_of(long_ttl), ids})
                  .as_text(),
              "1");
    EXPECT_GT(std::stoll(text({"ZSCORE", semaphore_timeouts(name), ids})), now() + long_ttl / 2);
}

TEST_F(scripts_without_memory, a_revocation_works) {
    const auto token = text_of(token_of(lock(alice)));
    run_out_of_memory();
    const auto reply =
        run(scripts::revoke(),
            {name, holds, "record", lock_channel(name), read_write_channel(name),
             semaphore_channel(name), semaphore_timeouts(name), fair_queue(name), timeout(alice)},
            {alice, token, "words", "1000", "publish", "client", lock_channel(name), "{" + name + "}"});
    EXPECT_EQ(numbers_in(reply), numbers{1});
    EXPECT_EQ(number({"EXISTS", name}), 0);
}

TEST_F(scripts_without_memory, the_last_count_down_of_a_latch_works) {
    const words keys{name, latch_channel(name), "request", latch_mark(name), holds};
    ASSERT_EQ(numbers_in(run(scripts::latch(), keys, {"set", "2", "0", "publish", "0", "1000", "7"})),
              (numbers{2, 1, 1, 0, 7}));
    run_out_of_memory();
    expect_refused(
        run(scripts::latch(), keys, {"count_down", "1", "0", "publish", "1000", "1000", "7"}));
    EXPECT_EQ(text({"GET", name}), "2");
    EXPECT_EQ(numbers_in(run(scripts::latch(), keys,
                             {"count_down", "2", "0", "publish", "1000", "1000", "7"})),
              (numbers{0, 1, 1, 1, 7}));
}

}  // namespace
}  // namespace holdfast::engines::redis
