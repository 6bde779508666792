#include <memory>

#include <support/redis_servers.hpp>

#include "stage.hpp"

/// The same where both sides ask sentinels for the server, and releases reach replicas as well.
namespace holdfast::interop {

namespace {

class sentinel_interop : public interop_stage {
protected:
    [[nodiscard]] environment make_environment() const override {
        auto made = servers_with_sentinels();
        servers_ = std::static_pointer_cast<testing_support::redis_sentinels>(made.servers);
        return made;
    }
    /// The master dies, with everything that was written before in its replicas.
    static void fail_over(probe& master) {
        master.text({"SET", "written", "last"});
        ASSERT_EQ(master.number({"WAIT", "2", "10000"}), 2);
        const auto servers = servers_.lock();
        servers->wait_for_new_master(servers->kill_master());
    }

private:
    inline static std::weak_ptr<testing_support::redis_sentinels> servers_;
};

TEST_P(sentinel_interop, cpp_is_told_when_java_unlocks) {
    mutex lock{*client_, name_};
    java("holder", "plain lock", long_lease);
    auto waiter = waits_for(lock);
    ASSERT_TRUE(listens_quietly(lock_channel()));

    java("holder", "plain unlock");

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_TRUE(waiter.get());
}

TEST_P(sentinel_interop, java_is_told_when_cpp_unlocks) {
    mutex lock{*client_, name_};
    auto held = lock.acquire();
    auto waiter = java_begins("waiter", "plain try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("waiter"));

    held.release();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), "true");
}

TEST_P(sentinel_interop, only_one_thread_of_either_side_is_in) {
    client contender{store_, {.handover_count = 4}};
    mutex lock{contender, name_};

    const auto counted = count_together("plain", [&] { return lock.acquire(); });

    EXPECT_EQ(counted, std::to_string(2 * threads_per_side * counts_per_thread));
}

/// The last one: what it kills stays dead.
TEST_P(sentinel_interop, what_java_holds_stays_held_when_the_master_dies) {
    mutex lock{*client_, name_};
    java("holder", "plain lock", long_lease);
    auto waiter = waits_for(lock);
    ASSERT_TRUE(listens_quietly(lock_channel()));

    fail_over(*redis_);

    EXPECT_TRUE(holds_throughout(std::chrono::seconds{2}, [&] { return !is_done(waiter); }));
    // Redisson fails calls until it has found the new master.
    ASSERT_TRUE(eventually([&] { return java_error_of("holder", "plain held").empty(); }));
    EXPECT_EQ(java("holder", "plain held"), "true");
    java("holder", "plain unlock");
    ASSERT_TRUE(gets_done(waiter));
    auto held = waiter.get();
    ASSERT_TRUE(held);

    auto java_waits = java_begins("waiter", "plain try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("waiter"));
    held->release();
    ASSERT_TRUE(gets_done(java_waits));
    EXPECT_EQ(java_waits.get(), "true");
}

/// Java listens at a replica, so that the master counts none of its waiters.
class sentinel_interop_replica : public interop_stage {
protected:
    [[nodiscard]] environment make_environment() const override {
        auto servers = std::make_shared<testing_support::redis_replicas>(1);
        servers->wait_for_replicas(1);
        const auto master = "redis://127.0.0.1:" + std::to_string(servers->master().port());
        const auto replica = "redis://127.0.0.1:" + std::to_string(servers->replica(0).port());
        const auto port = servers->master().port();
        return {.servers = std::move(servers),
                .port = port,
                .store = master,
                .java = {"replicas", master, replica, "subscribe=SLAVE"}};
    }
};

TEST_P(sentinel_interop_replica, java_is_told_when_cpp_unlocks) {
    auto held = mutex{*client_, name_}.acquire();
    auto waiter = java_begins("waiter", "plain try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("waiter"));
    EXPECT_EQ(redis_->listeners(lock_channel()), 0);

    held.release();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), "true");
}

TEST_P(sentinel_interop_replica, java_keeps_its_place_in_the_line_of_a_fair_lock) {
    fair_mutex lock{*client_, name_};
    auto held = lock.acquire();
    auto waiter = java_begins("waiter", "fair try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("waiter"));
    auto behind = waits_for(lock);
    const auto queue = braced("redisson_lock_queue:");
    ASSERT_TRUE(eventually([&] { return redis_->number({"LLEN", queue}) == 2; }));

    held.release();

    ASSERT_TRUE(gets_done(waiter));
    EXPECT_EQ(waiter.get(), "true");
    EXPECT_FALSE(is_done(behind));
    java("waiter", "fair unlock");
    ASSERT_TRUE(gets_done(behind));
    EXPECT_TRUE(behind.get());
}

HOLDFAST_WITH_EVERY_REDISSON(sentinel_interop);
HOLDFAST_WITH_EVERY_REDISSON(sentinel_interop_replica);

}  // namespace

}  // namespace holdfast::interop
