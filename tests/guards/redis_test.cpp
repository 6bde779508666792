#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>
#include <system_error>

#include <holdfast/error.hpp>
#include <holdfast/guard/redis.hpp>
#include <support/redis_servers.hpp>

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

class redis_guards : public ::testing::Test {
protected:
    redis_guards() {
        if (context_ == nullptr || context_->err != 0) {
            throw std::runtime_error{"no connection"};
        }
        server().cli({"FLUSHALL"});
    }

    const std::unique_ptr<redisContext, decltype(&::redisFree)> context_{
        ::redisConnectUnix(server().unix_socket().c_str()), &::redisFree};
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

TEST_F(redis_guards, a_script_that_returns_nothing_is_admitted_all_the_same) {
    const std::string_view keys[]{"stock"};
    EXPECT_EQ(fence_.run("-- a comment at the end", {10}, keys, {}).verdict, admission::admitted);
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

TEST_F(redis_guards, a_connection_that_was_cut_leaves_the_outcome_unknown) {
    // hiredis writes without regard to the signal, so its users ignore it.
    ::signal(SIGPIPE, SIG_IGN);
    server().client_kill("normal");
    EXPECT_EQ(error_of([&] { return fence_.announce("stock", {7}); }), errc::outcome_unknown);
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
    redis_once brief{context_.get(), {.keep = 1ms}};
    EXPECT_EQ(brief.complete(brief.claim("pay:123").ticket, "done"), completion::recorded);
    EXPECT_TRUE(testing_support::became_true(
        [&] { return once_.claim("pay:123").result == verdict::claimed; }));
}

}  // namespace

}  // namespace holdfast::guard::testing
