#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>

#include <chrono>
#include <functional>
#include <future>
#include <limits>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/guard/redis.hpp>
#include <holdfast/holdfast.hpp>
#include <support/redis_servers.hpp>

#include "odd_keys.hpp"

#include <hiredis/hiredis.h>

namespace holdfast::guard::testing {

namespace {

using namespace std::chrono_literals;
using testing_support::redis_server;
using verdict = once_reply::verdict;
using field = std::pair<std::string_view, std::string_view>;

template <class Call>
[[nodiscard]] std::error_code error_of(Call&& call) {
    try {
        static_cast<void>(call());
    } catch (const std::system_error& error) {
        return error.code();
    }
    return {};
}

redis_server& server() {
    static redis_server only;
    return only;
}

using context_handle = std::unique_ptr<redisContext, decltype(&::redisFree)>;

/// Whatever is asked of it: nothing is sent on a connection that is known to be broken.
void expect_unavailable(redisContext* connection) {
    const once_ticket ticket{.operation = "pay:123", .claimant = "somebody", .attempt = 1};
    const std::vector<std::function<void()>> calls{
        [&] { static_cast<void>(redis_fence{connection}.set("stock", {7}, "99")); },
        [&] { static_cast<void>(redis_fence{connection}.announce("stock", {7})); },
        [&] { static_cast<void>(redis_fence{connection}.newest("stock")); },
        [&] { static_cast<void>(redis_storage_lease{connection}.read("row")); },
        [&] { static_cast<void>(redis_storage_lease{connection}.write("row", {}, {})); },
        [&] { static_cast<void>(redis_once{connection}.claim("pay:123")); },
        [&] { static_cast<void>(redis_once{connection}.complete(ticket, "paid")); },
        [&] { static_cast<void>(redis_once{connection}.extend(ticket)); },
        [&] { redis_once{connection}.abandon(ticket); },
    };
    for (std::size_t index = 0; index < calls.size(); ++index) {
        EXPECT_EQ(error_of([&] { return calls[index](), 0; }), errc::store_unavailable)
            << "call " << index;
    }
}

class redis_guards : public ::testing::Test {
protected:
    redis_guards() {
        if (context_ == nullptr || context_->err != 0) {
            throw std::runtime_error{"no connection"};
        }
        server().cli({"FLUSHALL"});
    }

    const context_handle context_{::redisConnectUnix(server().unix_socket().c_str()), &::redisFree};
    redis_fence fence_{context_.get()};
    redis_storage_lease lease_{context_.get()};
    redis_once once_{context_.get()};
};

TEST_F(redis_guards, a_value_is_set_unless_a_larger_token_was_seen) {
    EXPECT_EQ(fence_.set("stock", {9}, "90"), admission::admitted);
    EXPECT_EQ(fence_.set("stock", {9}, "80"), admission::admitted);
    EXPECT_EQ(fence_.set("stock", {10}, "70"), admission::admitted);
    EXPECT_EQ(fence_.set("stock", {9}, "10"), admission::stale);
    EXPECT_EQ(server().cli({"GET", "stock"}), "70");
    EXPECT_EQ(fence_.newest("stock"), fencing_token{10});
    EXPECT_EQ(fence_.newest("another"), fencing_token{0});
}

TEST_F(redis_guards, fields_are_set_together_or_not_at_all) {
    const field sold[]{{"amount", "90"}, {"by", "a\0b"}};
    EXPECT_EQ(fence_.set_fields("stock", {10}, sold), admission::admitted);
    const field late[]{{"amount", "10"}, {"late", "1"}};
    EXPECT_EQ(fence_.set_fields("stock", {9}, late), admission::stale);
    EXPECT_EQ(server().cli({"HGET", "stock", "amount"}), "90");
    EXPECT_EQ(server().cli({"HLEN", "stock"}), "2");
}

TEST_F(redis_guards, a_script_of_the_users_sees_its_own_keys_and_arguments) {
    const std::string_view script =
        "redis.call('INCRBY', KEYS[2], ARGV[1]) return {#KEYS, #ARGV, KEYS[1]}";
    const std::string_view keys[]{"{stock}", "{stock}:sold"};
    const std::string_view arguments[]{"3"};
    const auto done = fence_.run(script, {10}, keys, arguments);
    ASSERT_EQ(done.verdict, admission::admitted);
    const auto& returned = *done.reply->element[1];
    EXPECT_EQ(returned.element[0]->integer, 2);
    EXPECT_EQ(returned.element[1]->integer, 1);
    EXPECT_STREQ(returned.element[2]->str, "{stock}");
    EXPECT_EQ(fence_.run(script, {9}, keys, arguments).verdict, admission::stale);
    EXPECT_EQ(server().cli({"GET", "{stock}:sold"}), "3");
}

TEST_F(redis_guards, a_key_that_is_a_lock_is_refused_and_the_lock_stays) {
    const field fields[]{{"amount", "90"}};
    const std::vector<std::function<void()>> calls{
        [&] { static_cast<void>(fence_.set("stock:101", {7}, "99")); },
        [&] { static_cast<void>(fence_.set_fields("stock:101", {7}, fields)); },
        [&] { static_cast<void>(fence_.announce("stock:101", {7})); },
        [&] { static_cast<void>(lease_.write("stock:101", lease_.read("stock:101"), fields)); },
    };
    client store{"redis://127.0.0.1:" + std::to_string(server().port())};
    mutex plain{store, "stock:101"};
    shared_mutex shared{store, "stock:101"};
    const auto refuses_all = [&] {
        const auto before = server().cli({"HGETALL", "stock:101"});
        for (const auto& each : calls) {
            try {
                each();
                ADD_FAILURE() << "it was not refused";
            } catch (const std::system_error& error) {
                EXPECT_EQ(error.code(), errc::wrong_kind);
                EXPECT_NE(std::string{error.what()}.find("\"stock:101\" is the name of a lock"),
                          std::string::npos)
                    << error.what();
            }
        }
        EXPECT_EQ(server().cli({"HGETALL", "stock:101"}), before);
    };
    {
        const auto held = plain.acquire();
        refuses_all();
    }
    {
        const auto reading = shared.acquire_shared();
        refuses_all();
    }
    const auto writing = shared.acquire();
    refuses_all();
}

TEST_F(redis_guards, a_lock_refuses_the_key_of_a_resource) {
    const field fields[]{{"amount", "90"}};
    ASSERT_EQ(lease_.write("stock-row:101", lease_.read("stock-row:101"), fields), contest::won);
    client store{"redis://127.0.0.1:" + std::to_string(server().port())};
    mutex lock{store, "stock-row:101"};
    EXPECT_EQ(error_of([&] { return lock.try_acquire(); }), errc::wrong_kind);
    EXPECT_EQ(server().cli({"HGET", "stock-row:101", "amount"}), "90");
}

TEST_F(redis_guards, a_hash_of_users_whose_fields_look_like_owners_is_no_lock) {
    const std::string one = "0f3c1fb4-3f0b-4f5e-9a52-6a4f7f1d2c11:1";
    const std::string two = "0f3c1fb4-3f0b-4f5e-9a52-6a4f7f1d2c12:2";
    const field total[]{{"total", "3"}};
    server().cli({"HSET", "basket", one, "1", two, "2", "total", "3"});
    for (int round = 0; round < 30; ++round) {  // the fields that are looked at are drawn
        server().cli({"HDEL", "basket", "lease_seq"});
        ASSERT_EQ(lease_.write("basket", {}, total), contest::won) << "round " << round;
    }
    const field item[]{{one, "1"}};
    EXPECT_EQ(fence_.set_fields("cart", {1}, item), admission::admitted);
    EXPECT_EQ(fence_.set_fields("cart", {2}, item), admission::admitted);
}

TEST_F(redis_guards, a_hash_with_fields_like_a_locks_among_others_is_no_lock) {
    server().cli({"HSET", "row", "mode", "fast", "name", "x"});
    const field fields[]{{"amount", "90"}};
    EXPECT_EQ(fence_.set_fields("row", {1}, fields), admission::admitted);
    EXPECT_EQ(lease_.write("row", {}, fields), contest::won);
}

TEST_F(redis_guards, a_script_that_returns_nothing_is_admitted_all_the_same) {
    const std::string_view keys[]{"stock"};
    for (const auto* const script :
         {"-- a comment at the end", "return nil", "redis.call('SET', KEYS[1], 'x')"}) {
        const auto done = fence_.run(script, {10}, keys, {});
        EXPECT_EQ(done.verdict, admission::admitted);
        ASSERT_EQ(done.reply->elements, 2U) << script;
        EXPECT_EQ(done.reply->element[1]->type, REDIS_REPLY_NIL) << script;
    }
}

TEST_F(redis_guards, tokens_are_exact_up_to_the_largest) {
    const fencing_token largest{std::numeric_limits<std::int64_t>::max()};
    EXPECT_EQ(fence_.announce("stock", largest), admission::admitted);
    EXPECT_EQ(fence_.announce("stock", {largest.value - 1}), admission::stale);
    EXPECT_EQ(fence_.announce("stock", largest), admission::admitted);
}

TEST_F(redis_guards, a_check_on_the_write_alone_loses_an_update) {
    server().cli({"SET", "stock", "100"});
    const int read_by_new = std::stoi(server().cli({"GET", "stock"}));
    EXPECT_EQ(fence_.set("stock", {33}, "99"), admission::admitted);
    EXPECT_EQ(fence_.set("stock", {34}, std::to_string(read_by_new - 1)), admission::admitted);
    EXPECT_EQ(server().cli({"GET", "stock"}), "99") << "two sales were admitted";
}

TEST_F(redis_guards, announced_before_the_read_the_older_holder_is_refused_and_nothing_is_lost) {
    server().cli({"SET", "stock", "100"});
    EXPECT_EQ(fence_.announce("stock", {34}), admission::admitted);
    const int read_by_new = std::stoi(server().cli({"GET", "stock"}));
    EXPECT_EQ(fence_.set("stock", {33}, "99"), admission::stale);
    EXPECT_EQ(fence_.set("stock", {34}, std::to_string(read_by_new - 1)), admission::admitted);
    EXPECT_EQ(server().cli({"GET", "stock"}), "99") << "one sale was admitted";
}

TEST_F(redis_guards, what_belongs_to_a_key_lies_in_its_slot) {
    const redis_server node{{.arguments = {"--cluster-enabled", "yes"}}};
    const auto slot = [&](const std::string& key) { return node.cli({"CLUSTER", "KEYSLOT", key}); };
    for (const std::string key : {"stock", "a{tag}b", "{}stock{x", "a{b"}) {
        SCOPED_TRACE(key);
        const auto failed = error_of([&] { return fence_.announce(key, {1}); });
        EXPECT_TRUE(!failed || failed == errc::invalid_name);
        for (const auto& one : server().ask({"KEYS", "holdfast_fence:*"}).items) {
            EXPECT_EQ(slot(one.text), slot(key)) << one.text;
        }
        server().cli({"FLUSHALL"});
    }
}

TEST_F(redis_guards, a_name_and_the_same_in_braces_have_nothing_in_common) {
    const auto plain = once_.claim("pay");
    const auto braced = once_.claim("{pay}");
    ASSERT_EQ(plain.result, verdict::claimed);
    ASSERT_EQ(braced.result, verdict::claimed);
    EXPECT_EQ(once_.complete(plain.ticket, "paid"), completion::recorded);
    EXPECT_EQ(once_.claim("{pay}").result, verdict::running);

    EXPECT_EQ(fence_.set("stock", {34}, "99"), admission::admitted);
    EXPECT_EQ(fence_.set("{stock}", {33}, "98"), admission::admitted);
    EXPECT_EQ(fence_.newest("stock"), fencing_token{34});
    EXPECT_EQ(fence_.newest("{stock}"), fencing_token{33});
}

/// Keys that cannot have a companion in their slot are refused.
TEST_F(redis_guards, no_two_keys_are_the_same) {
    const auto keys = odd_keys();
    std::vector<once_ticket> tickets;
    const auto token = [&](std::size_t index) { return fencing_token{2 * (keys.size() - index)}; };
    for (std::size_t index = 0; index < keys.size(); ++index) {
        EXPECT_EQ(fence_.announce(keys[index], token(index)), admission::admitted);
        const field sold[]{{"by", keys[index]}};
        EXPECT_EQ(lease_.write("row" + keys[index], {0}, sold), contest::won);
        tickets.push_back(once_.claim(keys[index]).ticket);
        EXPECT_EQ(tickets.back().attempt, 1U);
        EXPECT_EQ(once_.extend(tickets.back()), completion::recorded);
    }
    for (const auto& ticket : tickets) {
        EXPECT_EQ(once_.complete(ticket, ticket.operation), completion::recorded);
    }
    for (std::size_t index = 0; index < keys.size(); ++index) {
        SCOPED_TRACE(index);
        EXPECT_EQ(fence_.newest(keys[index]), token(index));
        EXPECT_EQ(fence_.announce(keys[index], {token(index).value - 1}), admission::stale);
        EXPECT_EQ(lease_.read("row" + keys[index]), lease_sequence{1});
        EXPECT_EQ(once_.claim(keys[index]).outcome, keys[index]);
    }
}

TEST_F(redis_guards, terms_out_of_range_are_refused_at_construction) {
    for (const auto& terms :
         {once_terms{.claim = 0ms}, once_terms{.claim = std::chrono::milliseconds::max()},
          once_terms{.keep = -1ms}, once_terms{.keep = 0ms}, once_terms{.keep = 999ms},
          once_terms{.keep = std::chrono::milliseconds::max()}}) {
        EXPECT_EQ(error_of([&] { return redis_once(context_.get(), terms); }), errc::invalid_argument);
    }
    redis_once patient{context_.get(),
                       {.claim = std::chrono::days{366}, .keep = std::chrono::days{36525}}};
    const auto mine = patient.claim("pay:123").ticket;
    EXPECT_GT(once_.claim("pay:123").retry_after, std::chrono::days{365});
    EXPECT_EQ(patient.extend(mine), completion::recorded);
    EXPECT_EQ(patient.complete(mine, "paid"), completion::recorded);
    EXPECT_EQ(once_.claim("pay:123").outcome, "paid");
}

TEST_F(redis_guards, a_number_that_is_none_is_an_error_and_not_zero) {
    for (const std::string wild : {"abc", "12abc", "007", "1.5", "18446744073709551615", ""}) {
        SCOPED_TRACE(wild);
        server().cli({"SET", "holdfast_fence:{stock}", wild});
        server().cli({"HSET", "row", "lease_seq", wild});
        EXPECT_EQ(error_of([&] { return fence_.newest("stock"); }), errc::store_error);
        EXPECT_EQ(error_of([&] { return lease_.read("row"); }), errc::store_error);
    }
}

/// The text of the code itself speaks of locks.
TEST_F(redis_guards, errors_about_keys_say_whose_key_it_is) {
    const auto text_of = [](const std::function<void()>& call) -> std::string {
        try {
            call();
        } catch (const std::system_error& error) {
            return error.what();
        }
        return {};
    };
    const auto empty = text_of([&] { static_cast<void>(fence_.newest("")); });
    EXPECT_NE(empty.find("a guard's key must not be empty"), std::string::npos) << empty;
    server().cli({"SADD", "holdfast_fence:{stock}", "7"});
    server().cli({"SADD", "row", "7"});
    for (const auto& text : {text_of([&] { static_cast<void>(fence_.newest("stock")); }),
                             text_of([&] { static_cast<void>(fence_.announce("stock", {7})); }),
                             text_of([&] { static_cast<void>(lease_.read("row")); })}) {
        EXPECT_NE(text.find("a key of the guard's command holds a value of another type"),
                  std::string::npos)
            << text;
        EXPECT_NE(text.find("WRONGTYPE"), std::string::npos) << text;
    }
    EXPECT_EQ(error_of([&] { return fence_.newest("stock"); }), errc::wrong_kind);
}

TEST_F(redis_guards, what_the_server_refuses_for_the_moment_is_unavailable) {
    server().cli({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_EQ(error_of([&] { return fence_.announce("stock", {7}); }), errc::store_unavailable);
    EXPECT_EQ(error_of([&] { return once_.claim("pay:123"); }), errc::store_unavailable);
    server().cli({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_EQ(fence_.announce("stock", {7}), admission::admitted);
}

TEST_F(redis_guards, a_user_who_may_not_is_unauthorised) {
    server().cli({"ACL", "SETUSER", "limited", "on", ">secret", "~*", "+get"});
    const std::unique_ptr<redisReply, decltype(&::freeReplyObject)> reply{
        static_cast<redisReply*>(::redisCommand(context_.get(), "AUTH limited secret")),
        &::freeReplyObject};
    ASSERT_STREQ(reply->str, "OK");
    EXPECT_EQ(error_of([&] { return fence_.announce("stock", {7}); }), errc::unauthorised);
}

/// Redis undoes nothing.
TEST_F(redis_guards, a_script_that_fails_half_way_has_done_the_first_half) {
    const std::string_view keys[]{"stock"};
    EXPECT_EQ(error_of([&] {
                  return fence_.run("redis.call('SET', KEYS[1], 99) redis.call('LPUSH', KEYS[1], 1)",
                                    {34}, keys, {});
              }),
              errc::wrong_kind);
    EXPECT_EQ(server().cli({"GET", "stock"}), "99");
    EXPECT_EQ(fence_.announce("stock", {33}), admission::stale);
}

TEST_F(redis_guards, a_token_never_expires) {
    EXPECT_EQ(fence_.set("stock", {34}, "99"), admission::admitted);
    EXPECT_EQ(server().cli({"PTTL", "holdfast_fence:{stock}"}), "-1");
}

TEST_F(redis_guards, a_claim_that_ended_is_still_good_if_nobody_took_over) {
    const auto slow = once_.claim("pay:123").ticket;
    server().cli({"HSET", "holdfast_once:{pay:123}", "ends", "1"});
    EXPECT_EQ(once_.complete(slow, "done"), completion::recorded);
    EXPECT_EQ(once_.claim("pay:123").outcome, "done");
}

TEST_F(redis_guards, misuse_and_refusals_are_errors) {
    EXPECT_EQ(error_of([&] { return fence_.set("", {7}, "x"); }), errc::invalid_name);
    EXPECT_EQ(error_of([&] { return fence_.set("a}b", {7}, "x"); }), errc::invalid_name);
    EXPECT_EQ(error_of([&] { return fence_.set("a", {}, "x"); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return fence_.run("return 1", {7}, {}, {}); }), errc::invalid_argument);
    server().cli({"SET", "text", "x"});
    EXPECT_EQ(error_of([&] { return lease_.read("text"); }), errc::wrong_kind);
    const field own[]{{"lease_seq", "7"}};
    EXPECT_EQ(error_of([&] { return lease_.write("row", {0}, own); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return redis_once(context_.get(), {.claim = 0ms}); }),
              errc::invalid_argument);
}

TEST_F(redis_guards, a_connection_that_is_cut_during_a_request_leaves_the_outcome_unknown) {
    server().cli({"CLIENT", "PAUSE", "100000", "WRITE"});
    auto announced = std::async(
        std::launch::async, [&] { return error_of([&] { return fence_.announce("stock", {7}); }); });
    testing_support::wait_until("the request has arrived",
                                [&] { return server().info("blocked_clients") == "1"; });
    server().client_kill("normal");
    EXPECT_EQ(announced.get(), errc::outcome_unknown);
    server().cli({"CLIENT", "UNPAUSE"});
    expect_unavailable(context_.get());
}

TEST_F(redis_guards, a_request_that_could_not_be_sent_changed_nothing) {
    // hiredis writes without regard to the signal, so its users ignore it.
    ::signal(SIGPIPE, SIG_IGN);
    server().client_kill("normal");
    EXPECT_EQ(error_of([&] { return fence_.announce("stock", {7}); }), errc::store_unavailable);
    expect_unavailable(context_.get());
    ASSERT_EQ(::redisReconnect(context_.get()), REDIS_OK);
    EXPECT_EQ(fence_.newest("stock"), fencing_token{0});
}

TEST(redis_connection, one_that_was_refused_is_unavailable) {
    const context_handle refused{::redisConnect("127.0.0.1", 1), &::redisFree};
    ASSERT_NE(refused->err, 0);
    expect_unavailable(refused.get());
}

TEST(redis_connection, one_that_does_not_block_is_refused_in_words) {
    const context_handle made{::redisConnectUnixNonBlock(server().unix_socket().c_str()), &::redisFree};
    EXPECT_EQ(error_of([&] { return redis_fence{made.get()}.newest("stock"); }),
              errc::invalid_argument);
}

TEST_F(redis_guards, commands_that_wait_to_be_sent_are_refused_in_words) {
    ASSERT_EQ(::redisAppendCommand(context_.get(), "PING"), REDIS_OK);
    EXPECT_EQ(error_of([&] { return fence_.announce("stock", {7}); }), errc::invalid_argument);
    void* reply = nullptr;
    ASSERT_EQ(::redisGetReply(context_.get(), &reply), REDIS_OK);
    ::freeReplyObject(reply);
    EXPECT_EQ(fence_.announce("stock", {7}), admission::admitted);
}

TEST_F(redis_guards, inside_multi_nothing_is_written_behind_a_refusal) {
    const once_ticket ticket{.operation = "pay:123", .claimant = "somebody", .attempt = 1};
    const std::vector<std::function<void()>> calls{
        [&] { static_cast<void>(fence_.set("stock", {7}, "99")); },
        [&] { static_cast<void>(fence_.announce("stock", {7})); },
        [&] { static_cast<void>(lease_.write("row", {}, {})); },
        [&] { static_cast<void>(once_.claim("pay:123")); },
        [&] { static_cast<void>(once_.complete(ticket, "paid")); },
    };
    for (std::size_t index = 0; index < calls.size(); ++index) {
        ::freeReplyObject(::redisCommand(context_.get(), "MULTI"));
        EXPECT_EQ(error_of([&] { return calls[index](), 0; }), errc::invalid_argument)
            << "call " << index;
        ::freeReplyObject(::redisCommand(context_.get(), "EXEC"));
        EXPECT_EQ(server().cli({"DBSIZE"}), "0") << "call " << index;
    }
}

/// All that the guards can be asked for; each must throw `code`.
class redis_unread : public redis_guards {
protected:
    void expect_all(errc code, const std::function<void(redisContext*)>& prepare) {
        const once_ticket ticket{.operation = "pay:123", .claimant = "somebody", .attempt = 1};
        using on = redisContext*;
        const std::vector<std::function<void(on)>> calls{
            [](on with) { static_cast<void>(redis_fence{with}.set("stock", {4}, "99")); },
            [](on with) { static_cast<void>(redis_fence{with}.announce("stock", {4})); },
            [](on with) { static_cast<void>(redis_fence{with}.newest("stock")); },
            [](on with) { static_cast<void>(redis_storage_lease{with}.read("row")); },
            [](on with) { static_cast<void>(redis_storage_lease{with}.write("row", {}, {})); },
            [](on with) { static_cast<void>(redis_once{with}.claim("pay:123")); },
            [&](on with) { static_cast<void>(redis_once{with}.complete(ticket, "paid")); },
            [&](on with) { static_cast<void>(redis_once{with}.extend(ticket)); },
            [&](on with) { redis_once{with}.abandon(ticket); },
        };
        for (std::size_t index = 0; index < calls.size(); ++index) {
            const context_handle made{::redisConnectUnix(server().unix_socket().c_str()), &::redisFree};
            prepare(made.get());
            EXPECT_EQ(error_of([&] { return calls[index](made.get()), 0; }), code) << "call " << index;
            if (code == errc::outcome_unknown) {
                expect_unavailable(made.get());
            }
        }
    }
    /// Sends so many of one command, and reads nothing.
    static void send(redisContext* with, int count, const char* command) {
        for (int sent = 0; sent < count; ++sent) {
            ASSERT_EQ(::redisAppendCommand(with, command), REDIS_OK);
        }
        int done = 0;
        while (done == 0) {
            ASSERT_EQ(::redisBufferWrite(with, &done), REDIS_OK);
        }
    }
    static void read_one(redisContext* with) {
        void* reply = nullptr;
        ASSERT_EQ(::redisGetReply(with, &reply), REDIS_OK);
        ::freeReplyObject(reply);
    }
    /// Waits until so many bytes have come, which nobody reads.
    static void wait_for_bytes(redisContext* with, int count) {
        testing_support::wait_until("the replies have come", [&] {
            int there = 0;
            return ::ioctl(with->fd, FIONREAD, &there) == 0 && there >= count;
        });
    }
};

TEST_F(redis_unread, replies_that_hiredis_has_received_are_refused_in_words) {
    expect_all(errc::invalid_argument, [](redisContext* with) {
        send(with, 2, "INCR other");
        wait_for_bytes(with, 8);
        read_one(with);  // receives both
    });
    EXPECT_EQ(server().cli({"KEYS", "holdfast*"}), "") << "nothing was sent";
}

TEST_F(redis_unread, half_a_reply_that_hiredis_has_received_is_refused_in_words) {
    expect_all(errc::invalid_argument, [](redisContext* with) {
        ASSERT_EQ(::redisReaderFeed(with->reader, "*2\r\n", 4), REDIS_OK);
        void* none = nullptr;
        ASSERT_EQ(::redisReaderGetReply(with->reader, &none), REDIS_OK);
        ASSERT_EQ(none, nullptr);
    });
}

TEST_F(redis_unread, replies_on_their_way_are_not_taken_for_a_verdict) {
    for (const auto* const command :
         {"INCR other", "EVAL return{1,1} 0", "EVAL return{'claimed',1} 0",
          "GET holdfast_fence:{stock}", "ECHO QUEUED", "LPUSH text 1", "GET missing", "PING"}) {
        for (const int count : {1, 2, 3}) {
            SCOPED_TRACE(command);
            server().cli({"SET", "text", "x"});
            server().cli({"SET", "holdfast_fence:{stock}", "5"});
            expect_all(errc::outcome_unknown, [&](redisContext* with) { send(with, count, command); });
        }
    }
}

TEST_F(redis_unread, a_reply_that_is_skipped_is_not_waited_for) {
    expect_all(errc::outcome_unknown, [](redisContext* with) { send(with, 1, "CLIENT REPLY SKIP"); });
}

TEST_F(redis_unread, a_superseded_ticket_is_not_completed_by_the_reply_to_something_else) {
    const auto late = once_.claim("pay:123").ticket;
    server().cli({"HSET", "holdfast_once:{pay:123}", "ends", "1"});
    const context_handle other{::redisConnectUnix(server().unix_socket().c_str()), &::redisFree};
    redis_once second{other.get()};
    ASSERT_EQ(second.claim("pay:123").result, verdict::claimed);
    send(context_.get(), 1, "INCR other");
    EXPECT_EQ(error_of([&] { return once_.complete(late, "paid"); }), errc::outcome_unknown);
    EXPECT_EQ(second.claim("pay:123").result, verdict::running);
    ASSERT_EQ(::redisReconnect(context_.get()), REDIS_OK);
    EXPECT_EQ(once_.complete(late, "paid"), completion::superseded);
}

TEST(redis_connection, null_is_refused_in_words) {
    EXPECT_EQ(error_of([] { return redis_fence{nullptr}; }), errc::invalid_argument);
    EXPECT_EQ(error_of([] { return redis_storage_lease{nullptr}; }), errc::invalid_argument);
    EXPECT_EQ(error_of([] { return redis_once{nullptr}; }), errc::invalid_argument);
    try {
        static_cast<void>(redis_fence{nullptr});
    } catch (const std::system_error& error) {
        EXPECT_STREQ(error.what(),
                     "redis_fence: the connection is null; connect first: invalid argument");
    }
}

TEST_F(redis_guards, of_two_who_read_the_same_sequence_one_wins) {
    const auto seen = lease_.read("row");
    EXPECT_EQ(seen, lease_sequence{0});
    const field first[]{{"stock", "99"}};
    const field second[]{{"stock", "98"}};
    EXPECT_EQ(lease_.write("row", seen, first), contest::won);
    EXPECT_EQ(lease_.write("row", seen, second), contest::lost);
    EXPECT_EQ(server().cli({"HGET", "row", "stock"}), "99");
    EXPECT_EQ(lease_.write("row", lease_.read("row"), second), contest::won);
}

TEST_F(redis_guards, where_the_sequence_cannot_move_on_nothing_is_written) {
    server().cli({"HSET", "row", "lease_seq", "9223372036854775807", "stock", "100"});
    const field changed[]{{"stock", "99"}};
    EXPECT_TRUE(error_of([&] { return lease_.write("row", lease_.read("row"), changed); }));
    EXPECT_EQ(server().cli({"HGET", "row", "stock"}), "100");
}

TEST_F(redis_guards, the_retry_gets_the_outcome) {
    const auto mine = once_.claim("pay:123");
    ASSERT_EQ(mine.result, verdict::claimed);
    EXPECT_EQ(mine.ticket.attempt, 1U);
    const auto other = once_.claim("pay:123");
    EXPECT_EQ(other.result, verdict::running);
    EXPECT_GT(other.retry_after, 20s);
    EXPECT_LE(other.retry_after, 30s);
    EXPECT_EQ(once_.complete(mine.ticket, std::string{"a\0b", 3}), completion::recorded);
    EXPECT_EQ(once_.complete(mine.ticket, std::string{"a\0b", 3}), completion::recorded);
    const auto retry = once_.claim("pay:123");
    EXPECT_EQ(retry.result, verdict::done);
    EXPECT_EQ(retry.outcome, (std::string{"a\0b", 3}));
    EXPECT_EQ(once_.extend(mine.ticket), completion::superseded);
    EXPECT_EQ(once_.abandon(mine.ticket), completion::superseded);
}

TEST_F(redis_guards, an_outcome_is_never_replaced_by_another) {
    for (const std::string_view first : {"paid", ""}) {
        SCOPED_TRACE(first);
        const auto operation = "pay:" + std::string{first};
        const auto mine = once_.claim(operation).ticket;
        EXPECT_EQ(once_.complete(mine, first), completion::recorded);
        EXPECT_EQ(once_.complete(mine, "refused"), completion::superseded);
        EXPECT_EQ(once_.complete(mine, first), completion::recorded);
        EXPECT_EQ(once_.claim(operation).outcome, first);
    }
}

TEST_F(redis_guards, an_empty_outcome_is_an_outcome) {
    EXPECT_EQ(once_.complete(once_.claim("pay:123").ticket, ""), completion::recorded);
    EXPECT_EQ(once_.claim("pay:123").result, verdict::done);
}

TEST_F(redis_guards, who_comes_after_a_dead_claimer_takes_over_and_the_late_one_is_refused) {
    const auto dead = once_.claim("pay:123").ticket;
    server().cli({"HSET", "holdfast_once:{pay:123}", "ends", "1"});
    const auto next = once_.claim("pay:123");
    ASSERT_EQ(next.result, verdict::claimed);
    EXPECT_EQ(next.ticket.attempt, 2U);
    EXPECT_EQ(once_.complete(dead, "late"), completion::superseded);
    EXPECT_EQ(once_.extend(dead), completion::superseded);
    EXPECT_EQ(once_.complete(next.ticket, "second"), completion::recorded);
    EXPECT_EQ(once_.claim("pay:123").outcome, "second");
}

TEST_F(redis_guards, a_claim_is_extended_and_abandoned) {
    const auto mine = once_.claim("pay:123").ticket;
    EXPECT_EQ(redis_once(context_.get(), {.claim = 1h}).extend(mine), completion::recorded);
    EXPECT_GT(once_.claim("pay:123").retry_after, 59min);
    EXPECT_EQ(once_.abandon(mine), completion::recorded);
    EXPECT_EQ(once_.claim("pay:123").ticket.attempt, 2U);
}

TEST_F(redis_guards, an_outcome_is_forgotten_by_the_server) {
    redis_once brief{context_.get(), {.keep = 1s}};
    EXPECT_EQ(brief.complete(brief.claim("pay:123").ticket, "done"), completion::recorded);
    EXPECT_TRUE(testing_support::became_true(
        [&] { return once_.claim("pay:123").result == verdict::claimed; }));
}

}  // namespace

}  // namespace holdfast::guard::testing
