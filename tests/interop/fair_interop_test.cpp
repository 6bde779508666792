#include "stage.hpp"

/// holdfast::fair_mutex beside Redisson's fair lock: both stand in one line.
namespace holdfast::interop {

namespace {

class fair_interop : public interop_stage {
protected:
    void SetUp() override {
        interop_stage::SetUp();
        mutex_.emplace(*client_, name_);
    }

    [[nodiscard]] std::int64_t queue_length() {
        return redis_->number({"LLEN", braced("redisson_lock_queue:")});
    }
    [[nodiscard]] bool queue_becomes(std::int64_t length) {
        return eventually([&] { return queue_length() == length; });
    }
    /// Who is next: holder ids from the head on.
    [[nodiscard]] std::string queue() {
        return redis_->text({"LRANGE", braced("redisson_lock_queue:"), "0", "-1"});
    }
    /// Until when somebody in line counts as alive.
    [[nodiscard]] std::string stamp_of(const std::string& holder) {
        return redis_->text({"ZSCORE", braced("redisson_lock_timeout:"), holder});
    }
    /// Whether the last in line, which is of C++, sleeps.
    [[nodiscard]] bool last_in_line_sleeps() {
        const auto last = redis_->text({"LINDEX", braced("redisson_lock_queue:"), "-1"});
        return listens_quietly(lock_channel() + ":" + last);
    }
    [[nodiscard]] std::future<std::string> java_queues(const std::string& thread) {
        return java_begins(thread, "fair try", long_wait, long_lease);
    }

    std::optional<fair_mutex> mutex_;
};

TEST_P(fair_interop, cpp_is_told_when_java_unlocks) {
    java("holder", "fair lock", long_lease);
    auto waiter = waits_for(*mutex_);
    ASSERT_TRUE(queue_becomes(1));
    ASSERT_TRUE(last_in_line_sleeps());
    EXPECT_FALSE(is_done(waiter));

    java("holder", "fair unlock");

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_TRUE(waiter.get());
    EXPECT_EQ(queue_length(), 0);
}

TEST_P(fair_interop, java_is_told_when_cpp_unlocks) {
    auto held = mutex_->acquire();
    auto waiter = java_queues("waiter");
    ASSERT_TRUE(queue_becomes(1));
    ASSERT_TRUE(java_sleeps("waiter"));
    EXPECT_FALSE(is_done(waiter));

    held.release();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), "true");
    EXPECT_EQ(queue_length(), 0);
}

TEST_P(fair_interop, a_mixed_line_is_served_in_order) {
    client other{store_};
    fair_mutex others{other, name_};
    auto first = mutex_->acquire();
    auto java_second = java_queues("second");
    ASSERT_TRUE(queue_becomes(1));
    ASSERT_TRUE(java_sleeps("second"));
    auto cpp_third = waits_for(*mutex_);
    ASSERT_TRUE(queue_becomes(2));
    ASSERT_TRUE(last_in_line_sleeps());
    auto java_fourth = java_queues("fourth");
    ASSERT_TRUE(queue_becomes(3));
    ASSERT_TRUE(java_sleeps("fourth"));
    auto cpp_fifth = waits_for(others);
    ASSERT_TRUE(queue_becomes(4));
    ASSERT_TRUE(last_in_line_sleeps());

    first.release();
    ASSERT_TRUE(gets_done(java_second));
    EXPECT_EQ(java_second.get(), "true");
    EXPECT_FALSE(is_done(cpp_third) || is_done(java_fourth) || is_done(cpp_fifth));

    java("second", "fair unlock");
    ASSERT_TRUE(gets_done(cpp_third));
    auto third = cpp_third.get();
    ASSERT_TRUE(third);
    EXPECT_FALSE(is_done(java_fourth) || is_done(cpp_fifth));

    third->release();
    ASSERT_TRUE(gets_done(java_fourth));
    EXPECT_EQ(java_fourth.get(), "true");
    EXPECT_FALSE(is_done(cpp_fifth));

    java("fourth", "fair unlock");
    ASSERT_TRUE(gets_done(cpp_fifth));
    EXPECT_TRUE(cpp_fifth.get());
}

TEST_P(fair_interop, nobody_overtakes_the_line) {
    auto held = mutex_->acquire();
    auto waiter = java_queues("waiter");
    ASSERT_TRUE(queue_becomes(1));
    ASSERT_TRUE(java_sleeps("waiter"));
    client other{store_};
    fair_mutex others{other, name_};

    held.release();

    EXPECT_FALSE(others.try_acquire());
    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), "true");
}

TEST_P(fair_interop, cpp_waits_for_the_last_unlock_of_a_java_thread_that_locked_twice) {
    java("holder", "fair lock", long_lease);
    java("holder", "fair lock", long_lease);
    auto waiter = waits_for(*mutex_);
    ASSERT_TRUE(queue_becomes(1));
    ASSERT_TRUE(last_in_line_sleeps());

    java("holder", "fair unlock");
    EXPECT_FALSE(is_done(waiter));
    java("holder", "fair unlock");

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_P(fair_interop, only_one_thread_of_either_side_is_in) {
    const auto counted = count_together("fair", [&] { return mutex_->acquire(); });

    EXPECT_EQ(counted, std::to_string(2 * threads_per_side * counts_per_thread));
    EXPECT_EQ(queue_length(), 0);
}

TEST_P(fair_interop, a_cpp_waiter_that_gives_up_leaves_the_line) {
    java("holder", "fair lock", long_lease);
    std::stop_source enough;
    auto impatient =
        in_background([&] { return mutex_->acquire_unless_stopped(enough.get_token()).has_value(); });
    ASSERT_TRUE(queue_becomes(1));
    auto behind = java_queues("behind");
    ASSERT_TRUE(queue_becomes(2));
    ASSERT_TRUE(java_sleeps("behind"));

    enough.request_stop();
    ASSERT_TRUE(gets_done(impatient));
    EXPECT_FALSE(impatient.get());
    ASSERT_TRUE(queue_becomes(1));
    java("holder", "fair unlock");

    ASSERT_TRUE(gets_done(behind));
    EXPECT_EQ(behind.get(), "true");
}

TEST_P(fair_interop, a_java_waiter_that_gives_up_lets_cpp_through) {
    java("holder", "fair lock", long_lease);
    auto impatient = java_begins("impatient", "fair try", 300, long_lease);
    ASSERT_TRUE(queue_becomes(1));
    auto behind = waits_for(*mutex_);

    ASSERT_TRUE(gets_done(impatient));
    EXPECT_EQ(impatient.get(), "false");
    ASSERT_TRUE(queue_becomes(1));
    java("holder", "fair unlock");

    ASSERT_TRUE(gets_done(behind));
    EXPECT_TRUE(behind.get());
}

TEST_P(fair_interop, cpp_gets_what_a_killed_java_process_held) {
    const auto victim = another_machine();
    victim->ask("holder", about(name_, "fair lock"));
    auto waiter = waits_for(*mutex_);
    ASSERT_TRUE(queue_becomes(1));
    ASSERT_TRUE(last_in_line_sleeps());

    victim->kill();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_P(fair_interop, java_gets_past_a_killed_cpp_waiter) {
    // A Java waiter behind somebody who is dead looks again only when the lease it saw would have
    // ended.
    java("holder", "fair lock", 3 * short_ttl.count());
    child_process victim{{HOLDFAST_INTEROP_HOLDER, store_, "fair", name_, "1500"}};
    ASSERT_TRUE(queue_becomes(1));
    const auto first = queue();
    auto behind = java_queues("behind");
    ASSERT_TRUE(queue_becomes(2));
    ASSERT_TRUE(java_sleeps("behind"));
    // The time that Java found for the one before it is no longer true.
    const auto alive_until = stamp_of(first);
    ASSERT_TRUE(eventually([&] { return stamp_of(first) != alive_until; }));

    victim.kill();

    ASSERT_TRUE(gets_done(behind, patience));
    EXPECT_EQ(behind.get(), "true");
}

/// Waiters of the old Redisson look again only once, when the lease they saw at first would have ended.
/// If that is a moment too early, they sleep for as long as they are willing to wait: nobody can do
/// anything about it from outside.
class fair_interop_current : public fair_interop {};

TEST_P(fair_interop_current, java_gets_what_a_killed_cpp_process_held) {
    const auto victim = another_process("fair", 2 * short_ttl);
    auto waiter = java_queues("waiter");
    ASSERT_TRUE(queue_becomes(1));
    ASSERT_TRUE(java_sleeps("waiter"));

    victim->kill();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), "true");
}

TEST_P(fair_interop, a_hold_that_java_forced_open_is_lost) {
    const auto held = fair_mutex{*client_, name_, {.ttl = short_ttl}}.acquire();

    EXPECT_EQ(java("operator", "fair force"), "true");
    EXPECT_EQ(java("next", "fair try", 0, long_lease), "true");

    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }));
    EXPECT_EQ(java("next", "fair held"), "true");
}

TEST_P(fair_interop, the_head_of_the_line_is_told_when_cpp_revokes_the_hold_of_java) {
    java("holder", "fair lock", long_lease);
    auto waiter = java_queues("waiter");
    ASSERT_TRUE(queue_becomes(1));
    ASSERT_TRUE(java_sleeps("waiter"));

    EXPECT_TRUE(revoke());

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), "true");
}

TEST_P(fair_interop, a_renewed_hold_outlives_its_ttl_and_a_live_waiter_keeps_its_place) {
    auto held = fair_mutex{*client_, name_, {.ttl = short_ttl}}.acquire();
    client other{store_};
    fair_mutex others{other, name_};
    auto cpp_waiter = waits_for(others);
    ASSERT_TRUE(queue_becomes(1));
    ASSERT_TRUE(last_in_line_sleeps());
    auto java_waiter = java_queues("waiter");
    ASSERT_TRUE(queue_becomes(2));
    ASSERT_TRUE(java_sleeps("waiter"));
    const auto line = queue();

    EXPECT_TRUE(holds_throughout(well_past_short_ttl, [&] {
        return held && redis_->number({"EXISTS", name_}) == 1 && queue() == line;
    }));
    EXPECT_FALSE(is_done(cpp_waiter) || is_done(java_waiter));

    held.release();
    ASSERT_TRUE(gets_done(cpp_waiter));
    EXPECT_TRUE(cpp_waiter.get());  // and, being a temporary, it is released at once
    ASSERT_TRUE(gets_done(java_waiter));
    EXPECT_EQ(java_waiter.get(), "true");
}

INSTANTIATE_TEST_SUITE_P(redisson_4, fair_interop_current, ::testing::Values("redisson-4"));
HOLDFAST_WITH_EVERY_REDISSON(fair_interop);

}  // namespace

}  // namespace holdfast::interop
