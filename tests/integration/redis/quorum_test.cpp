#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <holdfast/client.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/quorum.hpp>
#include <holdfast/testing/eventually.hpp>
#include <integration/redis/redis_stage.hpp>
#include <integration/redis/tcp_gate.hpp>

/// A quorum of three real servers, of which some die, hang, or come back without their memory.
namespace holdfast::testing {
namespace {

class redis_quorum : public ::testing::Test {
protected:
    [[nodiscard]] quorum stores(std::chrono::milliseconds restart_grace = 0ms) const {
        quorum all{.stores = {}, .member_timeout = 1s, .restart_grace = restart_grace};
        for (const auto& each : servers) {
            all.stores.push_back(address_of(each.port()));
        }
        return all;
    }
    [[nodiscard]] std::size_t holders_in(std::size_t index) const {
        client alone{address_of(servers[index].port())};
        return alone.inspect("stock").holders.size();
    }
    /// Neither written to disk nor kept in memory: everything is forgotten.
    void restart_empty(std::size_t index) {
        servers[index].kill_hard();
        servers[index].start_again(data_files::removed);
    }

    std::array<redis_server, 3> servers;
};

TEST_F(redis_quorum, locks_renews_and_unlocks_with_one_server_of_three_dead) {
    client where{stores()};
    mutex lock{where, "stock", {.ttl = 1500ms}};
    auto before = lock.acquire();
    servers[0].kill_hard();
    const auto killed_at = clock::now();
    EXPECT_TRUE(eventually([&] { return clock::now() > killed_at + 2s; }));
    EXPECT_TRUE(before) << "it was renewed by the other two";
    EXPECT_EQ(before.release(), release_outcome::released);
    auto after = lock.try_acquire_for(5s);
    ASSERT_TRUE(after);
    EXPECT_GT(after->token(), before.token());
    EXPECT_EQ(after->release(), release_outcome::released);
    EXPECT_EQ(holders_in(1), 0U);
    EXPECT_EQ(holders_in(2), 0U);
}

TEST_F(redis_quorum, no_server_gives_the_lock_to_anybody_by_itself) {
    client where{stores()};
    EXPECT_EQ(engines::open_quorum(stores(), engines::make_identity())->offers().lines, nullptr);
    auto held = mutex{where, "stock"}.acquire();
    std::array<command_log, 3> logs{command_log{servers[0]}, command_log{servers[1]},
                                    command_log{servers[2]}};
    client other{stores()};
    auto waiting = in_background([&] { return mutex{other, "stock"}.try_acquire_for(20s); });
    // It has been refused more than once.
    std::array<std::size_t, 3> asked{};
    EXPECT_TRUE(eventually([&] {
        for (std::size_t i = 0; i < servers.size(); ++i) {
            asked[i] += script_runs(logs[i].news());
        }
        return *std::min_element(asked.begin(), asked.end()) >= 5;
    }));
    for (const auto& each : servers) {
        EXPECT_EQ(each.ask({"EXISTS", "holdfast_wishes:{stock}"}).integer, 0);
    }
    held.release();
    EXPECT_TRUE(waiting.get());
}

TEST_F(redis_quorum, a_server_that_hangs_delays_neither_opening_nor_closing) {
    auto all = stores();
    all.member_timeout = 200ms;
    for (auto& each : all.stores) {
        each += "?connect_timeout=60000";
    }
    servers[2].pause();
    const auto began = clock::now();
    {
        client where{all};
        EXPECT_EQ(where.inspect("stock").holders.size(), 0U);
    }
    EXPECT_LT(clock::now() - began, 20s);
    client where{all};
    servers[2].resume();
    mutex lock{where, "stock", {.ttl = 1500ms}};
    const auto held = lock.acquire();
    EXPECT_TRUE(eventually([&] { return holders_in(2) == 1; })) << "it joins when it answers";
}

TEST_F(redis_quorum, opens_with_one_server_of_three_that_has_too_many_clients) {
    quorum all{.stores = {}, .member_timeout = 1s};
    for (const auto& each : servers) {
        each.cli({"ACL", "SETUSER", "locker", "on", ">secret", "~*", "&*", "+@all"});
        all.stores.push_back("redis://locker:secret@127.0.0.1:" + std::to_string(each.port()) + "/1");
    }
    auto occupant = servers[0].connect();
    EXPECT_TRUE(eventually([&] {
        return occupant.command({"CONFIG", "SET", "maxclients", "1"}).text == "OK";
    }));

    client where{all};

    EXPECT_TRUE((mutex{where, "stock"}.try_acquire_for(5s)));
    occupant.command({"CONFIG", "SET", "maxclients", "1000"});
    EXPECT_TRUE(eventually([&] {
        return servers[0].cli({"CLIENT", "LIST"}).find("user=locker") != std::string::npos;
    }));
}

TEST_F(redis_quorum, says_that_there_is_no_quorum_with_two_of_three_dead_and_leaves_nothing) {
    client where{stores()};
    mutex lock{where, "stock"};
    lock.lock();
    lock.unlock();
    servers[0].kill_hard();
    servers[1].kill_hard();
    const auto asked_at = clock::now();
    try {
        static_cast<void>(lock.try_acquire_for(1s));
        ADD_FAILURE() << "neither granted nor busy can be known";
    } catch (const std::system_error& error) {
        EXPECT_NE(std::string{error.what()}.find("no quorum: 1 of 3 members answered, 2 needed"),
                  std::string::npos)
            << error.what();
    }
    EXPECT_LT(clock::now() - asked_at, 1s + slack);
    EXPECT_EQ(holders_in(2), 0U);
}

/// Its connection says nothing any more; a new one would. The client has nothing else to ask for.
TEST_F(redis_quorum, a_server_that_missed_a_release_is_told_again_by_a_client_that_asks_for_nothing) {
    tcp_gate gate{servers[0].port()};
    auto all = stores();
    all.stores[0] = address_of(gate.port());
    all.member_timeout = 200ms;
    client where{all};
    auto held = mutex{where, "stock", {.ttl = 5min}}.acquire();
    ASSERT_TRUE(eventually([&] { return holders_in(0) == 1; }));
    gate.abandon();
    ASSERT_EQ(held.release(), release_outcome::released);

    EXPECT_TRUE(eventually([&] { return holders_in(0) == 0; }));
}

/// The members take their leave side by side: of nine, each for a tenth of a second, one after another
/// would be late.
TEST_F(redis_quorum, shutdown_ends_in_its_own_time_though_all_servers_hang) {
    std::array<redis_server, 6> others;
    auto many = stores();
    std::vector<redis_server*> all;
    for (auto& each : others) {
        many.stores.push_back(address_of(each.port()));
        all.push_back(&each);
    }
    for (auto& each : servers) {
        all.push_back(&each);
    }
    client where{many};
    const auto held = mutex{where, "stock"}.acquire();
    for (auto* const each : all) {
        each->pause();
    }
    const stopwatch watch;
    EXPECT_EQ(where.shutdown(300ms).size(), 1U);
    const auto took = watch.elapsed();
    for (auto* const each : all) {
        each->resume();
    }
    EXPECT_LT(took, 900ms) << "a tenth of a second more, and what the machine needs";
}

TEST_F(redis_quorum, a_call_ends_in_its_own_time_though_two_of_three_servers_hang) {
    client where{stores()};
    mutex lock{where, "stock"};
    lock.lock();
    lock.unlock();
    servers[0].pause();
    servers[1].pause();
    const auto asked_at = clock::now();
    EXPECT_THROW(static_cast<void>(lock.try_acquire_for(100ms)), std::system_error);
    EXPECT_LT(clock::now() - asked_at, 100ms + slack) << "a member may take 1 s";
    servers[0].resume();
    servers[1].resume();
}

TEST_F(redis_quorum, waits_for_a_server_that_hangs_once_at_most) {
    client where{stores()};
    mutex lock{where, "stock"};
    lock.lock();
    lock.unlock();
    servers[2].pause();
    const auto timed = [&] {
        const auto asked_at = clock::now();
        lock.lock();
        const auto took = clock::now() - asked_at;
        lock.unlock();
        return took;
    };
    EXPECT_LT(timed(), 1s + slack);
    EXPECT_LT(timed(), 900ms);
    servers[2].resume();
    EXPECT_TRUE(eventually([&] {
        const std::scoped_lock guard{lock};
        return holders_in(2) == 1;
    })) << "it takes part again";
}

/// An unlock returns when a majority has let go. The client's end must not keep the word from the rest:
/// with one of the others dead, the lock could not be had until its lease is over.
TEST_F(redis_quorum, a_client_that_ends_after_its_unlocks_leaves_nothing_in_any_server) {
    for (int round = 0; round < 10; ++round) {
        auto where = std::make_optional<client>(stores());
        std::vector<lease> held;
        for (int number = 0; number < 8; ++number) {
            held.push_back(mutex{*where, "stock " + std::to_string(number)}.acquire());
        }
        servers[2].pause();
        auto ended = in_background([&] {
            held.clear();
            where.reset();
        });
        static_cast<void>(ended.wait_for(50ms));  // it waits for the server, or it does not
        servers[2].resume();
        ended.get();
        client alone{address_of(servers[2].port())};
        EXPECT_TRUE(eventually([&] { return alone.list().locks.empty(); }, 2s)) << "round " << round;
    }
}

/// A holds two servers; one of them forgets that. Whether B then gets a majority of the forgetful is
/// what `restart_grace` decides.
TEST_F(redis_quorum, servers_that_forgot_let_a_second_holder_in_unless_they_have_to_wait) {
    servers[2].kill_hard();
    client first{stores()};
    mutex mine{first, "stock", {.ttl = 30s, .renewal = renewal_mode::none}};
    const auto held = mine.acquire();
    restart_empty(1);
    servers[2].start_again(data_files::removed);

    client careful{stores(60s)};
    mutex with_grace{careful, "stock"};
    EXPECT_FALSE(with_grace.try_acquire_for(200ms));
    EXPECT_EQ(holders_in(1), 0U);
    EXPECT_EQ(holders_in(2), 0U);

    client second{stores()};
    mutex yours{second, "stock"};
    const auto overlapping = yours.try_acquire_for(5s);
    ASSERT_TRUE(overlapping) << "the documented price of forgetting";
    EXPECT_TRUE(held);
    EXPECT_GT(overlapping->token(), held.token()) << "the resource can still tell them apart";
}

TEST_F(redis_quorum, is_refused_when_two_addresses_lead_to_one_server) {
    auto twice = stores();
    twice.stores[1] = "redis://localhost:" + std::to_string(servers[0].port());
    try {
        client where{twice};
        ADD_FAILURE() << "it was opened";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), errc::bad_configuration);
        EXPECT_NE(std::string{error.what()}.find("are the same server"), std::string::npos)
            << error.what();
    }
}

}  // namespace
}  // namespace holdfast::testing
