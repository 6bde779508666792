#include "sql_session.hpp"

namespace holdfast::guard::testing {

namespace {

using sqlite_guards = sql_guards;

/// SQLite's users do not wait: the second one is told, and nothing of it remains.
TEST_F(sqlite_guards, a_holder_that_is_admitted_keeps_others_out_until_it_commits) {
    fresh_->execute("BEGIN");
    EXPECT_EQ(fence{fresh_db()}.admit("stock", {34}), admission::admitted);
    old_->execute("BEGIN");
    EXPECT_EQ(error_of([&] { return fence{old_db()}.admit("stock", {33}); }), errc::busy);
    old_->execute("ROLLBACK");
    EXPECT_EQ(error_of([&] { return fence{old_db()}.announce("stock", {35}); }), errc::busy);
    fresh_->execute("COMMIT");
    EXPECT_EQ(write_stock(*old_, {33}, 10), admission::stale);
}

/// What it read may be old, so it must not write.
TEST_F(sqlite_guards, a_deferred_transaction_that_read_before_somebody_wrote_is_busy) {
    fresh_->execute("BEGIN");
    EXPECT_EQ(fresh_->value("SELECT stock FROM product_stock"), "100");
    EXPECT_EQ(write_stock(*old_, {33}, 99), admission::admitted);
    EXPECT_EQ(error_of([&] { return fence{fresh_db()}.admit("stock", {34}); }), errc::busy);
    fresh_->execute("ROLLBACK");
    EXPECT_EQ(write_stock(*fresh_, {34}, 98), admission::admitted);
}

TEST_F(sqlite_guards, a_database_that_may_only_be_read_says_so) {
    old_->execute("PRAGMA query_only = ON");
    EXPECT_EQ(error_of([&] { return fence{old_db()}.announce("stock", {33}); }), errc::unauthorised);
    old_->execute("PRAGMA query_only = OFF");
}

}  // namespace

}  // namespace holdfast::guard::testing
