#include <redis/net/connection.hpp>
#include <thread>

#include <array>
#include <atomic>
#include <future>
#include <mutex>
#include <set>

#include <gtest/gtest.h>

#include "server.hpp"

namespace holdfast::engines::redis::test {

namespace {

connection_settings quickly() {
    return {.login = {}, .tls = {}, .database = 0, .connect_timeout = 1s};
}

/// Counts what has ended without anybody waiting for it.
struct endings {
    std::atomic<int> count{0};
    std::mutex mutex;
    std::vector<errc> codes;

    connection::done note() {
        return [this](const connection::result& got) {
            {
                const std::lock_guard lock{mutex};
                codes.push_back(got.error.code);
            }
            ++count;
        };
    }
};

TEST(connection, sixteen_threads_get_exactly_their_own_answers) {
    const server redis;
    connection tested{redis.where(), {}, {}, {}};
    std::atomic<int> wrong{0};
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 16; ++thread) {
        threads.emplace_back([&, thread] {
            for (int count = 0; count < 500; ++count) {
                const std::string word = std::to_string(thread) + ":" + std::to_string(count);
                const auto answer = ask(tested, {"ECHO", word});
                wrong += answer.error || answer.replies.size() != 1 || answer.replies[0].text != word;
            }
        });
    }
    threads.clear();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(tested.commands_sent(), 16U * 500U);
}

TEST(connection, callers_that_wait_and_callers_that_do_not_share_it) {
    const server redis;
    connection tested{redis.where(), {}, {}, {}};
    std::atomic<int> wrong{0};
    std::atomic<int> ended{0};
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 8; ++thread) {
        threads.emplace_back([&, thread] {
            for (int count = 0; count < 500; ++count) {
                const std::string word = std::to_string(thread) + "/" + std::to_string(count);
                const auto from =
                    (thread + count) % 2 == 0 ? caller::may_block : caller::must_not_block;
                tested.send(command({"ECHO", word}), {clock::now() + patience, from},
                            [&, word](const connection::result& answer) {
                                wrong += answer.error || answer.replies.at(0).text != word;
                                ++ended;
                            });
            }
        });
    }
    threads.clear();
    EXPECT_TRUE(eventually([&] { return ended == 8 * 500; }));
    EXPECT_EQ(wrong, 0);
}

TEST(connection, requests_of_one_thread_take_effect_in_their_order) {
    const server redis;
    connection tested{redis.where(), {}, {}, {}};
    std::atomic<int> in_order{0};
    for (int count = 0; count < 2000; ++count) {
        tested.send(command({"INCR", "counter"}), {clock::now() + patience, caller::must_not_block},
                    [&, count](const connection::result& answer) {
                        in_order += !answer.error && answer.replies.at(0).integer == count + 1;
                    });
    }
    EXPECT_EQ(ask(tested, {"GET", "counter"}).replies.at(0).text, "2000");
    EXPECT_TRUE(eventually([&] { return in_order == 2000; }));
}

TEST(connection, a_request_of_several_commands_gets_all_their_replies_and_errors_are_replies) {
    const server redis;
    connection tested{redis.where(), {}, {}, {}};
    connection::result answer;
    tested.send(
        [](std::string& out, const server_facts&) {
            for (const std::string_view word : {"PING", "NONSENSE", "DBSIZE"}) {
                append_command(out, std::span{&word, 1});
            }
            return connection::expected{3};
        },
        {clock::now() + patience, caller::may_block},
        [&](connection::result got) { answer = std::move(got); });
    EXPECT_FALSE(answer.error);
    ASSERT_EQ(answer.replies.size(), 3U);
    EXPECT_EQ(answer.replies[0].text, "PONG");
    EXPECT_EQ(answer.replies[1].error_code(), "ERR");
    EXPECT_EQ(answer.replies[2].integer, 0);
}

TEST(connection, a_large_answer_and_a_large_request_go_through) {
    const server redis;
    connection tested{redis.where(), {}, {}, {}};
    const std::string large(20'000'000, 'x');
    EXPECT_EQ(ask(tested, {"SET", "large", large}).replies.at(0).text, "OK");
    EXPECT_TRUE(ask(tested, {"GET", "large"}).replies.at(0).text == large);
}

TEST(connection, what_was_asked_ahead_is_ignored) {
    const server redis;
    connection tested{redis.where(), {}, {}, {}};
    connection::result answer;
    tested.send(
        [](std::string& out, const server_facts&) {
            out += "NONSENSE\r\nECHO wanted\r\n";
            return connection::expected{.wanted = 1, .ignored = 1};
        },
        {clock::now() + patience, caller::may_block}, [&](auto got) { answer = std::move(got); });
    ASSERT_EQ(answer.replies.size(), 1);
    EXPECT_EQ(answer.replies[0].text, "wanted");
    EXPECT_EQ(ask(tested, {"ECHO", "next"}).replies.at(0).text, "next");
}

TEST(connection, a_late_reply_is_dropped_in_order) {
    const server redis;
    connection tested{redis.where(), {}, {}, {}};
    std::set<std::uint64_t> generations;
    const auto echo = [&](std::string& out, const server_facts& facts) {
        generations.insert(facts.generation);
        const std::array<std::string_view, 2> words{"ECHO", "mine"};
        append_command(out, words);
        return connection::expected{1};
    };
    connection::result answer;
    const auto keep = [&](connection::result got) { answer = std::move(got); };
    tested.send(echo, {clock::now() + patience, caller::may_block}, keep);
    EXPECT_EQ(ask(tested, {"DEBUG", "SLEEP", "0.3"}, 50ms).error.code, errc::outcome_unknown);
    tested.send(echo, {clock::now() + patience, caller::may_block}, keep);
    EXPECT_EQ(answer.replies.at(0).text, "mine");
    EXPECT_EQ(generations.size(), 1U) << "the connection was replaced";
}

TEST(connection, a_stopped_server_keeps_nobody_past_the_deadline) {
    const server redis;
    connection tested{redis.where(), quickly(), {}, {}};
    ASSERT_EQ(ask(tested, {"PING"}).error.code, errc{});
    redis.stop();
    std::atomic<int> late{0};
    std::atomic<int> ended{0};
    std::vector<std::jthread> threads;
    const auto check = [&](clock::time_point deadline) {
        return [&, deadline](const connection::result& answer) {
            const auto now = clock::now();
            late += !answer.error || now < deadline - 5ms || now > deadline + 500ms;
            ++ended;
        };
    };
    for (int thread = 0; thread < 8; ++thread) {
        threads.emplace_back([&, thread] {
            const auto deadline = clock::now() + 100ms + 60ms * thread;
            const auto from = thread % 2 == 0 ? caller::may_block : caller::must_not_block;
            tested.send(command({"PING"}), {deadline, from}, check(deadline));
        });
    }
    threads.clear();
    EXPECT_TRUE(eventually([&] { return ended == 8; }));
    EXPECT_EQ(late, 0);
    redis.resume();
}

TEST(connection, a_server_that_hangs_for_good_is_given_up_and_found_again_when_it_wakes) {
    const server redis;
    std::atomic<int> losses{0};
    connection tested{redis.where(), quickly(), {}, {.check_greeting = {}, .lost = [&](const failure&) {
                                                         ++losses;
                                                     }}};
    ASSERT_EQ(ask(tested, {"PING"}).error.code, errc{});
    redis.stop();
    EXPECT_EQ(ask(tested, {"PING"}, 100ms).error.code, errc::outcome_unknown);
    EXPECT_TRUE(eventually([&] { return losses > 0; }));
    redis.resume();
    EXPECT_TRUE(eventually([&] { return !ask(tested, {"PING"}, 1s).error; }));
}

TEST(connection, what_was_not_sent_in_time_is_never_sent) {
    const server redis;
    connection tested{redis.where(), {}, {}, {}};
    ASSERT_EQ(ask(tested, {"PING"}).error.code, errc{});
    redis.stop();
    const std::string large(30'000'000, 'x');
    std::promise<connection::result> first;
    tested.send(command({"SET", "large", large}), {clock::now() + patience, caller::must_not_block},
                [&](connection::result got) { first.set_value(std::move(got)); });
    EXPECT_EQ(ask(tested, {"SET", "small", "x"}, 50ms).error.code, errc::store_unavailable);
    endings unsent;
    tested.send(command({"SET", "small", "x"}), {clock::now() + 50ms, caller::must_not_block},
                unsent.note());
    EXPECT_TRUE(eventually([&] { return unsent.count == 1; }));
    EXPECT_EQ(unsent.codes.at(0), errc::store_unavailable);
    redis.resume();
    EXPECT_EQ(first.get_future().get().replies.at(0).text, "OK");
    EXPECT_EQ(ask(tested, {"EXISTS", "small"}).replies.at(0).integer, 0);
}

TEST(connection, a_killed_server_ends_requests_at_once_and_a_new_one_is_found) {
    server redis;
    connection tested{redis.where(), quickly(), {}, {}};
    ASSERT_EQ(ask(tested, {"PING"}).error.code, errc{});
    redis.stop();
    const auto asked_at = clock::now();
    auto waiting = std::async(std::launch::async, [&] { return ask(tested, {"PING"}); });
    endings others;
    tested.send(command({"PING"}), {clock::now() + patience, caller::must_not_block}, others.note());
    EXPECT_TRUE(eventually([&] { return tested.commands_sent() == 3; }));
    redis.kill();
    EXPECT_EQ(waiting.get().error.code, errc::outcome_unknown);
    EXPECT_TRUE(eventually([&] { return others.count == 1; }));
    EXPECT_EQ(others.codes.at(0), errc::outcome_unknown);
    EXPECT_LT(clock::now() - asked_at, patience / 2);
    const auto refused = ask(tested, {"PING"});
    EXPECT_EQ(refused.error.code, errc::store_unavailable);
    EXPECT_NE(refused.error.detail.find("127.0.0.1:" + std::to_string(redis.port())),
              std::string::npos);
    EXPECT_NE(refused.error.detail.find("is the server up"), std::string::npos) << refused.error.detail;
    redis.restart();
    EXPECT_TRUE(eventually([&] { return !ask(tested, {"PING"}).error; }));
}

TEST(connection, one_that_the_server_closed_while_idle_is_replaced_before_anything_is_sent) {
    const server redis;
    std::atomic<int> losses{0};
    connection tested{redis.where(), quickly(), {}, {.check_greeting = {}, .lost = [&](const failure&) {
                                                         ++losses;
                                                     }}};
    ASSERT_EQ(ask(tested, {"PING"}).error.code, errc{});
    const auto used_at = clock::now();
    admin other{redis.port()};
    ASSERT_EQ(other.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"})->integer, 1);
    // A connection is trusted for a second after its last use; that has to be over.
    ASSERT_TRUE(eventually([&] { return clock::now() - used_at > 1100ms; }));
    EXPECT_EQ(ask(tested, {"PING"}).error.code, errc{});
    EXPECT_TRUE(eventually([&] { return losses == 1; }));
}

TEST(connection, after_a_reset_pending_requests_are_unknown_and_the_next_has_a_new_connection) {
    const server redis;
    connection tested{redis.where(), quickly(), {}, {}};
    ASSERT_EQ(ask(tested, {"PING"}).error.code, errc{});
    redis.stop();
    endings pending;
    tested.send(command({"PING"}), {clock::now() + patience, caller::must_not_block}, pending.note());
    tested.reset({errc::store_unavailable, "for a reason"});
    EXPECT_TRUE(eventually([&] { return pending.count == 1; }));
    EXPECT_EQ(pending.codes.at(0), errc::outcome_unknown);
    redis.resume();
    std::uint64_t generation = 0;
    connection::result answer;
    tested.send(
        [&](std::string& out, const server_facts& facts) {
            generation = facts.generation;
            return command({"PING"})(out, facts);
        },
        {clock::now() + patience, caller::may_block},
        [&](connection::result got) { answer = std::move(got); });
    EXPECT_FALSE(answer.error);
    EXPECT_EQ(generation, 2U);
}

TEST(connection, the_servers_clock_is_known_when_a_request_is_written) {
    const server redis;
    connection tested{redis.where(), {}, {}, {}};
    std::int64_t time = 0;
    tested.send(
        [&](std::string& out, const server_facts& facts) {
            time = facts.time;
            return command({"PING"})(out, facts);
        },
        {clock::now() + patience, caller::may_block}, [](const connection::result&) {});
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    EXPECT_LT(std::abs(now.count() - time), 60'000'000);
}

TEST(connection, a_completion_may_ask_again_and_again) {
    const server redis;
    connection tested{redis.where(), {}, {}, {}};
    std::atomic<int> rounds{0};
    std::atomic<int> nested{0};
    std::function<void(const connection::result&)> again = [&](const connection::result&) {
        static thread_local int depth = 0;
        nested += ++depth > 1;
        if (rounds < 5000) {
            tested.send(command({"PING"}), {clock::now() + patience, caller::may_block}, again);
        }
        --depth;
        ++rounds;
    };
    tested.send(command({"PING"}), {clock::now() + patience, caller::may_block}, again);
    EXPECT_TRUE(eventually([&] { return rounds == 5001; }));
    EXPECT_EQ(nested, 0) << "a completion ran inside another";
}

TEST(connection, a_completion_that_asks_again_whenever_it_is_refused_does_not_exhaust_the_stack) {
    connection tested{{.host = "127.0.0.1", .port = free_port(), .path = {}}, quickly(), {}, {}};
    std::atomic<int> rounds{0};
    std::function<void(const connection::result&)> again = [&](const connection::result& got) {
        if (got.error.code != errc::shut_down && ++rounds < 100'000) {
            tested.send(command({"PING"}), {clock::now() + patience, caller::must_not_block}, again);
        }
    };
    tested.send(command({"PING"}), {clock::now() + patience, caller::must_not_block}, again);
    EXPECT_TRUE(eventually([&] { return rounds == 100'000; }));
}

TEST(connection, requests_wait_while_the_first_connection_is_made) {
    const server redis;
    connection tested{redis.where(), {}, {}, {}};
    std::atomic<int> good{0};
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 8; ++thread) {
        threads.emplace_back([&] { good += !ask(tested, {"PING"}).error; });
    }
    threads.clear();
    EXPECT_EQ(good, 8);
}

TEST(connection, the_greetings_replies_are_shown_and_may_be_refused) {
    const server redis;
    std::vector<value> seen;
    connection tested{redis.where(),
                      {},
                      {{"ECHO", "hello"}, {"NONSENSE"}},
                      {.check_greeting =
                           [&](const std::vector<value>& replies) {
                               seen = replies;
                               return failure{errc::bad_configuration, "not this one"};
                           },
                       .lost = {}}};
    const failure refused = tested.connect(clock::now() + patience);
    EXPECT_EQ(refused.code, errc::bad_configuration);
    EXPECT_EQ(refused.detail, "not this one");
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[0].text, "hello");
    EXPECT_TRUE(seen[1].is_error());
}

TEST(connection, destruction_ends_what_is_pending) {
    const server redis;
    redis.stop();
    endings seen;
    const auto started = clock::now();
    {
        auto tested =
            std::make_unique<connection>(redis.where(), connection_settings{},
                                         std::vector<std::vector<std::string>>{}, connection::events{});
        for (int count = 0; count < 10; ++count) {
            tested->send(command({"PING"}), {clock::now() + patience, caller::must_not_block},
                         seen.note());
        }
    }
    EXPECT_EQ(seen.count, 10);
    EXPECT_EQ(seen.codes, std::vector<errc>(10, errc::shut_down));
    EXPECT_LT(clock::now() - started, patience / 2);
    redis.resume();
}

TEST(connection, destruction_ends_what_was_sent_too) {
    const server redis;
    endings seen;
    {
        connection tested{redis.where(), {}, {}, {}};
        ASSERT_EQ(ask(tested, {"PING"}).error.code, errc{});
        redis.stop();
        for (int count = 0; count < 10; ++count) {
            tested.send(command({"PING"}), {clock::now() + patience, caller::must_not_block},
                        seen.note());
        }
    }
    redis.resume();
    EXPECT_EQ(seen.codes, std::vector<errc>(10, errc::shut_down));
}

TEST(connection, a_completion_may_destroy_the_connection) {
    const server redis;
    auto tested =
        std::make_unique<connection>(redis.where(), connection_settings{},
                                     std::vector<std::vector<std::string>>{}, connection::events{});
    std::promise<void> destroyed;
    tested->send(command({"PING"}), {clock::now() + patience, caller::must_not_block},
                 [&](const connection::result&) {
                     tested.reset();
                     destroyed.set_value();
                 });
    EXPECT_EQ(destroyed.get_future().wait_for(patience), std::future_status::ready);
}

TEST(connection, a_completion_may_destroy_the_connection_on_a_thread_that_waits_in_a_call) {
    const server redis;
    auto tested =
        std::make_unique<connection>(redis.where(), connection_settings{},
                                     std::vector<std::vector<std::string>>{}, connection::events{});
    ASSERT_EQ(ask(*tested, {"PING"}).error.code, errc{});
    std::promise<std::thread::id> destroyed_by;
    const auto slowly = command({"BLPOP", "nothing", "0.1"});
    const call unattended{clock::now() + patience, caller::must_not_block};
    // The first answer makes the caller that waits the reader, the second comes to it.
    tested->send(slowly, unattended, [](const connection::result&) {});
    tested->send(slowly, unattended, [&](const connection::result&) {
        tested.reset();
        destroyed_by.set_value(std::this_thread::get_id());
    });
    EXPECT_EQ(ask(*tested, {"BLPOP", "nothing", "10"}).error.code, errc::shut_down);
    EXPECT_EQ(destroyed_by.get_future().get(), std::this_thread::get_id());
}

TEST(connection, a_request_whose_time_is_over_is_not_sent) {
    const server redis;
    connection tested{redis.where(), {}, {}, {}};
    ASSERT_EQ(ask(tested, {"PING"}).error.code, errc{});
    EXPECT_EQ(ask(tested, {"PING"}, -1ms).error.code, errc::store_unavailable);
    EXPECT_EQ(tested.commands_sent(), 1U);
}

TEST(connection, a_unix_socket_serves_as_well) {
    const temporary_directory directory;
    const server redis{{"--unixsocket", file_in(directory, "socket")}};
    connection tested{{.host = {}, .port = 0, .path = file_in(directory, "socket")}, {}, {}, {}};
    EXPECT_EQ(ask(tested, {"PING"}).replies.at(0).text, "PONG");
}

}  // namespace

}  // namespace holdfast::engines::redis::test
