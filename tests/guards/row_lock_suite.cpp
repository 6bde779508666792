#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/clock.hpp>
#include <support/server_process.hpp>

#include "row_locks.hpp"

namespace holdfast::guard::testing {

namespace {

using namespace std::chrono_literals;

/// Databases in which one transaction waits for another: what is asked for meanwhile is asked for in
/// the background, and the rest of the test goes on when the database says that somebody waits.
class row_locks : public sql_guards {
protected:
    template <class Call>
    [[nodiscard]] auto while_waiting(Call call) {
        auto result = std::async(std::launch::async, call);
        testing_support::wait_until("one waits for another",
                                    [&] { return somebody_waits(*observer_); });
        return result;
    }

    std::unique_ptr<sql_session> observer_{open_session()};
};

TEST_F(row_locks, the_older_holder_waits_for_the_newer_ones_commit_and_is_refused) {
    fresh_->execute("BEGIN");
    EXPECT_EQ(fence{fresh_db()}.admit("stock", {34}), admission::admitted);
    auto late = while_waiting([&] { return write_stock(*old_, {33}, 10); });
    fresh_->execute("UPDATE product_stock SET stock = stock - 1");
    fresh_->execute("COMMIT");
    EXPECT_EQ(late.get(), admission::stale);
    EXPECT_EQ(stock(), "99");
}

TEST_F(row_locks, the_older_holder_gets_in_when_the_newer_one_rolls_back) {
    fresh_->execute("BEGIN");
    EXPECT_EQ(fence{fresh_db()}.admit("stock", {34}), admission::admitted);
    auto late = while_waiting([&] { return write_stock(*old_, {33}, 10); });
    fresh_->execute("ROLLBACK");
    EXPECT_EQ(late.get(), admission::admitted);
}

/// Also when the older one changes nothing in the fence: its own token is there already.
TEST_F(row_locks, announce_waits_for_those_who_were_admitted_and_what_is_read_then_is_true) {
    EXPECT_EQ(fence{old_db()}.announce("stock", {33}), admission::admitted);
    old_->execute("BEGIN");
    EXPECT_EQ(fence{old_db()}.admit("stock", {33}), admission::admitted);
    auto announced = while_waiting([&] { return fence{fresh_db()}.announce("stock", {34}); });
    old_->execute("UPDATE product_stock SET stock = stock - 1");
    old_->execute("COMMIT");
    EXPECT_EQ(announced.get(), admission::admitted);
    EXPECT_EQ(fresh_->value("SELECT stock FROM product_stock"), "99");
}

/// Admitted first of all, the transaction reads what was committed while it waited.
TEST_F(row_locks, a_read_after_admit_sees_the_older_holders_write) {
    old_->execute("BEGIN");
    EXPECT_EQ(fence{old_db()}.admit("stock", {33}), admission::admitted);
    fresh_->execute("BEGIN");
    auto admitted = while_waiting([&] { return fence{fresh_db()}.admit("stock", {34}); });
    old_->execute("UPDATE product_stock SET stock = stock - 1");
    old_->execute("COMMIT");
    EXPECT_EQ(admitted.get(), admission::admitted);
    EXPECT_EQ(fresh_->value("SELECT stock FROM product_stock"), "99");
    fresh_->execute("COMMIT");
}

TEST_F(row_locks, the_second_of_two_that_advance_at_once_loses) {
    constexpr lease_columns stock_row{.table = "product_stock", .key = "id"};
    old_->execute("BEGIN");
    EXPECT_EQ(storage_lease(old_db(), stock_row).advance("1", {0}), contest::won);
    fresh_->execute("BEGIN");
    auto second = while_waiting([&] { return storage_lease(fresh_db(), stock_row).advance("1", {0}); });
    old_->execute("COMMIT");
    EXPECT_EQ(second.get(), contest::lost);
    fresh_->execute("ROLLBACK");
}

TEST_F(row_locks, a_retry_during_the_transaction_waits_for_the_outcome) {
    old_->execute("BEGIN");
    const auto mine = once{old_db()}.claim("pay:123").ticket;
    auto retry = while_waiting([&] { return once{fresh_db()}.claim("pay:123"); });
    EXPECT_EQ(once{old_db()}.complete(mine, "paid"), completion::recorded);
    old_->execute("COMMIT");
    EXPECT_EQ(retry.get().outcome, "paid");
}

TEST_F(row_locks, a_retry_during_a_transaction_that_fails_is_the_first) {
    old_->execute("BEGIN");
    static_cast<void>(once{old_db()}.claim("pay:123"));
    auto retry = while_waiting([&] { return once{fresh_db()}.claim("pay:123"); });
    old_->execute("ROLLBACK");
    EXPECT_EQ(retry.get().result, once_reply::verdict::claimed);
}

/// What `taken_until` says, in milliseconds since 1970.
[[nodiscard]] std::chrono::milliseconds taken_until(sql_session& observer) {
    return std::chrono::milliseconds{
        std::stoll(observer.value("SELECT taken_until FROM holdfast_once"))};
}

[[nodiscard]] std::chrono::milliseconds wall_clock() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
}

/// A statement may look at the clock before it waits. The claimer counts from the answer.
TEST_F(row_locks, a_claim_that_waited_for_others_lasts_for_its_full_time) {
    constexpr auto lasts = 500ms;
    old_->execute("BEGIN");
    static_cast<void>(once{old_db()}.claim("pay:123"));
    auto next = while_waiting([&] { return once(fresh_db(), {.claim = lasts}).claim("pay:123"); });
    const auto began = clock::now();
    ASSERT_TRUE(testing_support::became_true([&] { return clock::now() > began + lasts / 2; }));
    const auto ended = wall_clock();
    old_->execute("ROLLBACK");
    EXPECT_EQ(next.get().result, once_reply::verdict::claimed);
    EXPECT_GE(taken_until(*old_), ended + lasts);
}

TEST_F(row_locks, an_extension_that_waited_for_others_lasts_for_its_full_time) {
    constexpr auto lasts = 500ms;
    once slow{fresh_db(), {.claim = lasts}};
    const auto mine = slow.claim("pay:123").ticket;
    old_->execute("BEGIN");
    old_->execute("UPDATE holdfast_once SET attempt = 2");
    auto extended = while_waiting([&] { return slow.extend(mine); });
    const auto began = clock::now();
    ASSERT_TRUE(testing_support::became_true([&] { return clock::now() > began + lasts / 2; }));
    const auto ended = wall_clock();
    old_->execute("ROLLBACK");
    EXPECT_EQ(extended.get(), completion::recorded);
    EXPECT_GE(taken_until(*old_), ended + lasts);
}

/// Whoever claims meanwhile gets the outcome, and does not do the operation again.
TEST_F(row_locks, an_outcome_that_waited_for_others_is_kept_for_its_full_time) {
    constexpr auto lasts = 1000ms;
    const std::string change = "UPDATE holdfast_once SET attempt = attempt + 1";
    const auto another = open_session();
    once brief{fresh_db(), {.keep = lasts}};
    for (const auto& [lock, end] :
         {std::pair{std::string{"SELECT attempt FROM holdfast_once FOR UPDATE"}, "COMMIT"},
          std::pair{change, "COMMIT"}, std::pair{change, "ROLLBACK"}}) {
        SCOPED_TRACE(lock + "; " + end);
        SetUp();
        const auto mine = brief.claim("pay:123").ticket;
        old_->execute("BEGIN");
        old_->execute(lock);
        auto completed = while_waiting([&] { return brief.complete(mine, "paid"); });
        const auto began = clock::now();
        ASSERT_TRUE(testing_support::became_true([&] { return clock::now() > began + lasts; }));
        auto next = std::async(std::launch::async,
                               [&] { return once{another->guarded()}.claim("pay:123").result; });
        // Time for it to wait as well; if that is not enough, it claims a little later.
        ASSERT_TRUE(testing_support::became_true([&] { return clock::now() > began + lasts + 100ms; }));
        const auto ended = wall_clock();
        old_->execute(end);
        EXPECT_EQ(completed.get(), completion::recorded);
        EXPECT_NE(next.get(), once_reply::verdict::claimed);
        EXPECT_GE(taken_until(*old_), ended + lasts);
    }
}

TEST_F(row_locks, forget_leaves_alone_what_was_claimed_while_it_waited) {
    static_cast<void>(once{old_db()}.claim("pay:123"));
    old_->execute("UPDATE holdfast_once SET taken_until = 1");
    old_->execute("BEGIN");
    EXPECT_EQ(once{old_db()}.claim("pay:123").result, once_reply::verdict::claimed);
    auto forgotten = while_waiting([&] { return once{fresh_db()}.forget(); });
    old_->execute("COMMIT");
    EXPECT_EQ(forgotten.get(), 0U);
    EXPECT_EQ(once{fresh_db()}.claim("pay:123").result, once_reply::verdict::running);
}

/// Whatever is asked of it, and never a word about transactions, which it does not have.
void expect_unavailable(database& connection) {
    const once_ticket ticket{.operation = "pay:123", .claimant = "somebody", .attempt = 1};
    const std::vector<std::function<void()>> calls{
        [&] { static_cast<void>(fence{connection}.admit("stock", {33})); },
        [&] { static_cast<void>(fence{connection}.announce("stock", {33})); },
        [&] { static_cast<void>(fence{connection}.newest("stock")); },
        [&] { fence{connection}.create_table(); },
        [&] { static_cast<void>(storage_lease{connection}.read("stock")); },
        [&] { static_cast<void>(storage_lease{connection}.advance("stock", {})); },
        [&] { storage_lease{connection}.create_table(); },
        [&] { static_cast<void>(once{connection}.claim("pay:123")); },
        [&] { static_cast<void>(once{connection}.complete(ticket, "paid")); },
        [&] { static_cast<void>(once{connection}.extend(ticket)); },
        [&] { once{connection}.abandon(ticket); },
        [&] { once{connection}.forget(); },
        [&] { once{connection}.create_table(); },
    };
    for (std::size_t index = 0; index < calls.size(); ++index) {
        const auto failed = error_of([&] { return calls[index](), 0; });
        EXPECT_EQ(failed, errc::store_unavailable) << "call " << index << ": " << failed.message();
    }
}

TEST_F(row_locks, a_connection_that_is_cut_during_a_statement_leaves_the_outcome_unknown) {
    fresh_->execute("BEGIN");
    EXPECT_EQ(fence{fresh_db()}.admit("stock", {34}), admission::admitted);
    auto announced = while_waiting(
        [&] { return error_of([&] { return fence{old_db()}.announce("stock", {33}); }); });
    cut(*observer_, *old_);
    EXPECT_EQ(announced.get(), errc::outcome_unknown);
    fresh_->execute("ROLLBACK");
}

TEST_F(row_locks, a_statement_that_is_cancelled_is_busy) {
    fresh_->execute("BEGIN");
    EXPECT_EQ(fence{fresh_db()}.admit("stock", {34}), admission::admitted);
    auto announced = while_waiting(
        [&] { return error_of([&] { return fence{old_db()}.announce("stock", {35}); }); });
    cancel(*observer_, *old_);
    EXPECT_EQ(announced.get(), errc::busy);
    fresh_->execute("COMMIT");
    EXPECT_EQ(fence{old_db()}.announce("stock", {35}), admission::admitted);
}

TEST_F(row_locks, a_statement_that_takes_longer_than_the_user_allows_is_busy) {
    fresh_->execute("BEGIN");
    EXPECT_EQ(fence{fresh_db()}.admit("stock", {34}), admission::admitted);
    limit_statements(*old_);
    EXPECT_EQ(error_of([&] { return fence{old_db()}.announce("stock", {35}); }), errc::busy);
    fresh_->execute("ROLLBACK");
}

TEST_F(row_locks, a_transaction_whose_connection_was_cut_is_gone_and_not_missing) {
    old_->execute("BEGIN");
    EXPECT_EQ(fence{old_db()}.admit("stock", {33}), admission::admitted);
    cut(*observer_, *old_);
    const auto first = error_of([&] { return fence{old_db()}.admit("stock", {33}); });
    EXPECT_TRUE(first == errc::outcome_unknown || first == errc::store_unavailable) << first.message();
    for (int again = 0; again < 2; ++again) {
        EXPECT_EQ(error_of([&] { return fence{old_db()}.admit("stock", {33}); }),
                  errc::store_unavailable);
    }
    EXPECT_EQ(fence{fresh_db()}.newest("stock"), fencing_token{0});
}

/// Nothing is sent on a connection that is known to be broken.
TEST_F(row_locks, after_a_connection_was_cut_everything_is_unavailable) {
    cut(*observer_, *old_);
    EXPECT_TRUE(error_of([&] { return fence{old_db()}.announce("stock", {33}); }));
    expect_unavailable(old_db());
}

TEST_F(row_locks, a_connection_that_was_refused_is_unavailable) {
    with_refused_connection(expect_unavailable);
}

}  // namespace

}  // namespace holdfast::guard::testing
