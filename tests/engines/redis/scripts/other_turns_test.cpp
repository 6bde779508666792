#include "fixture.hpp"

/// The turns of Java's waiters at read/write locks and semaphores.
namespace holdfast::engines::redis {
namespace {

class turns_of_others : public script_test {
protected:
    /// `[ms left, number]` of the turn in the way; empty if there is none.
    [[nodiscard]] static numbers turn_in(const redis_reply& reply) {
        const auto all = numbers_in(reply);
        return all.size() == 3 && all[0] == 0 ? numbers{all[1], all[2]} : numbers{};
    }
    /// Without the length of a turn that is longer than usual.
    [[nodiscard]] std::string state(const std::string& name) {
        const auto all = text({"GET", lock_turn(name)});
        return all.substr(0, all.find(' '));
    }
    /// As if the time of the turn had passed, and nobody had come.
    void let_it_pass(const std::string& name) { redis({"PEXPIRE", lock_turn(name), "1000"}); }

    std::string over_ = "0";
};

class read_write_turns : public turns_of_others {
protected:
    inline static const std::string name = "stock";
    inline static const std::string channel = read_write_channel(name);

    [[nodiscard]] static std::string timeout(const std::string& owner) {
        return reader_timeout(name, owner) + ":1";
    }
    redis_reply write(const std::string& owner, const std::string& tokens = "1") {
        return run(scripts::write_acquire(),
                   {name, holds_key(name), token_counter(), timeout(owner), lock_turn(name)},
                   {owner, text_of(long_ttl), tokens, "0", since, "{stock}", "0", "0", over_});
    }
    redis_reply read(const std::string& owner) {
        return run(scripts::read_acquire(),
                   {name, holds_key(name), token_counter(), channel, timeout(owner), lock_turn(name)},
                   {owner, text_of(long_ttl), "1", "0", since, "publish", "0", "0", over_});
    }
    void release(const std::string& owner) {
        run(scripts::read_write_release(),
            {name, holds_key(name), channel, timeout(owner), lock_turn(name)},
            {owner, "publish", "0", "{stock}", "00", listeners_channel(name)});
    }
    void java_writes() {
        redis({"HSET", name, "mode", "write", java + ":write", "1"});
        redis({"PEXPIRE", name, "30000"});
    }
};

TEST_F(read_write_turns, a_free_lock_is_javas_for_a_while) {
    auto javas = listener(channel);
    ASSERT_TRUE(granted(write(alice)));
    release(alice);
    EXPECT_EQ(message(javas), "001");
    for (const auto& refused : {turn_in(write(alice)), turn_in(read(bob))}) {
        ASSERT_EQ(refused.size(), 2U);
        EXPECT_GT(refused[0], 0);
        EXPECT_LE(refused[0], 200);
        EXPECT_EQ(refused[1], 3);
    }
    EXPECT_EQ(number({"EXISTS", name}), 0);
}

/// Redisson lets one message 1 wake those who sleep; a thread that was refused and is about to sleep
/// would not hear of it before the end of the lease that was in its way.
TEST_F(read_write_turns, java_that_is_about_to_sleep_is_told_of_a_writers_release_too) {
    auto javas = listener(channel);
    ASSERT_TRUE(granted(write(alice)));
    release(alice);
    EXPECT_EQ(message(javas), "001");
    EXPECT_EQ(message(javas), "000");
}

TEST_F(read_write_turns, the_last_reader_leaves_it_to_java_too) {
    auto javas = listener(channel);
    ASSERT_TRUE(granted(read(alice)));
    ASSERT_TRUE(granted(read(bob)));
    release(alice);
    EXPECT_EQ(state(name), "") << "bob still reads";
    EXPECT_EQ(message(javas), "002");
    release(bob);
    EXPECT_EQ(message(javas), "000");
    EXPECT_EQ(turn_in(write(carol)).size(), 2U);
}

TEST_F(read_write_turns, nobody_waits_for_java_where_only_ours_listen) {
    auto ours = listener(channel);
    auto counted = listener(listeners_channel(name));
    ASSERT_TRUE(granted(write(alice)));
    release(alice);
    EXPECT_EQ(state(name), "");
    EXPECT_TRUE(granted(write(bob)));
}

TEST_F(read_write_turns, it_is_over_for_one_who_heard_java_release_the_lock) {
    auto javas = listener(channel);
    ASSERT_TRUE(granted(write(alice)));
    release(alice);
    over_ = "4";
    EXPECT_TRUE(busy(write(bob))) << "that was another turn";
    over_ = "3";
    EXPECT_EQ(numbers_in(write(bob, "128")).at(2), 1) << "a process does not keep it among its threads";
    EXPECT_EQ(state(name), "seen");
}

TEST_F(read_write_turns, it_is_over_when_somebody_sees_that_java_has_the_lock) {
    auto javas = listener(channel);
    ASSERT_TRUE(granted(write(alice)));
    release(alice);
    java_writes();
    EXPECT_TRUE(busy(write(bob)));
    EXPECT_EQ(state(name), "seen");
    redis({"DEL", name});
    EXPECT_TRUE(granted(write(bob)));
}

TEST_F(read_write_turns, if_nobody_came_there_is_no_other_for_a_second) {
    auto javas = listener(channel);
    ASSERT_TRUE(granted(write(alice)));
    release(alice);
    let_it_pass(name);
    ASSERT_TRUE(granted(write(bob)));
    EXPECT_EQ(state(name), "missed");
    release(bob);
    EXPECT_TRUE(granted(write(carol)));
}

class permit_turns : public turns_of_others {
protected:
    inline static const std::string name = "slots";
    inline static const std::string channel = semaphore_channel(name);

    redis_reply acquire(const std::string& owner, std::uint32_t permits = 1) {
        return run(scripts::permit_acquire(),
                   {name, semaphore_timeouts(name), channel, holds_key(name), token_counter(),
                    lock_turn(name)},
                   {owner, text_of(long_ttl), text_of(permits), "2", "1", "0", since, "publish",
                    std::string(16 * permits, owner[0]), over_});
    }
    void release(const std::string& owner) {
        run(scripts::permit_release(),
            {name, semaphore_timeouts(name), channel, holds_key(name), lock_turn(name)},
            {owner, "publish", "0", std::string(16, owner[0]), "00", listeners_channel(name)});
    }
};

TEST_F(permit_turns, a_free_permit_is_javas_for_a_while) {
    auto javas = listener(channel);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(granted(acquire(bob)));
    release(alice);
    EXPECT_EQ(message(javas), "001");
    const auto refused = turn_in(acquire(alice));
    ASSERT_EQ(refused.size(), 2U);
    EXPECT_EQ(refused[1], 3);
    EXPECT_EQ(text({"GET", name}), "1");
}

TEST_F(permit_turns, it_is_over_when_java_has_taken_it) {
    auto javas = listener(channel);
    ASSERT_TRUE(granted(acquire(alice)));
    ASSERT_TRUE(granted(acquire(bob)));
    release(alice);
    EXPECT_TRUE(busy(acquire(carol, 2))) << "too many: that says nothing";
    EXPECT_EQ(state(name), "3");
    redis({"DECRBY", name, "1"});
    EXPECT_TRUE(busy(acquire(carol)));
    EXPECT_EQ(state(name), "seen");
    redis({"INCRBY", name, "1"});
    EXPECT_TRUE(granted(acquire(carol)));
}

TEST_F(permit_turns, if_nobody_came_there_is_no_other_for_a_second) {
    auto javas = listener(channel);
    ASSERT_TRUE(granted(acquire(alice)));
    release(alice);
    let_it_pass(name);
    ASSERT_TRUE(granted(acquire(bob)));
    EXPECT_EQ(state(name), "missed");
    release(bob);
    EXPECT_TRUE(granted(acquire(carol)));
}

TEST_F(permit_turns, one_from_before_the_servers_clock_was_set_back_counts_no_more) {
    redis({"SET", lock_turn(name), "3", "PX", "600000"});
    EXPECT_TRUE(granted(acquire(alice)));
    EXPECT_EQ(state(name), "");
}

TEST_F(permit_turns, nobody_waits_for_java_where_only_ours_listen) {
    auto ours = listener(channel);
    auto counted = listener(listeners_channel(name));
    ASSERT_TRUE(granted(acquire(alice)));
    release(alice);
    EXPECT_TRUE(granted(acquire(bob)));
    EXPECT_EQ(state(name), "");
}

}  // namespace
}  // namespace holdfast::engines::redis
