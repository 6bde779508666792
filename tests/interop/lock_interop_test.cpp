#include "stage.hpp"

/// holdfast::mutex and recursive_mutex beside Redisson's RLock, RFencedLock and spin lock.
namespace holdfast::interop {

namespace {

class lock_interop : public interop_stage {
protected:
    void SetUp() override {
        interop_stage::SetUp();
        mutex_.emplace(*client_, name_);
    }

    std::optional<mutex> mutex_;
};

TEST_P(lock_interop, cpp_is_told_when_java_unlocks) {
    java("holder", "plain lock", long_lease);
    auto waiter = waits_for(*mutex_);
    ASSERT_TRUE(listens_quietly(lock_channel()));
    EXPECT_FALSE(is_done(waiter));

    java("holder", "plain unlock");

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_P(lock_interop, java_is_told_when_cpp_unlocks) {
    auto held = mutex_->acquire();
    auto waiter = java_begins("waiter", "plain try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("waiter"));
    EXPECT_FALSE(is_done(waiter));

    held.release();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), "true");
}

TEST_P(lock_interop, java_sees_who_holds_it) {
    const auto held = mutex_->acquire();

    EXPECT_EQ(java("other", "plain locked"), "true");
    EXPECT_EQ(java("other", "plain held"), "false");
    EXPECT_EQ(java("other", "plain try"), "false");
    EXPECT_EQ(redis_->text({"HGETALL", name_}), held.owner().text() + " 1");
}

TEST_P(lock_interop, cpp_sees_which_java_thread_holds_it) {
    java("holder", "plain lock", long_lease);

    const auto seen = client_->inspect(name_);

    ASSERT_EQ(seen.holders.size(), 1U);
    EXPECT_EQ(seen.holders[0].owner.text(), java_holder("holder"));
    EXPECT_FALSE(seen.holders[0].card);
    EXPECT_FALSE(mutex_->try_acquire());
}

TEST_P(lock_interop, java_cannot_unlock_what_cpp_holds) {
    const auto held = mutex_->acquire();

    EXPECT_NE(java_error_of("other", "plain unlock").find("IllegalMonitorState"), std::string::npos);
    EXPECT_TRUE(held);
    EXPECT_EQ(redis_->number({"EXISTS", name_}), 1);
}

TEST_P(lock_interop, cpp_waits_for_the_last_unlock_of_a_java_thread_that_locked_twice) {
    java("holder", "plain lock", long_lease);
    java("holder", "plain lock", long_lease);
    auto waiter = waits_for(*mutex_);
    ASSERT_TRUE(listens_quietly(lock_channel()));

    java("holder", "plain unlock");
    EXPECT_EQ(java("holder", "plain holds"), "1");
    EXPECT_FALSE(is_done(waiter));
    java("holder", "plain unlock");

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_P(lock_interop, java_waits_for_the_last_unlock_of_a_recursive_mutex) {
    recursive_mutex nested{*client_, name_};
    nested.lock();
    nested.lock();
    auto waiter = java_begins("waiter", "plain try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("waiter"));

    nested.unlock();
    EXPECT_EQ(java("other", "plain locked"), "true");
    EXPECT_FALSE(is_done(waiter));
    nested.unlock();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), "true");
}

TEST_P(lock_interop, only_one_thread_of_either_side_is_in) {
    client contender{store_, {.handover_count = 4}};
    mutex lock{contender, name_};

    const auto counted = count_together("plain", [&] { return lock.acquire(); });

    EXPECT_EQ(counted, std::to_string(2 * threads_per_side * counts_per_thread));
}

TEST_P(lock_interop, a_renewed_hold_outlives_its_ttl_on_either_side) {
    const auto javas = name_ + "-java";
    mutex wanted{*client_, javas};
    machine().ask(own("holder"), about(javas, "plain lock"));
    auto cpp_waiter = waits_for(wanted);
    auto held = mutex{*client_, name_, {.ttl = short_ttl}}.acquire();
    auto java_waiter = java_begins("waiter", "plain try", long_wait, long_lease);

    EXPECT_TRUE(holds_throughout(well_past_short_ttl, [&] {
        return redis_->number({"EXISTS", name_, javas}) == 2 && held;
    }));
    EXPECT_FALSE(is_done(cpp_waiter));
    EXPECT_FALSE(is_done(java_waiter));

    machine().ask(own("holder"), about(javas, "plain unlock"));
    held.release();
    ASSERT_TRUE(gets_done(cpp_waiter));
    EXPECT_TRUE(cpp_waiter.get());
    ASSERT_TRUE(gets_done(java_waiter));
    EXPECT_EQ(java_waiter.get(), "true");
}

TEST_P(lock_interop, cpp_gets_what_a_killed_java_process_held) {
    const auto victim = another_machine();
    victim->ask("holder", about(name_, "plain lock"));
    auto waiter = waits_for(*mutex_);
    ASSERT_TRUE(listens_quietly(lock_channel()));

    victim->kill();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_P(lock_interop, java_gets_what_a_killed_cpp_process_held) {
    const auto victim = another_process("plain");
    auto waiter = java_begins("waiter", "plain try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("waiter"));

    victim->kill();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), "true");
}

TEST_P(lock_interop, a_hold_that_java_forced_open_is_lost) {
    const auto held = mutex{*client_, name_, {.ttl = short_ttl}}.acquire();

    EXPECT_EQ(java("operator", "plain force"), "true");
    EXPECT_EQ(java("next", "plain try", 0, long_lease), "true");

    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }));
    EXPECT_EQ(java("next", "plain held"), "true");
}

TEST_P(lock_interop, java_is_told_when_cpp_revokes_a_hold_of_its) {
    java("holder", "plain lock", long_lease);
    auto waiter = java_begins("waiter", "plain try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("waiter"));

    EXPECT_TRUE(revoke());

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), "true");
    EXPECT_NE(java_error_of("holder", "plain unlock").find("IllegalMonitorState"), std::string::npos);
    EXPECT_EQ(java("waiter", "plain held"), "true");
}

TEST_P(lock_interop, tokens_rise_from_side_to_side_when_shared_with_fenced_locks) {
    client fenced{store_ + "?fenced=redisson"};
    mutex lock{fenced, name_};
    std::vector<std::uint64_t> tokens;
    for (int round = 0; round < 3; ++round) {
        tokens.push_back(std::stoull(java("holder", "fenced lock")));
        java("holder", "fenced unlock");
        tokens.push_back(lock.acquire().token().value);
    }

    for (std::size_t later = 1; later < tokens.size(); ++later) {
        EXPECT_LT(tokens[later - 1], tokens[later]) << "at " << later;
    }
    EXPECT_LE(tokens.back(), std::stoull(java("holder", "fenced token")));
}

TEST_P(lock_interop, a_fenced_lock_of_java_excludes_and_is_told) {
    client fenced{store_ + "?fenced=redisson"};
    mutex lock{fenced, name_};
    auto held = lock.acquire();
    EXPECT_EQ(java("other", "fenced try", 0, long_lease), "-");
    auto waiter = java_begins("waiter", "fenced try", long_wait, long_lease);
    ASSERT_TRUE(listens_quietly(lock_channel()));  // it waits in no thread
    const auto token = held.token().value;

    held.release();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_LT(token, std::stoull(waiter.get()));
    EXPECT_FALSE(lock.try_acquire());
}

TEST_P(lock_interop, a_spin_lock_of_java_excludes_and_gets_its_turn) {
    auto held = mutex_->acquire();
    auto spinner = java_begins("spinner", "spin try", long_wait, long_lease);
    EXPECT_EQ(java("other", "spin try"), "false");

    held.release();

    ASSERT_TRUE(gets_done(spinner));
    EXPECT_EQ(spinner.get(), "true");
    EXPECT_FALSE(mutex_->try_acquire());
}

HOLDFAST_WITH_EVERY_REDISSON(lock_interop);

}  // namespace

}  // namespace holdfast::interop
