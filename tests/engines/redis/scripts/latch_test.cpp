#include "fixture.hpp"

namespace holdfast::engines::redis {
namespace {

const std::string name = "gate";
const std::string channel = latch_channel(name);

class latch_scripts : public script_test {
protected:
    numbers call(const std::string& what, std::int64_t count, const std::string& request,
                 std::int64_t lifetime = 0, std::int64_t remember = 10'000) {
        auto found = numbers_in(answer_to(what, count, request, lifetime, remember));
        found.resize(2);
        return found;
    }
    bool known() { return answer_to("read", 0, "reader").items.at(2).integer == 1; }
    redis_reply answer_to(const std::string& what, std::int64_t count, const std::string& request,
                          std::int64_t lifetime = 0, std::int64_t remember = 10'000) {
        return run(scripts::latch(),
                   {name, channel, latch_request_key(name, request), latch_mark(name), holds_key(name)},
                   {what, text_of(count), text_of(lifetime), "publish", text_of(remember),
                    text_of(long_ttl), line_});
    }
    /// One permit of three.
    redis_reply take_permit(const std::string& owner) {
        return run(scripts::permit_acquire(),
                   {name, semaphore_timeouts(name), semaphore_channel(name), holds_key(name),
                    token_counter(), lock_turn(name), latch_mark(name)},
                   {owner, text_of(long_ttl), "1", "3", "1", "0", since, "publish",
                    std::string(16, owner[0]), "0"});
    }
    numbers read() { return call("read", 0, "reader"); }
    /// Openings and line.
    numbers life() {
        const auto all = numbers_in(answer_to("read", 0, "reader"));
        return {all.at(3), all.at(4)};
    }

    std::string line_ = "7001";
};

TEST_F(latch_scripts, one_that_is_not_there_counts_zero) {
    EXPECT_EQ(read(), (numbers{0, 0}));
    EXPECT_EQ(call("count_down", 1, "r1"), (numbers{0, 0}));
    EXPECT_EQ(number({"DBSIZE"}), 0);
}

TEST_F(latch_scripts, one_of_ours_is_no_semaphore) {
    for (const std::int64_t lifetime : {std::int64_t{0}, long_ttl}) {
        redis({"FLUSHALL"});
        call("set", 3, "r1", lifetime);
        call("count_down", 1, "r2");
        const auto refused = take_permit(alice);
        EXPECT_TRUE(refused.text.starts_with("WRONGKIND")) << refused.as_text();
        EXPECT_EQ(text({"GET", name}), "2");
        EXPECT_GT(number({"PTTL", latch_mark(name)}), 0);
        EXPECT_EQ(call("count_down", 2, "r3"), (numbers{0, 1}));
        EXPECT_TRUE(granted(take_permit(alice))) << "it is open, and the name is free";
    }
}

TEST_F(latch_scripts, a_semaphore_of_ours_is_no_latch) {
    ASSERT_TRUE(granted(take_permit(alice)));
    for (const auto* what : {"read", "set", "count_down"}) {
        const auto refused = answer_to(what, 1, "r1");
        EXPECT_TRUE(refused.text.starts_with("WRONGKIND")) << what << ": " << refused.as_text();
    }
    EXPECT_EQ(text({"GET", name}), "2");
    redis({"DEL", name});
    EXPECT_EQ(call("set", 3, "r2"), (numbers{3, 1})) << "the counter was deleted";
    EXPECT_EQ(call("count_down", 1, "r3"), (numbers{2, 1}));
}

TEST_F(latch_scripts, it_is_set_once_as_redisson_writes_it) {
    auto waiter = listener(channel);
    EXPECT_EQ(call("set", 3, "r1"), (numbers{3, 1}));
    EXPECT_EQ(text({"GET", name}), "3");
    EXPECT_EQ(number({"PTTL", name}), -1);
    EXPECT_EQ(message(waiter), "1");
    EXPECT_EQ(call("set", 5, "r2"), (numbers{3, 0}));
    EXPECT_EQ(text({"GET", name}), "3");
}

TEST_F(latch_scripts, a_lifetime_is_kept_while_it_counts_down) {
    EXPECT_EQ(call("set", 3, "r1", long_ttl), (numbers{3, 1}));
    expect_long_lease(name);
    EXPECT_EQ(call("count_down", 1, "r2"), (numbers{2, 1}));
    expect_long_lease(name);
}

TEST_F(latch_scripts, an_abandoned_one_disappears) {
    EXPECT_EQ(call("set", 3, "r1", short_ttl), (numbers{3, 1}));
    wait_until_gone(name);
    EXPECT_EQ(read(), (numbers{0, 0}));
}

TEST_F(latch_scripts, one_that_opened_is_known_whoever_opened_it) {
    EXPECT_FALSE(known());
    call("set", 1, "r1", long_ttl);
    EXPECT_TRUE(known());
    call("count_down", 1, "r2");
    EXPECT_TRUE(known());
    expect_long_lease(latch_mark(name));
    call("set", 1, "r3", long_ttl);
    redis({"DEL", name});  // as Java does when it counts to zero
    EXPECT_TRUE(known());
}

TEST_F(latch_scripts, one_that_the_server_lost_or_that_ended_is_not_known) {
    call("set", 1, "r1", long_ttl);
    redis({"FLUSHALL"});
    EXPECT_FALSE(known());
    for (const bool counted : {false, true}) {
        call("set", 2, counted ? "r2" : "r3", short_ttl);
        if (counted) {
            call("count_down", 1, "r4");
        }
        wait_until_gone(name);
        EXPECT_FALSE(known());
    }
}

TEST_F(latch_scripts, one_that_opened_and_is_set_again_goes_on_in_its_line) {
    call("set", 1, "r1", long_ttl);
    EXPECT_EQ(life(), (numbers{0, 7001}));
    call("count_down", 1, "r2");
    line_ = "9007199254740991";
    call("set", 2, "r3", long_ttl);
    EXPECT_EQ(life(), (numbers{1, 7001}));
    call("count_down", 1, "r4");
    EXPECT_EQ(life(), (numbers{1, 7001}));
    redis({"DEL", name});  // as Java does when it counts to zero
    call("set", 1, "r5", long_ttl);
    EXPECT_EQ(life(), (numbers{2, 7001}));
    redis({"FLUSHALL"});
    call("set", 1, "r6", long_ttl);
    EXPECT_EQ(life(), (numbers{0, 9007199254740991}));
}

TEST_F(latch_scripts, one_that_java_set_is_not_known_whatever_is_left_of_an_earlier_one) {
    call("set", 1, "r1", long_ttl);
    call("count_down", 1, "r2");
    redis({"SET", name, "2"});
    EXPECT_FALSE(known());
    redis({"DEL", name});
    redis({"SET", name, "3"});
    EXPECT_TRUE(granted(take_permit(alice))) << "a semaphore by then";
}

TEST_F(latch_scripts, at_zero_it_is_gone_and_everybody_is_told) {
    auto waiter = listener(channel);
    call("set", 2, "r1");
    EXPECT_EQ(message(waiter), "1");
    EXPECT_EQ(call("count_down", 1, "r2"), (numbers{1, 1}));
    EXPECT_EQ(call("count_down", 1, "r3"), (numbers{0, 1}));
    EXPECT_EQ(message(waiter), "0");
    EXPECT_EQ(number({"EXISTS", name}), 0);
}

TEST_F(latch_scripts, it_does_not_count_below_zero) {
    call("set", 2, "r1");
    EXPECT_EQ(call("count_down", 7, "r2"), (numbers{0, 1}));
    EXPECT_EQ(number({"EXISTS", name}), 0);
}

TEST_F(latch_scripts, a_set_sent_again_says_the_same_and_does_not_start_over) {
    call("set", 3, "r1");
    call("count_down", 1, "r2");
    EXPECT_EQ(call("set", 3, "r1"), (numbers{2, 1}));
    EXPECT_EQ(text({"GET", name}), "2");
}

TEST_F(latch_scripts, a_count_down_sent_again_counts_once) {
    call("set", 3, "r1");
    EXPECT_EQ(call("count_down", 1, "r2"), (numbers{2, 1}));
    EXPECT_EQ(call("count_down", 1, "r2"), (numbers{2, 1}));
    EXPECT_EQ(call("count_down", 1, "r3"), (numbers{1, 1}));
}

TEST_F(latch_scripts, a_request_sent_again_in_the_latchs_next_life_does_not_count_in_it) {
    call("set", 1, "r1");
    EXPECT_EQ(call("count_down", 1, "r2"), (numbers{0, 1}));
    call("set", 5, "r3");
    EXPECT_EQ(call("count_down", 1, "r2"), (numbers{5, 1}));
    EXPECT_EQ(read(), (numbers{5, 0}));
}

TEST_F(latch_scripts, requests_are_remembered_for_a_while_only) {
    call("set", 3, "r1", 0, long_ttl);
    expect_long_lease(latch_request_key(name, "r1"));
    call("count_down", 1, "r2", 0, 0);
    EXPECT_EQ(number({"EXISTS", latch_request_key(name, "r2")}), 0);
}

TEST_F(latch_scripts, a_java_programs_latch_is_counted_down) {
    redis({"SET", name, "2"});
    EXPECT_EQ(read(), (numbers{2, 0}));
    EXPECT_EQ(call("count_down", 1, "r1"), (numbers{1, 1}));
    EXPECT_EQ(text({"GET", name}), "1");
}

TEST_F(latch_scripts, other_kinds_under_the_name_are_refused) {
    std::vector<words> occupants{{"HSET", name, alice, "1"}};
    for (const auto* text : {"x", "", "-5", "1.5", "0.0", "0x1", "1e0", " 1", "1 ", "nan", "inf"}) {
        occupants.push_back({"SET", name, text});
    }
    for (const auto& command : occupants) {
        redis({"DEL", name});
        redis(command);
        const auto before = contents();
        for (const auto* what : {"read", "set", "count_down"}) {
            EXPECT_TRUE(wrong_kind(run(scripts::latch(), {name, channel, "request"},
                                       {what, "1", "0", "publish", "1000"})));
        }
        EXPECT_EQ(contents(), before);
    }
}

}  // namespace
}  // namespace holdfast::engines::redis
