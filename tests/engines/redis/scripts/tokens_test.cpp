#include "fixture.hpp"

namespace holdfast::engines::redis {
namespace {

class token_scripts : public script_test {
protected:
    std::int64_t take(std::int64_t count = 1, std::int64_t floor = 0) {
        const auto lock = "lock" + text_of(++locks_);
        return token_of(run(scripts::lock_acquire(),
                            {lock, holds_key(lock), token_counter(), lock_turn(lock)},
                            {alice, text_of(long_ttl), text_of(count), text_of(floor), since}));
    }
    std::int64_t now_in_microseconds() { return now() * 1000; }

private:
    int locks_{};
};

TEST_F(token_scripts, the_first_ones_are_the_servers_time) {
    const auto before = now_in_microseconds();
    const auto token = take(1, 1);
    EXPECT_GT(token, before);
    EXPECT_LE(token, now_in_microseconds() + 1000);
}

TEST_F(token_scripts, they_follow_one_another) {
    const auto first = take(1, 1);
    EXPECT_EQ(take(1, 1), first + 1);
    EXPECT_EQ(take(10, 1), first + 2);
    EXPECT_EQ(take(1, 1), first + 12);
    EXPECT_EQ(text({"GET", token_counter()}), text_of(first + 12));
}

TEST_F(token_scripts, they_rise_after_everything_was_flushed) {
    const auto floor = now_in_microseconds();
    const auto before = take(1000, floor);
    redis({"FLUSHALL"});
    EXPECT_GT(take(1, floor), before);
}

TEST_F(token_scripts, they_rise_after_the_counter_was_deleted) {
    const auto floor = now_in_microseconds();
    const auto before = take(1, floor);
    redis({"DEL", token_counter()});
    EXPECT_GT(take(1, floor), before);
}

TEST_F(token_scripts, they_rise_after_an_old_copy_of_the_counter_came_back) {
    const auto floor = now_in_microseconds();
    const auto before = take(1, floor);
    redis({"SET", token_counter(), "1000000"});
    EXPECT_GT(take(1, floor), before);
}

TEST_F(token_scripts, they_are_above_a_floor_that_is_ahead_of_the_clock) {
    const auto floor = now_in_microseconds() + 3'600'000'000;
    EXPECT_EQ(take(3, floor), floor + 1);
    EXPECT_EQ(take(1, floor), floor + 4);
    EXPECT_EQ(take(1, 0), floor + 5);
}

TEST_F(token_scripts, a_counter_ahead_of_the_clock_is_never_moved_back) {
    const auto ahead = now_in_microseconds() + 3'600'000'000;
    redis({"SET", token_counter(), text_of(ahead)});
    EXPECT_EQ(take(1, now_in_microseconds()), ahead + 1);
}

TEST_F(token_scripts, the_floor_itself_is_not_handed_out) {
    redis({"SET", token_counter(), "1700000000000000"});
    EXPECT_EQ(take(1, 1'700'000'000'000'000), 1'700'000'000'000'001);
}

TEST_F(token_scripts, a_counter_that_is_no_number_changes_nothing) {
    redis({"SET", token_counter(), "x"});
    const auto reply = run(scripts::lock_acquire(), {"lock", "holds", token_counter(), "turn"},
                           {alice, "1000", "1", "0", since});
    EXPECT_TRUE(reply.is_error());
    EXPECT_EQ(text({"KEYS", "*"}), token_counter());
}

}  // namespace
}  // namespace holdfast::engines::redis
