#include "stage.hpp"

/// holdfast::semaphore beside Redisson's RPermitExpirableSemaphore, and beside RSemaphore, which has
/// the same counter but no leases.
namespace holdfast::interop {

namespace {

class semaphore_interop : public interop_stage {
protected:
    [[nodiscard]] std::string channel() const { return braced("redisson_sc:"); }
    [[nodiscard]] semaphore of(std::uint32_t limit, std::chrono::milliseconds ttl = ample) {
        return semaphore{*client_, name_, limit, {.ttl = ttl}};
    }
    [[nodiscard]] std::future<std::optional<lease>> waits_for_a_permit(semaphore& permits) {
        return in_background([&permits] { return permits.try_acquire_for(patience); });
    }
    [[nodiscard]] std::string members() { return redis_->text({"ZCARD", "{" + name_ + "}:timeout"}); }

    static constexpr std::chrono::seconds ample{60};
};

TEST_P(semaphore_interop, both_sides_share_one_limit) {
    auto permits = of(3);
    java("setter", "permits set", 3);
    const auto one = permits.acquire();
    java("holder", "permits acquire", long_lease);
    EXPECT_EQ(java("other", "permits available"), "1");
    const auto two = permits.acquire();

    EXPECT_FALSE(permits.try_acquire());
    EXPECT_EQ(java("other", "permits try", 0, long_lease), "-");
    EXPECT_EQ(members(), "3");
}

TEST_P(semaphore_interop, a_permit_that_java_holds_is_seen_under_its_id) {
    java("setter", "permits set", 3);
    const auto id = java("holder", "permits acquire", long_lease);
    const auto all = client_->list(name_).locks;
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].name, name_);
    EXPECT_EQ(all[0].limit, 3U);
    ASSERT_EQ(all[0].holders.size(), 1U);
    const auto& java_holder = all[0].holders[0];
    auto shown = java_holder.owner.client_text();
    std::erase(shown, '-');
    EXPECT_EQ(shown, id);
    EXPECT_EQ(java_holder.mode, claim_mode::permit);
    EXPECT_FALSE(java_holder.card);
    EXPECT_GT(java_holder.remaining.count(), 0);

    const auto ours = of(3).acquire();
    const auto both = client_->inspect(name_).holders;
    ASSERT_EQ(both.size(), 2U);
    EXPECT_EQ(both[0].owner, ours.owner());
    EXPECT_TRUE(both[0].card);

    EXPECT_EQ(java("holder", "permits release", id), "true");
    EXPECT_EQ(client_->inspect(name_).holders.size(), 1U);
}

TEST_P(semaphore_interop, cpp_is_told_when_java_releases) {
    auto permits = of(1);
    java("setter", "permits set", 1);
    const auto id = java("holder", "permits acquire", long_lease);
    auto waiter = waits_for_a_permit(permits);
    ASSERT_TRUE(listens_quietly(channel()));
    EXPECT_FALSE(is_done(waiter));

    EXPECT_EQ(java("holder", "permits release", id), "true");

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_P(semaphore_interop, java_is_told_when_cpp_releases) {
    auto permits = of(1);
    auto held = permits.acquire();
    auto waiter = java_begins("waiter", "permits try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("waiter"));
    EXPECT_FALSE(is_done(waiter));

    held.release();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get().size(), 32U);
    EXPECT_FALSE(permits.try_acquire());
}

TEST_P(semaphore_interop, several_permits_of_cpp_are_several_for_java) {
    auto permits = of(4);
    auto held = permits.acquire(3);
    EXPECT_EQ(java("other", "permits available"), "1");
    EXPECT_EQ(members(), "3");
    java("one", "permits acquire", long_lease);
    auto waiter = java_begins("waiter", "permits try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("waiter"));

    held.release();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get().size(), 32U);
    EXPECT_EQ(java("other", "permits available"), "2");
}

TEST_P(semaphore_interop, a_permit_of_java_without_a_lease_stays_out) {
    auto permits = of(1);
    java("setter", "permits set", 1);
    const auto id = java("holder", "permits acquire");

    EXPECT_FALSE(permits.try_acquire());
    EXPECT_EQ(client_->inspect(name_).holders.at(0).remaining, std::chrono::milliseconds::max());
    java("holder", "permits release", id);
    EXPECT_TRUE(permits.try_acquire());
}

TEST_P(semaphore_interop, only_as_many_as_allowed_are_in) {
    java("setter", "permits set", 1);
    auto permits = of(1);

    const auto counted = count_together("permits", [&] { return permits.acquire(); });

    EXPECT_EQ(counted, std::to_string(2 * threads_per_side * counts_per_thread));
    EXPECT_EQ(java("other", "permits available"), "1");
}

TEST_P(semaphore_interop, a_simple_semaphore_of_java_counts_the_permits_of_cpp) {
    auto permits = of(2);
    auto one = permits.acquire();
    java("holder", "semaphore acquire", 1);
    EXPECT_FALSE(permits.try_acquire());
    auto waiter = java_begins("waiter", "semaphore try", 1, long_wait);
    ASSERT_TRUE(java_sleeps("waiter"));

    one.release();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), "true");
    EXPECT_EQ(java("other", "semaphore available"), "0");
}

TEST_P(semaphore_interop, cpp_is_told_when_a_simple_semaphore_of_java_releases) {
    auto permits = of(1);
    java("setter", "semaphore set", 1);
    java("holder", "semaphore acquire", 1);
    auto waiter = waits_for_a_permit(permits);
    ASSERT_TRUE(listens_quietly(channel()));

    java("holder", "semaphore release", 1);

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_P(semaphore_interop, java_gets_the_permit_of_a_killed_cpp_process) {
    const auto victim = another_process("permit");
    auto waiter = java_begins("waiter", "permits try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("waiter"));

    victim->kill();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get().size(), 32U);
}

TEST_P(semaphore_interop, cpp_gets_a_permit_whose_lease_java_let_run_out) {
    auto permits = of(1);
    java("setter", "permits set", 1);
    const auto id = java("holder", "permits acquire", short_ttl.count());
    auto waiter = waits_for_a_permit(permits);
    EXPECT_FALSE(is_done(waiter));

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_TRUE(waiter.get());
    EXPECT_EQ(java("holder", "permits release", id), "false");
    EXPECT_EQ(java("other", "permits available"), "1");
}

TEST_P(semaphore_interop, a_renewed_permit_outlives_its_ttl_while_java_waits) {
    auto permits = of(1, short_ttl);
    auto held = permits.acquire();
    auto waiter = java_begins("waiter", "permits try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("waiter"));

    EXPECT_TRUE(holds_throughout(well_past_short_ttl, [&] { return held && !is_done(waiter); }));

    held.release();
    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get().size(), 32U);
}

TEST_P(semaphore_interop, another_limit_than_that_of_java_is_refused) {
    java("setter", "permits set", 5);
    java("holder", "permits acquire", long_lease);
    auto permits = of(2);

    EXPECT_EQ(error_of([&] { return permits.try_acquire(); }), errc::wrong_kind);
    EXPECT_EQ(java("other", "permits available"), "4");
}

TEST_P(semaphore_interop, a_larger_limit_than_that_of_java_spoils_nothing) {
    java("setter", "permits set", 2);
    auto wrong = of(5);
    auto right = of(2);
    auto one = wrong.try_acquire();  // nobody can tell yet that this is wrong

    auto two = right.try_acquire();
    EXPECT_TRUE(two);
    EXPECT_EQ(error_of([&] { return wrong.try_acquire(); }), errc::wrong_kind);
    EXPECT_FALSE(right.try_acquire());
    one.reset();
    two.reset();
    EXPECT_EQ(error_of([&] { return wrong.try_acquire(); }), errc::wrong_kind);
    EXPECT_EQ(java("other", "permits available"), "2");
    java("holder", "permits acquire", long_lease);
    EXPECT_EQ(error_of([&] { return wrong.try_acquire(); }), errc::wrong_kind);
    EXPECT_TRUE(right.try_acquire());
}

HOLDFAST_WITH_EVERY_REDISSON(semaphore_interop);

}  // namespace

}  // namespace holdfast::interop
