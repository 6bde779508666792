#include <algorithm>
#include <csignal>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <integration/redis/redis_stage.hpp>
#include <integration/redis/tcp_gate.hpp>
#include <support/no_safety_net.hpp>

/// Fair locks: the line, and what becomes of it when somebody in it dies or leaves.
namespace holdfast::testing {

namespace {

class redis_fair_lock : public redis_stage {
protected:
    [[nodiscard]] bool line_becomes(std::int64_t length) const {
        return eventually([&] { return count({"LLEN", queue_}) == length; });
    }
    [[nodiscard]] std::int64_t server_time() const {
        const auto now = server_.ask({"TIME"});
        return std::stoll(now.items[0].text) * 1000 + std::stoll(now.items[1].text) / 1000;
    }
    /// A place in the line as a Java service takes it, which counts until then.
    owner_id java_stands_in_line(std::chrono::milliseconds alive_for) const {
        auto owner = owner_id::random_client();
        owner.sequence = 47;
        server_.cli({"RPUSH", queue_, owner.text()});
        server_.cli(
            {"ZADD", timeouts_, std::to_string(server_time() + alive_for.count()), owner.text()});
        return owner;
    }
    /// Whether the first in line hears what it is told.
    [[nodiscard]] bool head_listens() const {
        return eventually([&] {
            const auto head = server_.cli({"LINDEX", queue_, "0"});
            const auto heard =
                server_.ask({"PUBSUB", "NUMSUB", "redisson_lock__channel:{stock}:" + head});
            return heard.items.at(1).integer == 1;
        });
    }
    [[nodiscard]] auto start_waiting(client& who) const {
        return in_background([&who] { return fair_mutex{who, "stock"}.try_acquire_for(20s); });
    }

    const std::string queue_{"redisson_lock_queue:{stock}"};
    const std::string timeouts_{"redisson_lock_timeout:{stock}"};
    const std::string wishes_{"holdfast_waiters:{stock}"};
    client first_{make_client()};
    client second_{address()};
};

TEST_F(redis_fair_lock, serves_threads_of_several_clients_in_the_order_in_which_they_came) {
    constexpr int waiters = 8;
    auto held = std::make_optional(fair_mutex{first_, "stock"}.acquire());
    std::mutex guard;
    std::vector<int> order;
    std::vector<std::jthread> threads;
    for (int number = 0; number < waiters; ++number) {
        threads.emplace_back([&, number] {
            // Not in turns: both clients have neighbours in the line.
            fair_mutex stock{number % 3 == 0 ? first_ : second_, "stock"};
            const auto mine = stock.acquire();
            const std::lock_guard lock{guard};
            order.push_back(number);
        });
        ASSERT_TRUE(line_becomes(number + 1));
    }

    held.reset();
    threads.clear();

    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(count({"EXISTS", "stock", queue_, timeouts_, wishes_}), 0);
}

TEST_F(redis_fair_lock, tokens_rise_along_the_line) {
    auto held = fair_mutex{first_, "stock"}.acquire();
    auto waiting = start_waiting(second_);
    ASSERT_TRUE(line_becomes(1));
    const auto before = held.token();

    held.release();

    EXPECT_GT(waiting.get().value().token(), before);
}

TEST_F(redis_fair_lock, the_first_in_line_is_given_the_lock_without_asking) {
    auto held = fair_mutex{first_, "stock"}.acquire();
    const testing_support::server_process stopped{{HOLDFAST_LOCK_WORKER, "line", address(), "stock"},
                                                  server_.directory() / "worker"};
    ASSERT_TRUE(line_becomes(1));
    ASSERT_TRUE(head_listens());
    const auto head = server_.cli({"LINDEX", queue_, "0"});
    stopped.stop();

    held.release();

    EXPECT_EQ(server_.cli({"HKEYS", "stock"}), head);
    EXPECT_EQ(count({"EXISTS", queue_, timeouts_, wishes_}), 0);
}

TEST_F(redis_fair_lock, a_lease_given_in_line_is_trusted_no_longer_than_the_server_keeps_it) {
    auto held = fair_mutex{first_, "stock"}.acquire();
    auto waiting = in_background([this] {
        return fair_mutex{second_, "stock", {.safety_margin = 0ms}}.try_acquire_for(20s);
    });
    ASSERT_TRUE(line_becomes(1));
    ASSERT_TRUE(head_listens());

    held.release();

    const auto given = waiting.get();
    ASSERT_TRUE(given.has_value());
    EXPECT_GT(given->remaining(), 20s);
    const auto trusted_until = clock::now() + given->remaining();
    const auto asked_at = clock::now();
    EXPECT_LE(trusted_until, asked_at + std::chrono::milliseconds{count({"PTTL", "stock"}) + 2});
    EXPECT_EQ(count({"HEXISTS", "stock", given->owner().text()}), 1);
}

TEST_F(redis_fair_lock, a_lease_given_in_line_is_renewed) {
    constexpr auto ttl = 1200ms;
    auto held = fair_mutex{first_, "stock"}.acquire();
    auto waiting = in_background([&] {
        return fair_mutex{second_, "stock", {.ttl = ttl}}.try_acquire_for(20s);
    });
    ASSERT_TRUE(line_becomes(1));
    ASSERT_TRUE(head_listens());

    held.release();

    const auto given = waiting.get();
    ASSERT_TRUE(given.has_value());
    const stopwatch watch;
    EXPECT_TRUE(eventually([&] { return watch.elapsed() > 2 * ttl || !*given; }));
    EXPECT_TRUE(*given);
}

TEST_F(redis_fair_lock, one_who_gives_up_leaves_the_line_at_once) {
    const auto held = fair_mutex{first_, "stock"}.acquire();

    EXPECT_FALSE(fair_mutex(second_, "stock").try_acquire_for(300ms).has_value());

    const stopwatch watch;
    EXPECT_TRUE(line_becomes(0));
    EXPECT_LT(watch.elapsed(), slack);
    EXPECT_EQ(count({"EXISTS", timeouts_, wishes_}), 0);
}

TEST_F(redis_fair_lock, one_who_is_stopped_leaves_the_line_at_once) {
    const auto held = fair_mutex{first_, "stock"}.acquire();
    std::stop_source enough;
    auto waiting = in_background([&] {
        return fair_mutex{second_, "stock"}.acquire_unless_stopped(enough.get_token());
    });
    ASSERT_TRUE(line_becomes(1));

    enough.request_stop();

    EXPECT_FALSE(waiting.get().has_value());
    const stopwatch watch;
    EXPECT_TRUE(line_becomes(0));
    EXPECT_LT(watch.elapsed(), slack);
}

TEST_F(redis_fair_lock, one_who_only_tries_does_not_get_in_line) {
    const auto held = fair_mutex{first_, "stock"}.acquire();
    EXPECT_FALSE(fair_mutex(second_, "stock").try_lock());
    EXPECT_EQ(count({"EXISTS", queue_}), 0);
}

TEST_F(redis_fair_lock, one_who_is_refused_stops_listening_for_its_turn) {
    server_.cli({"SET", "stock", "not a lock"});

    EXPECT_THROW(static_cast<void>(fair_mutex{first_, "stock"}.try_acquire_for(20s)),
                 std::system_error);

    EXPECT_TRUE(eventually([&] {
        return server_.ask({"PUBSUB", "CHANNELS", "redisson_lock__channel:{stock}*"}).items.empty();
    }));
}

TEST_F(redis_fair_lock, the_next_is_served_when_the_first_in_line_gives_up) {
    auto held = fair_mutex{first_, "stock"}.acquire();
    auto impatient = in_background([this] {
        return fair_mutex{first_, "stock"}.try_acquire_for(700ms);
    });
    ASSERT_TRUE(line_becomes(1));
    auto waiting = start_waiting(second_);
    ASSERT_TRUE(line_becomes(2));
    EXPECT_FALSE(impatient.get().has_value());
    const stopwatch watch;

    held.release();

    EXPECT_TRUE(waiting.get().has_value());
    EXPECT_LT(watch.elapsed(), recheck_bound);
}

TEST_F(redis_fair_lock, those_who_die_in_line_are_passed_over_at_once) {
    constexpr int many = 4;
    auto held = fair_mutex{first_, "stock"}.acquire();
    std::vector<std::unique_ptr<testing_support::server_process>> doomed;
    for (int number = 0; number < many; ++number) {
        doomed.push_back(std::make_unique<testing_support::server_process>(
            std::vector<std::string>{HOLDFAST_LOCK_WORKER, "line", address(), "stock"},
            server_.directory() / ("worker" + std::to_string(number))));
        ASSERT_TRUE(line_becomes(number + 1));
    }
    // Each has asked once more since it listens, and the server has noted that.
    ASSERT_TRUE(eventually([&] {
        const auto notes = server_.ask({"HVALS", wishes_}).items;
        return std::count_if(notes.begin(), notes.end(), [](const auto& note) {
                   return note.text.find(" 1 ", note.text.find(' ', 8)) != std::string::npos;
               }) == many;
    }));
    auto waiting = start_waiting(second_);
    ASSERT_TRUE(line_becomes(many + 1));

    for (const auto& one : doomed) {
        one->end_now();
    }
    const stopwatch watch;
    held.release();

    EXPECT_TRUE(waiting.get().has_value());
    EXPECT_LT(watch.elapsed(), 3s) << "five seconds each, formerly";
}

TEST_F(redis_fair_lock, one_whose_subscription_ended_is_still_served) {
    auto held = fair_mutex{first_, "stock"}.acquire();
    auto waiting = start_waiting(second_);
    ASSERT_TRUE(line_becomes(1));

    server_.client_kill("pubsub");
    const stopwatch watch;
    held.release();

    EXPECT_TRUE(waiting.get().has_value());
    EXPECT_LT(watch.elapsed(), recheck_bound);
}

TEST_F(redis_fair_lock, one_that_could_not_listen_when_it_asked_asks_again_when_it_can) {
    const no_safety_net nobody_asks_by_itself;
    tcp_gate gate{server_.port()};
    client third{address_of(gate.port())};
    auto held = fair_mutex{first_, "stock"}.acquire();
    gate.keep_out();  // its subscriptions need a connection of their own
    auto waiting = start_waiting(third);
    ASSERT_TRUE(line_becomes(1));
    held.release();
    ASSERT_EQ(count({"EXISTS", "stock"}), 0) << "it does not hear that it could have it";

    gate.let_through();

    EXPECT_TRUE(waiting.get().has_value());
}

TEST_F(redis_fair_lock, a_foreign_waiter_is_let_go_first_until_its_time_is_over) {
    constexpr auto alive_for = 1500ms;
    const auto until = server_time() + alive_for.count();
    static_cast<void>(java_stands_in_line(alive_for));

    EXPECT_FALSE(fair_mutex(first_, "stock").try_lock());
    const auto held = start_waiting(first_).get();

    ASSERT_TRUE(held.has_value());
    EXPECT_GE(server_time(), until);
    EXPECT_LT(server_time(), until + recheck_bound.count());
    EXPECT_EQ(count({"EXISTS", queue_, timeouts_}), 0);
}

TEST_F(redis_fair_lock, a_foreign_waiter_is_told_when_it_is_its_turn) {
    auto held = fair_mutex{first_, "stock"}.acquire();
    const auto java = java_stands_in_line(60s);
    auto ears = server_.connect();
    ears.command({"SUBSCRIBE", "redisson_lock__channel:{stock}:" + java.text()});

    held.release();

    EXPECT_EQ(ears.next_message().items.at(2).text, "0");
    EXPECT_EQ(server_.cli({"LINDEX", queue_, "0"}), java.text());
}

TEST_F(redis_fair_lock, a_foreign_holder_is_waited_for) {
    const auto java = owner_id::random_client();
    server_.cli({"HSET", "stock", java.text(), "1"});
    server_.cli({"PEXPIRE", "stock", "30000"});
    auto waiting = start_waiting(first_);
    ASSERT_TRUE(line_becomes(1));
    const auto head = server_.cli({"LINDEX", queue_, "0"});

    server_.cli({"DEL", "stock"});
    server_.cli({"PUBLISH", "redisson_lock__channel:{stock}:" + head, "0"});

    const stopwatch watch;
    EXPECT_TRUE(waiting.get().has_value());
    EXPECT_LT(watch.elapsed(), recheck_bound);
}

/// Redisson gives both the same line and channels.
TEST_F(redis_fair_lock, a_release_of_a_name_gives_nobody_the_same_name_in_braces) {
    client third{address()};
    auto held = fair_mutex{first_, "stock"}.acquire();
    auto braced = fair_mutex{third, "{stock}"}.acquire();
    auto waiting = in_background([this] {
        return fair_mutex{second_, "{stock}"}.try_acquire_for(20s);
    });
    ASSERT_TRUE(line_becomes(1));
    ASSERT_TRUE(head_listens());

    held.release();

    EXPECT_FALSE(is_there("stock"));
    EXPECT_EQ(server_.cli({"HKEYS", "{stock}"}), braced.owner().text());
    EXPECT_NE(waiting.wait_for(100ms), std::future_status::ready);
    braced.release();
    const auto got = waiting.get();
    ASSERT_TRUE(got);
    EXPECT_EQ(server_.cli({"HKEYS", "{stock}"}), got->owner().text());
}

TEST_F(redis_fair_lock, a_grant_that_answers_an_older_question_is_not_believed) {
    auto held = fair_mutex{second_, "stock"}.acquire();
    auto waiting = start_waiting(first_);
    ASSERT_TRUE(line_becomes(1));
    ASSERT_TRUE(head_listens());
    const auto owner = server_.cli({"LINDEX", queue_, "0"});
    const auto questions = [&] {
        const auto text = server_.cli({"INFO", "commandstats"});
        const auto at = text.find("cmdstat_evalsha:calls=");
        return at == std::string::npos ? 0 : std::stoi(text.substr(at + 22));
    };
    const auto before = questions();
    server_.cli({"PUBLISH", "redisson_lock__channel:{stock}:" + owner,
                 "granted 1 " + std::to_string(held.token().value + 1) + " 1 " + owner + " stock"});
    // It asks again instead, which shows that the message was read.
    ASSERT_TRUE(eventually([&] { return questions() > before || is_done(waiting); }));
    EXPECT_FALSE(is_done(waiting)) << "somebody else holds the lock";
    EXPECT_TRUE(held);
    held.release();
    EXPECT_TRUE(waiting.get().has_value());
}

}  // namespace

}  // namespace holdfast::testing
