#include "stage.hpp"

/// The same in a cluster, where releases are announced in the sharded way by current Redissons, and in
/// the classic way by those of before: C++ finds out by itself, or is told (`sharded=off`).
namespace holdfast::interop {

namespace {

class cluster_interop : public interop_stage {
protected:
    [[nodiscard]] environment make_environment() const override {
        auto made = cluster_of_three();
        made.store += is_sharded() ? "" : "?sharded=off";
        return made;
    }

    [[nodiscard]] static bool is_sharded() { return GetParam() == "redisson-4"; }

    [[nodiscard]] std::int64_t listeners(const std::string& channel) override {
        redis_->number({"EXISTS", name_});  // moves the probe to the node that matters
        return is_sharded() ? redis_->sharded_listeners(channel) : redis_->listeners(channel);
    }
};

TEST_P(cluster_interop, cpp_is_told_when_java_unlocks) {
    mutex lock{*client_, name_};
    java("holder", "plain lock", long_lease);
    auto waiter = waits_for(lock);
    ASSERT_TRUE(listens_quietly(lock_channel()));

    java("holder", "plain unlock");

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_P(cluster_interop, java_is_told_when_cpp_unlocks) {
    mutex lock{*client_, name_};
    auto held = lock.acquire();
    auto waiter = java_begins("waiter", "plain try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("waiter"));

    held.release();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), "true");
}

TEST_P(cluster_interop, names_in_all_parts_of_the_cluster_are_shared) {
    for (const auto* suffix : {"-a", "-b", "-c", "-d", "-e", "-f", "{tag}", "-{tag}-"}) {
        mutex lock{*client_, name_ + suffix};
        const auto held = lock.acquire();
        EXPECT_EQ(machine().ask(own("other"), about(lock.name(), "plain try")), "false") << suffix;
        EXPECT_EQ(machine().ask(own("other"), about(lock.name(), "plain locked")), "true") << suffix;
    }
}

TEST_P(cluster_interop, only_one_thread_of_either_side_is_in) {
    client contender{store_, {.handover_count = 4}};
    mutex lock{contender, name_};

    const auto counted = count_together("plain", [&] { return lock.acquire(); });

    EXPECT_EQ(counted, std::to_string(2 * threads_per_side * counts_per_thread));
}

TEST_P(cluster_interop, a_mixed_fair_line_is_served_in_order) {
    fair_mutex lock{*client_, name_};
    const auto queue_becomes = [&](int length) {
        return eventually([&] {
            return redis_->number({"LLEN", braced("redisson_lock_queue:")}) == length;
        });
    };
    auto first = lock.acquire();
    auto second = java_begins("second", "fair try", long_wait, long_lease);
    ASSERT_TRUE(queue_becomes(1));
    ASSERT_TRUE(java_sleeps("second"));
    auto third = waits_for(lock);
    ASSERT_TRUE(queue_becomes(2));

    first.release();
    ASSERT_TRUE(gets_done(second));
    EXPECT_EQ(second.get(), "true");
    EXPECT_FALSE(is_done(third));
    java("second", "fair unlock");

    ASSERT_TRUE(gets_done(third));
    EXPECT_TRUE(third.get());
}

TEST_P(cluster_interop, a_reader_of_java_and_a_writer_of_cpp_take_turns) {
    shared_mutex lock{*client_, name_};
    const auto channel = braced("redisson_rwlock:");
    java("reader", "read lock", long_lease);
    auto writer = waits_for(lock);
    ASSERT_TRUE(listens_quietly(channel));

    java("reader", "read unlock");
    ASSERT_TRUE(gets_done(writer));
    auto written = writer.get();
    ASSERT_TRUE(written);
    auto reader = java_begins("reader", "read try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("reader"));
    written->release();

    ASSERT_TRUE(gets_done(reader));
    EXPECT_EQ(reader.get(), "true");
}

TEST_P(cluster_interop, permits_go_to_and_fro) {
    semaphore permits{*client_, name_, 1};
    const auto channel = braced("redisson_sc:");
    auto held = permits.acquire();
    auto java_waiter = java_begins("waiter", "permits try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("waiter"));

    held.release();
    ASSERT_TRUE(gets_done(java_waiter));
    const auto id = java_waiter.get();
    auto cpp_waiter = in_background([&] { return permits.try_acquire_for(patience); });
    ASSERT_TRUE(listens_quietly(channel));
    java("waiter", "permits release", id);

    ASSERT_TRUE(gets_done(cpp_waiter));
    EXPECT_TRUE(cpp_waiter.get());
}

TEST_P(cluster_interop, a_latch_is_counted_by_one_side_and_awaited_by_the_other) {
    latch gate{*client_, name_};
    ASSERT_TRUE(gate.try_set(2));
    auto java_waiter = java_begins("waiter", "latch await", long_wait);
    auto cpp_waiter = in_background([&] { return gate.wait_for(patience); });
    ASSERT_TRUE(java_sleeps("waiter"));
    ASSERT_TRUE(listens_quietly(braced("redisson_countdownlatch__channel__"), 2));

    java("counter", "latch down");
    gate.count_down();

    ASSERT_TRUE(gets_done(java_waiter));
    EXPECT_EQ(java_waiter.get(), "true");
    ASSERT_TRUE(gets_done(cpp_waiter));
    EXPECT_TRUE(cpp_waiter.get());
}

HOLDFAST_WITH_EVERY_REDISSON(cluster_interop);

}  // namespace

}  // namespace holdfast::interop
