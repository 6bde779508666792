#include "stage.hpp"

/// holdfast::shared_mutex beside Redisson's RReadWriteLock.
namespace holdfast::interop {

namespace {

class read_write_interop : public interop_stage {
protected:
    void SetUp() override {
        interop_stage::SetUp();
        mutex_.emplace(*client_, name_);
    }

    [[nodiscard]] std::string channel() const { return braced("redisson_rwlock:"); }
    [[nodiscard]] std::string mode() { return redis_->text({"HGET", name_, "mode"}); }

    std::optional<shared_mutex> mutex_;
};

TEST_P(read_write_interop, readers_of_both_sides_read_together) {
    java("reader", "read lock", long_lease);

    const auto held = mutex_->try_acquire_shared();

    ASSERT_TRUE(held);
    EXPECT_EQ(java("other", "read try", 0, long_lease), "true");
    EXPECT_EQ(redis_->text({"HGET", name_, held->owner().text()}), "1");
    EXPECT_EQ(redis_->number({"HLEN", name_}), 4);
}

TEST_P(read_write_interop, a_cpp_writer_is_told_when_the_last_java_reader_leaves) {
    java("one", "read lock", long_lease);
    java("two", "read lock", long_lease);
    auto writer = waits_for(*mutex_);
    ASSERT_TRUE(listens_quietly(channel()));

    java("one", "read unlock");
    EXPECT_FALSE(is_done(writer));
    java("two", "read unlock");

    ASSERT_TRUE(gets_done(writer));
    EXPECT_TRUE(writer.get());
}

TEST_P(read_write_interop, a_java_writer_is_told_when_the_last_cpp_reader_leaves) {
    auto one = mutex_->acquire_shared();
    auto two = mutex_->acquire_shared();
    auto writer = java_begins("writer", "write try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("writer"));

    one.release();
    EXPECT_EQ(java("other", "write try", 0, long_lease), "false");
    two.release();

    ASSERT_TRUE(gets_done(writer));
    EXPECT_EQ(writer.get(), "true");
}

TEST_P(read_write_interop, a_java_writer_waits_for_readers_of_both_sides) {
    auto held = mutex_->acquire_shared();
    java("reader", "read lock", long_lease);
    auto writer = java_begins("writer", "write try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("writer"));

    held.release();
    EXPECT_EQ(java("other", "write try", 0, long_lease), "false");
    EXPECT_FALSE(is_done(writer));
    java("reader", "read unlock");

    ASSERT_TRUE(gets_done(writer));
    EXPECT_EQ(writer.get(), "true");
}

TEST_P(read_write_interop, cpp_readers_are_told_when_a_java_writer_leaves) {
    java("writer", "write lock", long_lease);
    client other{store_};
    shared_mutex others{other, name_};
    auto one = waits_to_read(*mutex_);
    auto two = waits_to_read(others);
    ASSERT_TRUE(listens_quietly(channel(), 2));

    java("writer", "write unlock");

    ASSERT_TRUE(gets_done(one));
    const auto first = one.get();
    EXPECT_TRUE(first);
    ASSERT_TRUE(gets_done(two));
    EXPECT_TRUE(two.get());
}

TEST_P(read_write_interop, java_readers_are_told_when_a_cpp_writer_leaves) {
    auto held = mutex_->acquire();
    auto one = java_begins("one", "read try", long_wait, long_lease);
    auto two = java_begins("two", "read try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("one"));
    ASSERT_TRUE(java_sleeps("two"));
    EXPECT_EQ(java("other", "read try", 0, long_lease), "false");

    held.release();

    ASSERT_TRUE(gets_done(one));
    EXPECT_EQ(one.get(), "true");
    ASSERT_TRUE(gets_done(two));
    EXPECT_EQ(two.get(), "true");
}

TEST_P(read_write_interop, a_downgrade_by_cpp_lets_java_read_and_not_write) {
    auto writing = mutex_->acquire();
    auto reader = java_begins("reader", "read try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("reader"));

    const auto reading = writing.downgrade();

    ASSERT_TRUE(gets_done(reader));
    EXPECT_EQ(reader.get(), "true");
    EXPECT_EQ(java("writer", "write try", 0, long_lease), "false");
}

TEST_P(read_write_interop, a_downgrade_by_java_lets_cpp_read_and_not_write) {
    java("writer", "write lock", long_lease);
    java("writer", "read lock", long_lease);
    EXPECT_FALSE(mutex_->try_acquire_shared());

    java("writer", "write unlock");

    EXPECT_TRUE(mutex_->try_acquire_shared());
    EXPECT_FALSE(mutex_->try_acquire());
}

TEST_P(read_write_interop, cpp_upgrades_only_when_no_java_reader_is_there) {
    java("reader", "read lock", long_lease);
    auto reading = mutex_->acquire_shared();
    EXPECT_FALSE(reading.try_upgrade());

    java("reader", "read unlock");

    auto writing = reading.try_upgrade();
    ASSERT_TRUE(writing);
    EXPECT_EQ(java("reader", "read try", 0, long_lease), "false");
    writing->release();
    EXPECT_EQ(java("reader", "read try", 0, long_lease), "true");
}

TEST_P(read_write_interop,
       cpp_waits_for_the_last_unlock_of_a_java_thread_that_locked_both_sides_twice) {
    java("holder", "write lock", long_lease);
    java("holder", "write lock", long_lease);
    java("holder", "read lock", long_lease);
    java("holder", "read lock", long_lease);
    auto writer = waits_for(*mutex_);
    ASSERT_TRUE(listens_quietly(channel()));

    for (const auto* verb : {"write unlock", "write unlock", "read unlock"}) {
        java("holder", verb);
        EXPECT_FALSE(mutex_->try_acquire()) << "after " << verb;
    }
    java("holder", "read unlock");

    ASSERT_TRUE(gets_done(writer));
    EXPECT_TRUE(writer.get());
}

TEST_P(read_write_interop, only_one_writer_of_either_side_is_in) {
    client contender{store_, {.handover_count = 4}};
    shared_mutex lock{contender, name_};

    const auto counted = count_together("write", [&] { return lock.acquire(); });

    EXPECT_EQ(counted, std::to_string(2 * threads_per_side * counts_per_thread));
}

TEST_P(read_write_interop, a_java_writer_gets_in_when_a_cpp_reader_was_killed) {
    const auto victim = another_process("read");
    auto writer = java_begins("writer", "write try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("writer"));

    victim->kill();

    ASSERT_TRUE(gets_done(writer));
    EXPECT_EQ(writer.get(), "true");
}

TEST_P(read_write_interop, killed_java_readers_neither_keep_a_writer_out_nor_end_other_reads) {
    const auto victim = another_machine();
    victim->ask("one", about(name_, "read lock"));
    victim->ask("two", about(name_, "read lock"));
    auto reader = shared_mutex{*client_, name_, {.ttl = short_ttl}}.acquire_shared();
    auto writer = waits_for(*mutex_);
    ASSERT_TRUE(listens_quietly(channel()));

    victim->kill();

    // Redisson renews the whole lock for its own ttl only, whatever leases of others it shortens.
    EXPECT_TRUE(holds_throughout(well_past_short_ttl, [&] {
        return reader && redis_->number({"EXISTS", name_}) == 1 && !is_done(writer);
    }));
    reader.release();
    ASSERT_TRUE(gets_done(writer));
    EXPECT_TRUE(writer.get());
}

TEST_P(read_write_interop, renewed_readers_of_both_sides_outlive_their_ttl) {
    auto held = shared_mutex{*client_, name_, {.ttl = short_ttl}}.acquire_shared();
    java("reader", "read lock");
    auto writer = java_begins("writer", "write try", long_wait, long_lease);
    const auto reader_of = [&](const std::string& holder) {
        return "{" + name_ + "}:" + holder + ":rwlock_timeout:1";
    };
    const auto cpps = reader_of(held.owner().text());
    const auto javas = reader_of(java_holder("reader"));

    EXPECT_TRUE(holds_throughout(well_past_short_ttl, [&] {
        return held && redis_->number({"EXISTS", name_, cpps, javas}) == 3;
    }));
    EXPECT_FALSE(is_done(writer));

    held.release();
    java("reader", "read unlock");
    ASSERT_TRUE(gets_done(writer));
    EXPECT_EQ(writer.get(), "true");
}

TEST_P(read_write_interop, renewed_writers_of_either_side_outlive_their_ttl) {
    const auto javas = name_ + "-java";
    shared_mutex wanted{*client_, javas};
    machine().ask(own("holder"), about(javas, "write lock"));
    auto held = shared_mutex{*client_, name_, {.ttl = short_ttl}}.acquire();

    EXPECT_TRUE(holds_throughout(well_past_short_ttl, [&] {
        return held && redis_->number({"EXISTS", name_, javas}) == 2;
    }));
    EXPECT_EQ(java("other", "read try", 0, long_lease), "false");
    EXPECT_FALSE(wanted.try_acquire_shared());
}

TEST_P(read_write_interop, writing_that_java_forced_open_is_lost) {
    const auto held = shared_mutex{*client_, name_, {.ttl = short_ttl}}.acquire();

    EXPECT_EQ(java("operator", "write force"), "true");

    EXPECT_EQ(java("next", "write try", 0, long_lease), "true");
    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }));
    EXPECT_EQ(java("next", "write held"), "true");
}

TEST_P(read_write_interop, a_java_writer_that_cpp_revokes_lets_java_readers_in) {
    java("writer", "write lock", long_lease);
    auto reader = java_begins("reader", "read try", long_wait, long_lease);
    ASSERT_TRUE(java_sleeps("reader"));

    EXPECT_TRUE(revoke());

    ASSERT_TRUE(gets_done(reader));
    EXPECT_EQ(reader.get(), "true");
    EXPECT_EQ(mode(), "read");
}

TEST_P(read_write_interop, a_name_that_java_reads_and_writes_is_no_mutex) {
    java("writer", "write lock", long_lease);
    mutex wrong{*client_, name_};

    EXPECT_EQ(error_of([&] { return wrong.try_acquire(); }), errc::wrong_kind);
    EXPECT_EQ(java("writer", "write held"), "true");
}

TEST_P(read_write_interop, a_name_that_java_locks_is_not_read_or_written) {
    java("holder", "plain lock", long_lease);

    EXPECT_EQ(error_of([&] { return mutex_->try_acquire_shared(); }), errc::wrong_kind);
    EXPECT_EQ(error_of([&] { return mutex_->try_acquire(); }), errc::wrong_kind);
    EXPECT_EQ(java("holder", "plain holds"), "1");
}

HOLDFAST_WITH_EVERY_REDISSON(read_write_interop);

}  // namespace

}  // namespace holdfast::interop
