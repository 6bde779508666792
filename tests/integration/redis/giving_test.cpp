#include <array>
#include <atomic>
#include <csignal>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <integration/redis/redis_stage.hpp>

/// Plain locks that go straight from one process to another when they are released.
namespace holdfast::testing {

namespace {

class redis_giving : public redis_stage {
protected:
    /// The server knows the scripts.
    void SetUp() override { static_cast<void>(mutex{first_, "warm-up"}.acquire()); }

    [[nodiscard]] bool somebody_wishes() const {
        return eventually([&] { return is_there(wishes_); });
    }
    /// Nobody has asked for so long.
    [[nodiscard]] bool first_wish_grows_older_than(std::chrono::milliseconds age) const {
        std::string seen;
        auto since = clock::now();
        return eventually([&] {
            if (auto wish = server_.cli({"LINDEX", wishes_, "0"}); wish != seen) {
                seen = std::move(wish);
                since = clock::now();
            }
            return clock::now() - since > age;
        });
    }
    [[nodiscard]] bool listeners_become(std::int64_t number) const {
        const std::vector<std::string> question{"PUBSUB", "NUMSUB", "redisson_lock__channel:{stock}"};
        return eventually([&] { return server_.ask(question).items[1].integer == number; });
    }
    [[nodiscard]] std::string holder() const { return server_.cli({"HKEYS", "stock"}); }
    [[nodiscard]] std::string who_wishes() const {
        const auto wish = server_.cli({"LINDEX", wishes_, "0"});
        return wish.substr(0, wish.find(' '));
    }
    [[nodiscard]] auto start_waiting(client& who, std::chrono::milliseconds longest = 20s) const {
        return in_background([&who, longest] { return mutex{who, "stock"}.try_acquire_for(longest); });
    }
    /// Another process that waits.
    [[nodiscard]] testing_support::server_process start_process() const {
        return {{HOLDFAST_LOCK_WORKER, "wait", address(), "stock"}, server_.directory() / "worker"};
    }

    const std::string wishes_{"holdfast_wishes:{stock}"};
    client first_{make_client()};
    client second_{address()};
    client third_{address()};
};

/// As when the server has no room for the connection on which it would hear: it asks once a second.
TEST_F(redis_giving, one_that_cannot_listen_gets_a_lock_that_another_process_keeps_using) {
    server_.cli({"ACL", "SETUSER", "deaf", "on", ">pw", "~*", "&*", "+@all", "-subscribe"});
    client deaf{"redis://deaf:pw@127.0.0.1:" + std::to_string(server_.port())};
    std::atomic<int> times{};
    std::vector<std::jthread> busy_process;
    for (int thread = 0; thread < 3; ++thread) {
        busy_process.emplace_back([&](const std::stop_token& over) {
            mutex stock{first_, "stock"};
            while (!over.stop_requested()) {
                const auto held = stock.acquire();
                ++times;
                std::this_thread::sleep_for(5ms);  // not a guess: the work under the lock
            }
        });
    }
    ASSERT_TRUE(eventually([&] { return times > 6; }));
    EXPECT_TRUE(mutex(deaf, "stock").try_acquire_for(20s));
}

TEST_F(redis_giving, one_that_waits_is_given_the_lock_without_asking) {
    auto held = mutex{first_, "stock"}.acquire();
    auto waiting = start_waiting(second_);
    ASSERT_TRUE(somebody_wishes());
    // The answer to its question is there, too.
    ASSERT_TRUE(first_wish_grows_older_than(200ms));
    command_log log{server_};

    held.release();
    auto got = waiting.get();

    ASSERT_TRUE(got);
    EXPECT_EQ(script_runs(log.news()), 1U);
    EXPECT_EQ(holder(), got->owner().text());
    EXPECT_FALSE(is_there(wishes_));
}

TEST_F(redis_giving, a_process_that_is_stopped_has_the_lock_all_the_same) {
    auto held = mutex{first_, "stock"}.acquire();
    const auto stopped = start_process();
    ASSERT_TRUE(somebody_wishes());
    const auto waiter = who_wishes();
    stopped.stop();

    held.release();

    EXPECT_EQ(holder(), waiter);
}

TEST_F(redis_giving, a_process_that_has_been_stopped_for_a_while_is_given_nothing) {
    auto held = mutex{first_, "stock"}.acquire();
    const auto stopped = start_process();
    ASSERT_TRUE(somebody_wishes());
    stopped.stop();
    const auto waiter = who_wishes();
    auto waiting = start_waiting(second_);
    ASSERT_TRUE(eventually([&] { return count({"LLEN", wishes_}) == 2; }));
    const stopwatch stopped_for;
    ASSERT_TRUE(eventually([&] { return stopped_for.elapsed() > 2500ms; }));
    EXPECT_EQ(who_wishes(), waiter);

    held.release();

    const stopwatch watch;
    EXPECT_TRUE(waiting.get());
    EXPECT_LT(watch.elapsed(), slack);
}

TEST_F(redis_giving, a_process_that_died_is_given_nothing) {
    auto held = mutex{first_, "stock"}.acquire();
    const auto dead = start_process();
    ASSERT_TRUE(somebody_wishes());
    const auto waiter = who_wishes();
    auto waiting = start_waiting(second_);
    ASSERT_TRUE(listeners_become(2));
    dead.signal(SIGKILL);
    ASSERT_TRUE(listeners_become(1));
    ASSERT_EQ(who_wishes(), waiter);  // within two seconds of its last question

    const stopwatch watch;
    held.release();

    EXPECT_TRUE(waiting.get());
    EXPECT_LT(watch.elapsed(), slack);
}

TEST_F(redis_giving, one_that_gives_up_takes_its_wishes_back) {
    auto held = mutex{first_, "stock"}.acquire();
    auto waiting = start_waiting(second_, 300ms);
    ASSERT_TRUE(somebody_wishes());
    EXPECT_FALSE(waiting.get());
    EXPECT_TRUE(eventually([&] { return !is_there(wishes_); }, 500ms));
    EXPECT_EQ(holder(), held.owner().text());
}

TEST_F(redis_giving, a_client_that_is_shut_down_takes_its_wishes_back) {
    auto held = mutex{first_, "stock"}.acquire();
    auto short_lived = std::make_optional<client>(address());
    auto waiting = in_background([&short_lived] {
        try {
            return mutex{*short_lived, "stock"}.try_acquire_for(20s).has_value();
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), errc::shut_down);
            return false;
        }
    });
    ASSERT_TRUE(somebody_wishes());
    static_cast<void>(short_lived->shutdown(1s));
    EXPECT_FALSE(waiting.get());
    EXPECT_FALSE(is_there(wishes_));
}

TEST_F(redis_giving, of_several_that_wait_none_is_forgotten) {
    constexpr int rounds = 40;
    int counter = 0;  // what the lock protects
    std::vector<std::jthread> threads;
    for (auto* who : {&first_, &second_, &third_}) {
        threads.emplace_back([&counter, who] {
            mutex stock{*who, "stock"};
            for (int round = 0; round < rounds; ++round) {
                const auto held = stock.try_acquire_for(20s);
                ASSERT_TRUE(held);
                ++counter;
            }
        });
    }
    threads.clear();
    EXPECT_EQ(counter, 3 * rounds);
    EXPECT_FALSE(is_there("stock"));
}

TEST_F(redis_giving, processes_that_want_it_all_the_time_share_it) {
    constexpr int most = 240;
    std::atomic<int> all{0};
    std::array<int, 3> shares{};
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < shares.size(); ++i) {
        threads.emplace_back([&, i] {
            mutex stock{*std::array{&first_, &second_, &third_}[i], "stock"};
            while (all.load() < most) {
                const auto held = stock.acquire();
                ++all;
                ++shares[i];
                std::this_thread::sleep_for(1ms);  // not a guess: the work the lock is held for
            }
        });
    }
    threads.clear();
    for (const auto one : shares) {
        EXPECT_GT(one, most / 6) << "of " << most;
    }
}

/// As a Java program far away: it hears of its turn, and its request arrives 300 ms later.
TEST_F(redis_giving, a_listener_that_is_slow_to_ask_gets_the_lock_beside_processes_that_are_quick) {
    constexpr auto way = 300ms;
    constexpr int enough = 3;
    const std::string take{
        "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end "
        "redis.call('HSET', KEYS[1], ARGV[1], '1') redis.call('PEXPIRE', KEYS[1], '30000') return 1"};
    const std::string java{"9f0c1e52-7d1b-4c54-9c0a-5f6e7d8c9b0a:47"};
    const std::string channel{"redisson_lock__channel:{stock}"};
    auto heard = server_.connect();
    heard.command({"SUBSCRIBE", channel});
    std::vector<std::jthread> quick;
    for (auto* const who : {&first_, &second_, &third_}) {
        quick.emplace_back([who](const std::stop_token& stop) {
            mutex lock{*who, "stock"};
            while (!stop.stop_requested()) {
                const std::lock_guard held{lock};
            }
        });
    }
    int granted = 0;
    for (int asked = 0; asked < 40 && granted < enough; ++asked) {
        static_cast<void>(heard.next_message());
        std::this_thread::sleep_for(way);  // not a guess: its request is under way
        if (server_.ask({"EVAL", take, "1", "stock", java}).integer == 1) {
            ++granted;
            static_cast<void>(server_.ask({"DEL", "stock"}));
            static_cast<void>(server_.ask({"PUBLISH", channel, "0"}));
        }
    }
    for (auto& one : quick) {
        one.request_stop();
    }
    quick.clear();
    EXPECT_EQ(granted, enough);
}

TEST_F(redis_giving, a_lease_that_was_given_is_trusted_no_longer_than_the_server_keeps_it) {
    auto held = mutex{first_, "stock"}.acquire();
    auto waiting = in_background([this] {
        return mutex{second_, "stock", {.safety_margin = 0ms}}.try_acquire_for(20s);
    });
    ASSERT_TRUE(somebody_wishes());
    // It counts from the question that was answered with "busy", so some of the ttl is over.
    constexpr auto age = 300ms;
    ASSERT_TRUE(first_wish_grows_older_than(age));
    held.release();
    const auto got = waiting.get();
    ASSERT_TRUE(got);
    const auto trusted = got->valid_until() - clock::now();
    const auto kept = std::chrono::milliseconds{count({"PTTL", "stock"})};
    EXPECT_LE(trusted, kept - age + 1ms);
}

TEST_F(redis_giving, a_lease_that_is_not_renewed_begins_its_ttl_anew) {
    auto held = mutex{first_, "stock"}.acquire();
    auto waiting = in_background([this] {
        return mutex{
            second_, "stock", {.ttl = 10s, .renewal = renewal_mode::none, .safety_margin = 0ms}}
            .try_acquire_for(20s);
    });
    ASSERT_TRUE(somebody_wishes());
    const auto waiter = who_wishes();
    constexpr auto age = 300ms;
    ASSERT_TRUE(first_wish_grows_older_than(age));
    const auto released_at = clock::now();

    held.release();

    EXPECT_EQ(holder(), waiter);
    const auto got = waiting.get();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->owner().text(), waiter);
    EXPECT_GT(got->valid_until(), released_at + 10s) << "it counts from an older request";
    EXPECT_FALSE(is_there(wishes_));
}

/// Two processes that pass the lock on to each other leave nobody behind whose lease cannot be taken as
/// it was granted: no release says that everybody may ask.
TEST_F(redis_giving, a_lease_that_is_not_renewed_has_its_turn_among_leases_that_are) {
    constexpr int rounds = 40;
    std::atomic<int> others{0};
    std::vector<std::jthread> threads;
    for (const std::size_t i : {0U, 1U}) {
        threads.emplace_back([&, i](const std::stop_token& over) {
            mutex stock{i == 0 ? first_ : second_, "stock"};
            while (!over.stop_requested()) {
                const auto held = stock.acquire();
                ++others;
                std::this_thread::sleep_for(1ms);  // not a guess: the work the lock is held for
            }
        });
    }
    mutex stock{third_, "stock", {.ttl = 10s, .renewal = renewal_mode::none}};
    ASSERT_TRUE(eventually([&] { return others > 6; }));
    const int before = others;
    for (int round = 0; round < rounds; ++round) {
        ASSERT_TRUE(stock.try_acquire_for(20s));
    }
    EXPECT_LE(others - before, 4 * rounds) << "two others wait in turn";
    for (auto& thread : threads) {
        thread.request_stop();
    }
}

/// Redisson gives both the same channel; what is ours must not be shared.
TEST_F(redis_giving, a_release_of_a_name_gives_nobody_the_same_name_in_braces) {
    auto held = mutex{first_, "stock"}.acquire();
    auto braced = mutex{third_, "{stock}"}.acquire();
    auto waiting = in_background([this] { return mutex{second_, "{stock}"}.try_acquire_for(20s); });
    ASSERT_TRUE(eventually([&] { return is_there("holdfast_wishes::{stock}"); }));

    held.release();

    EXPECT_FALSE(is_there("stock"));
    EXPECT_EQ(server_.cli({"HKEYS", "{stock}"}), braced.owner().text());
    EXPECT_NE(waiting.wait_for(100ms), std::future_status::ready);
    braced.release();
    const auto got = waiting.get();
    ASSERT_TRUE(got);
    EXPECT_EQ(server_.cli({"HKEYS", "{stock}"}), got->owner().text());
}

}  // namespace

}  // namespace holdfast::testing
