#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include <holdfast/clock.hpp>
#include <support/server_process.hpp>

#include "sql_session.hpp"

namespace holdfast::guard::testing {

namespace {

using namespace std::chrono_literals;
using once_on = sql_guards;
using verdict = once_reply::verdict;

/// Claims have ended, and outcomes have been kept long enough, by the time that anybody looks.
void let_their_time_end(sql_session& database) {
    database.execute("UPDATE holdfast_once SET taken_until = 1");
}

TEST_F(once_on, the_retry_gets_the_outcome) {
    const auto mine = once{old_db()}.claim("pay:123");
    ASSERT_EQ(mine.result, verdict::claimed);
    EXPECT_EQ(mine.ticket.attempt, 1U);
    EXPECT_EQ(once{old_db()}.complete(mine.ticket, std::string{"a\0\xff'\\b", 6}),
              completion::recorded);

    const auto retry = once{fresh_db()}.claim("pay:123");
    EXPECT_EQ(retry.result, verdict::done);
    EXPECT_EQ(retry.outcome, (std::string{"a\0\xff'\\b", 6}));
}

TEST_F(once_on, an_empty_outcome_is_an_outcome) {
    const auto mine = once{old_db()}.claim("pay:123");
    EXPECT_EQ(once{old_db()}.complete(mine.ticket, ""), completion::recorded);
    EXPECT_EQ(once{fresh_db()}.claim("pay:123").result, verdict::done);
}

TEST_F(once_on, while_one_is_at_it_others_are_told_how_long_to_wait) {
    static_cast<void>(once(old_db(), {.claim = 1h}).claim("pay:123"));
    const auto other = once{fresh_db()}.claim("pay:123");
    EXPECT_EQ(other.result, verdict::running);
    EXPECT_GT(other.retry_after, 59min);
    EXPECT_LE(other.retry_after, 1h);
    EXPECT_EQ(once{fresh_db()}.claim("pay:124").result, verdict::claimed);
}

TEST_F(once_on, who_comes_after_a_dead_claimer_takes_over_and_the_late_one_is_refused) {
    const auto dead = once{old_db()}.claim("pay:123").ticket;
    let_their_time_end(*fresh_);
    const auto next = once{fresh_db()}.claim("pay:123");
    ASSERT_EQ(next.result, verdict::claimed);
    EXPECT_EQ(next.ticket.attempt, 2U);

    EXPECT_EQ(once{old_db()}.complete(dead, "late"), completion::superseded);
    EXPECT_EQ(once{old_db()}.extend(dead), completion::superseded);
    EXPECT_EQ(once{old_db()}.abandon(dead), completion::superseded);
    EXPECT_EQ(once{fresh_db()}.complete(next.ticket, "second"), completion::recorded);
    EXPECT_EQ(once{old_db()}.complete(dead, "later"), completion::superseded);
    EXPECT_EQ(once{old_db()}.claim("pay:123").outcome, "second");
}

TEST_F(once_on, a_claim_that_ended_is_still_good_if_nobody_took_over) {
    const auto slow = once{old_db()}.claim("pay:123").ticket;
    let_their_time_end(*old_);
    EXPECT_EQ(once{old_db()}.complete(slow, "done"), completion::recorded);
    EXPECT_EQ(once{fresh_db()}.claim("pay:123").outcome, "done");
}

TEST_F(once_on, completing_again_is_harmless_and_extending_then_is_refused) {
    const auto mine = once{old_db()}.claim("pay:123").ticket;
    EXPECT_EQ(once{old_db()}.complete(mine, "done"), completion::recorded);
    EXPECT_EQ(once{old_db()}.complete(mine, "done"), completion::recorded);
    EXPECT_EQ(once{old_db()}.extend(mine), completion::superseded);
    EXPECT_EQ(once{old_db()}.abandon(mine), completion::superseded);
    EXPECT_EQ(once{fresh_db()}.claim("pay:123").result, verdict::done);
}

/// Whoever asked meanwhile was given the first outcome.
TEST_F(once_on, an_outcome_is_never_replaced_by_another) {
    for (const std::string_view first : {"paid", ""}) {
        SCOPED_TRACE(first);
        const auto operation = "pay:" + std::string{first};
        const auto mine = once{old_db()}.claim(operation).ticket;
        EXPECT_EQ(once{old_db()}.complete(mine, first), completion::recorded);
        EXPECT_EQ(once{old_db()}.complete(mine, "refused"), completion::superseded);
        EXPECT_EQ(once{old_db()}.complete(mine, first), completion::recorded);
        EXPECT_EQ(once{fresh_db()}.claim(operation).outcome, first);
    }
}

TEST_F(once_on, completing_again_in_one_transaction_is_the_same) {
    old_->execute("BEGIN");
    const auto mine = once{old_db()}.claim("pay:123").ticket;
    EXPECT_EQ(once{old_db()}.complete(mine, "paid"), completion::recorded);
    EXPECT_EQ(once{old_db()}.complete(mine, "refused"), completion::superseded);
    EXPECT_EQ(once{old_db()}.complete(mine, "paid"), completion::recorded);
    old_->execute("COMMIT");
    EXPECT_EQ(once{fresh_db()}.claim("pay:123").outcome, "paid");
}

TEST_F(once_on, an_extended_claim_starts_over) {
    const auto mine = once{old_db()}.claim("pay:123").ticket;
    EXPECT_EQ(once(old_db(), {.claim = 1h}).extend(mine), completion::recorded);
    EXPECT_GT(once{fresh_db()}.claim("pay:123").retry_after, 59min);
}

TEST_F(once_on, an_abandoned_operation_can_be_claimed_at_once) {
    const auto mine = once{old_db()}.claim("pay:123").ticket;
    EXPECT_EQ(once{old_db()}.abandon(mine), completion::recorded);
    const auto next = once{fresh_db()}.claim("pay:123");
    EXPECT_EQ(next.result, verdict::claimed);
    EXPECT_EQ(next.ticket.attempt, 2U);
    EXPECT_EQ(once{old_db()}.claim("pay:123").result, verdict::running) << "the others wait again";
    EXPECT_EQ(once{old_db()}.complete(mine, "late"), completion::superseded);
}

TEST_F(once_on, an_abandoned_operation_can_be_completed_until_somebody_claims_it) {
    const auto mine = once{old_db()}.claim("pay:123").ticket;
    EXPECT_EQ(once{old_db()}.abandon(mine), completion::recorded);
    EXPECT_EQ(once{old_db()}.complete(mine, "after all"), completion::recorded);
    EXPECT_EQ(once{fresh_db()}.claim("pay:123").outcome, "after all");
}

TEST_F(once_on, an_outcome_is_forgotten_when_its_time_is_over) {
    const auto mine = once{old_db()}.claim("pay:123").ticket;
    EXPECT_EQ(once{old_db()}.complete(mine, "done"), completion::recorded);
    let_their_time_end(*old_);
    const auto again = once{fresh_db()}.claim("pay:123");
    EXPECT_EQ(again.result, verdict::claimed);
    EXPECT_EQ(once{old_db()}.complete(mine, "late"), completion::superseded);
}

TEST_F(once_on, forget_removes_what_is_over_and_nothing_else) {
    once finished{old_db()};
    static_cast<void>(finished.complete(finished.claim("pay:1").ticket, "done"));
    static_cast<void>(finished.complete(finished.claim("pay:2").ticket, "done"));
    let_their_time_end(*old_);
    static_cast<void>(once{old_db()}.complete(once{old_db()}.claim("pay:3").ticket, "done"));
    // Over as well, but who claims it next is to know that it is not the first.
    once{old_db()}.abandon(once{old_db()}.claim("pay:4").ticket);
    EXPECT_EQ(once{fresh_db()}.forget(1), 1U);
    EXPECT_EQ(once{fresh_db()}.forget(), 1U);
    EXPECT_EQ(once{fresh_db()}.forget(), 0U);
    EXPECT_EQ(once{fresh_db()}.claim("pay:3").result, verdict::done);
    EXPECT_EQ(once{fresh_db()}.claim("pay:4").ticket.attempt, 2U);
}

/// After the row was forgotten attempts count from 1 again; a ticket from before is no match all the
/// same.
TEST_F(once_on, a_ticket_from_before_the_row_was_forgotten_is_refused) {
    const auto ancient = once{old_db()}.claim("pay:123").ticket;
    let_their_time_end(*old_);
    EXPECT_EQ(once{old_db()}.forget(), 1U);
    const auto next = once{fresh_db()}.claim("pay:123").ticket;
    EXPECT_EQ(next.attempt, ancient.attempt);
    EXPECT_EQ(once{old_db()}.complete(ancient, "late"), completion::superseded);
}

TEST_F(once_on, in_one_transaction_with_the_work_a_crash_leaves_nothing) {
    old_->execute("BEGIN");
    const auto mine = once{old_db()}.claim("pay:123");
    EXPECT_EQ(mine.result, verdict::claimed);
    old_->execute("UPDATE product_stock SET stock = stock - 1");
    EXPECT_EQ(once{old_db()}.complete(mine.ticket, "done"), completion::recorded);
    old_->execute("ROLLBACK");
    EXPECT_EQ(stock(), "100");
    EXPECT_EQ(once{fresh_db()}.claim("pay:123").ticket.attempt, 1U);
}

/// Claims every one of the operations; says how many it got. Who is in somebody's way tries again.
std::size_t claim_all(sql_session& who, int operations) {
    std::size_t claimed = 0;
    for (int number = 0; number < operations; ++number) {
        EXPECT_TRUE(testing_support::became_true([&] {
            std::optional<once_reply> reply;
            const auto failed = error_of([&] {
                reply = once{who.guarded()}.claim("pay:" + std::to_string(number));
                return 0;
            });
            EXPECT_TRUE(!failed || failed == errc::busy) << failed.message();
            claimed += reply && reply->result == verdict::claimed ? 1U : 0U;
            return reply.has_value();
        }));
    }
    return claimed;
}

TEST_F(once_on, of_many_who_claim_at_the_same_time_one_gets_it) {
    constexpr int operations = 50;
    std::vector<std::future<std::size_t>> crew;
    for (int number = 0; number < 4; ++number) {
        crew.push_back(std::async(std::launch::async, [session = open_session()] {
            return claim_all(*session, operations);
        }));
    }
    std::size_t claimed = 0;
    for (auto& one : crew) {
        claimed += one.get();
    }
    EXPECT_EQ(claimed, static_cast<std::size_t>(operations));
}

/// Its connection is gone after some statements, and whatever comes then is not sent.
class breaking_database final : public database {
public:
    breaking_database(database& connection, int statements)
        : connection_{connection}, left_{statements} {}

    [[nodiscard]] dialect speaks() const noexcept override { return connection_.speaks(); }
    [[nodiscard]] bool in_transaction() const override { return connection_.in_transaction(); }
    answer run(std::string_view statement, std::span<const parameter> parameters) override {
        if (left_-- <= 0) {
            failure{errc::store_unavailable, "the connection is gone"}.raise("test");
        }
        return connection_.run(statement, parameters);
    }

private:
    database& connection_;
    int left_;
};

/// Its answers come so late that the outcome's time is over and somebody else has claimed.
class late_database final : public database {
public:
    late_database(database& connection, std::function<void()> meanwhile)
        : connection_{connection}, meanwhile_{std::move(meanwhile)} {}

    [[nodiscard]] dialect speaks() const noexcept override { return connection_.speaks(); }
    [[nodiscard]] bool in_transaction() const override { return connection_.in_transaction(); }
    answer run(std::string_view statement, std::span<const parameter> parameters) override {
        const auto began = clock::now();
        auto said = connection_.run(statement, parameters);
        EXPECT_TRUE(testing_support::became_true([&] { return clock::now() > began + 150ms; }));
        meanwhile_();
        return said;
    }

private:
    database& connection_;
    std::function<void()> meanwhile_;
};

TEST_F(once_on, what_was_recorded_is_recorded_however_late_the_answer_comes) {
    const auto mine = once{old_db()}.claim("pay:123").ticket;
    late_database late{old_db(), [&] {
                           let_their_time_end(*fresh_);
                           static_cast<void>(once{fresh_db()}.claim("pay:123"));
                       }};
    EXPECT_EQ(once(late, {.keep = 1s}).complete(mine, "paid"), completion::recorded);
}

/// The first one may have taken effect.
TEST_F(once_on, a_connection_that_breaks_between_two_statements_leaves_the_outcome_unknown) {
    static_cast<void>(once{old_db()}.claim("pay:123"));
    for (const auto& [statements, expected] :
         {std::pair{0, errc::store_unavailable}, std::pair{1, errc::outcome_unknown}}) {
        breaking_database broken{fresh_db(), statements};
        EXPECT_EQ(error_of([&] { return once{broken}.claim("pay:123"); }), expected);
    }
}

TEST_F(once_on, misuse_is_an_error) {
    EXPECT_EQ(error_of([&] { return once{old_db()}.claim(""); }), errc::invalid_name);
    EXPECT_EQ(error_of([&] { return once(old_db(), {.claim = 0ms}); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return once(old_db(), {}, "a'b"); }), errc::invalid_argument);
}

TEST_F(once_on, a_ticket_that_nobody_was_given_settles_nothing) {
    once outcomes{old_db()};
    const auto claimed = outcomes.claim("pay");
    for (const auto& foreign : {once_ticket{}, once_ticket{.operation = "pay", .claimant = "nobody"}}) {
        EXPECT_EQ(outcomes.complete(foreign, "x"), completion::superseded);
        EXPECT_EQ(outcomes.extend(foreign), completion::superseded);
        EXPECT_EQ(outcomes.abandon(foreign), completion::superseded);
    }
    EXPECT_EQ(outcomes.complete(claimed.ticket, "paid"), completion::recorded);
}

}  // namespace

}  // namespace holdfast::guard::testing
