#include "read_write_fixture.hpp"

/// A server must not be kept busy with every reader there is whenever one of them goes.
namespace holdfast::engines::redis {

class many_readers : public read_write_scripts {
protected:
    static constexpr int many = 300;

    [[nodiscard]] static std::string reader(int number) {
        return "d4d4d4d4-0000-4000-8000-00000000000d:" + std::to_string(number);
    }
    void many_read(std::int64_t ttl = long_ttl) {
        for (int number = 1; number <= many; ++number) {
            ASSERT_TRUE(granted(read(reader(number), {.ttl = ttl})));
        }
    }
    /// As if the lease of everybody were over, while the lock is still there.
    void many_die() {
        for (int number = 1; number <= many; ++number) {
            redis({"DEL", timeout(reader(number))});
        }
    }
    /// Commands that the server carries out meanwhile, those of scripts included.
    template <class Work>
    [[nodiscard]] std::int64_t commands_for(const Work& work) {
        redis({"CONFIG", "RESETSTAT"});
        work();
        const auto info = text({"INFO", "stats"});
        const std::string wanted = "total_commands_processed:";
        return std::stoll(info.substr(info.find(wanted) + wanted.size()));
    }
};

TEST_F(many_readers, one_that_goes_costs_what_it_costs_among_few) {
    many_read();
    EXPECT_LE(commands_for([&] { EXPECT_EQ(release_read(reader(1)), (numbers{1, 0})); }), 20);
    EXPECT_EQ(number({"HLEN", name}), many);  // `mode` is one
    EXPECT_EQ(number({"EXISTS", timeout(reader(1)), timeout(reader(2))}), 1);
}

TEST_F(many_readers, a_writer_that_asks_in_vain_costs_no_more) {
    many_read();
    EXPECT_LE(commands_for([&] { EXPECT_TRUE(busy(write(alice))); }), 12);
}

TEST_F(many_readers, a_writer_hears_when_to_look_again) {
    many_read();
    const auto answer = numbers_in(write(alice));
    ASSERT_EQ(answer.size(), 2U);
    EXPECT_GT(answer[1], 0);
    EXPECT_LE(answer[1], long_ttl);
}

TEST_F(many_readers, one_of_them_cannot_become_the_writer) {
    many_read();
    EXPECT_TRUE(busy(write(reader(7))));
    EXPECT_EQ(number({"EXISTS", timeout(reader(7))}), 1);
}

TEST_F(many_readers, the_lock_outlives_the_longest_whoever_goes) {
    many_read(long_ttl / 4);
    ASSERT_TRUE(granted(read(alice, {.ttl = long_ttl})));
    for (int number = 1; number <= many; ++number) {
        EXPECT_EQ(release_read(reader(number))[0], 1);
        expect_long_lease(name);
    }
}

TEST_F(many_readers, the_last_one_alive_among_the_dead_deletes_everything_and_tells) {
    many_read();
    ASSERT_TRUE(granted(read(alice)));
    many_die();
    auto waiter = listener(channel);
    EXPECT_EQ(release_read(alice), (numbers{1, 1}));
    EXPECT_EQ(message(waiter), "0");
    EXPECT_EQ(number({"EXISTS", name, holds}), 0);
}

TEST_F(many_readers, one_that_is_left_alone_among_the_dead_is_told) {
    many_read();
    ASSERT_TRUE(granted(read(alice)));
    ASSERT_TRUE(granted(read(bob)));
    many_die();
    auto waiter = listener(channel);
    EXPECT_EQ(release_read(alice), (numbers{1, 1}));
    EXPECT_EQ(message(waiter), "2");
}

TEST_F(many_readers, the_dead_keep_nobody_out) {
    many_read();
    many_die();
    EXPECT_TRUE(granted(write(alice)));
    EXPECT_EQ(fields(), alice + ":write=1 mode=write");
}

TEST_F(many_readers, one_reader_alive_among_the_dead_keeps_a_writer_out_and_can_become_it) {
    many_read();
    ASSERT_TRUE(granted(read(bob)));
    many_die();
    EXPECT_TRUE(busy(write(alice)));
    EXPECT_TRUE(granted(write(bob)));
}

}  // namespace holdfast::engines::redis
