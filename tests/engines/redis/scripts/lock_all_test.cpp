#include "fixture.hpp"

namespace holdfast::engines::redis {
namespace {

class lock_all_script : public script_test {
protected:
    redis_reply acquire(const words& names, const std::string& owner, std::int64_t ttl = long_ttl) {
        words keys;
        words arguments{"0", since};
        for (const auto& name : names) {
            keys.insert(keys.end(), {name, holds_key(name), token_counter(), lock_turn(name)});
            arguments.insert(arguments.end(), {owner, text_of(ttl), "1", "0"});
        }
        return run(scripts::lock_acquire_all(), keys, arguments);
    }
    redis_reply acquire_alone(const std::string& name, const std::string& owner) {
        return run(scripts::lock_acquire(), {name, holds_key(name), token_counter(), lock_turn(name)},
                   {owner, text_of(long_ttl), "1", "0", since, "0"});
    }
};

TEST_F(lock_all_script, free_locks_are_written_as_one_alone_would_be) {
    ASSERT_TRUE(granted(acquire_alone("a", alice)));
    const auto numbers = numbers_in(acquire({"b", "c"}, alice));
    ASSERT_EQ(numbers.size(), 5U);
    EXPECT_EQ(numbers[0], 1);
    EXPECT_EQ(numbers[3], numbers[1] + 1);
    for (const auto* name : {"b", "c"}) {
        EXPECT_EQ(text({"HGETALL", name}), text({"HGETALL", "a"}));
        expect_long_lease(name);
        expect_lives_as_long(holds_key(name), name);
    }
    EXPECT_EQ(text({"HGET", holds_key("c"), alice}), text_of(numbers[3]) + " 1 " + since);
}

TEST_F(lock_all_script, a_busy_one_is_told_and_nothing_is_changed) {
    redis({"HSET", "b", java, "1"});
    redis({"PEXPIRE", "b", "5000"});
    const auto before = contents();
    const auto numbers = numbers_in(acquire({"a", "b", "c"}, alice));
    ASSERT_EQ(numbers.size(), 3U);
    EXPECT_EQ(numbers[0], 0);
    EXPECT_EQ(numbers[1], 2);
    EXPECT_GT(numbers[2], 4000);
    EXPECT_EQ(text({"KEYS", "*"}), "b");
    EXPECT_EQ(contents().size(), before.size());
}

TEST_F(lock_all_script, sent_again_it_answers_the_same) {
    const auto first = numbers_in(acquire({"a", "b"}, alice));
    EXPECT_EQ(numbers_in(acquire({"a", "b"}, alice)), first);
    EXPECT_EQ(text({"HGET", "a", alice}), "1");
}

TEST_F(lock_all_script, sent_again_after_one_was_lost_it_is_busy_and_keeps_the_rest) {
    ASSERT_EQ(numbers_in(acquire({"a", "b"}, alice)).front(), 1);
    redis({"DEL", "b", holds_key("b")});
    ASSERT_TRUE(granted(acquire_alone("b", bob)));
    EXPECT_EQ(numbers_in(acquire({"a", "b"}, alice)).at(1), 2);
    EXPECT_EQ(text({"HGETALL", "a"}), alice + "\n1");
}

TEST_F(lock_all_script, a_name_of_another_kind_is_refused_and_nothing_is_changed) {
    redis({"SET", "b", "1"});
    EXPECT_TRUE(wrong_kind(acquire({"a", "b"}, alice)));
    redis({"DEL", "b"});
    redis({"HSET", "b", "mode", "read", java, "1"});
    EXPECT_TRUE(wrong_kind(acquire({"a", "b"}, alice)));
    EXPECT_EQ(number({"EXISTS", "a"}), 0);
}

TEST_F(lock_all_script, without_memory_nothing_is_changed) {
    redis({"SET", token_counter(), "7"});
    const auto before = contents();
    run_out_of_memory();
    EXPECT_TRUE(acquire({"a", "b"}, alice).is_error());
    redis({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_EQ(contents(), before);
}

}  // namespace
}  // namespace holdfast::engines::redis
