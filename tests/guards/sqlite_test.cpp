#include <memory>

#include <holdfast/guard/sqlite.hpp>
#include "odd_keys.hpp"
#include "sql_session.hpp"

#include <sqlite3.h>

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

TEST(sqlite_connection, null_is_refused_in_words) {
    EXPECT_EQ(error_of([] { return sqlite_database(nullptr).speaks(); }), errc::invalid_argument);
    EXPECT_NE(text_of([] {
                  return sqlite_database(nullptr).speaks();
              }).find("sqlite_database: the connection is null"),
              std::string::npos);
}

TEST(sqlite_connection, one_that_failed_to_open_is_unavailable) {
    sqlite3* made = nullptr;
    ASSERT_NE(::sqlite3_open("/nowhere/at/all/database", &made), SQLITE_OK);
    const std::unique_ptr<sqlite3, decltype(&::sqlite3_close)> handle{made, &::sqlite3_close};
    const auto open = [&] { return sqlite_database(made).speaks(); };
    EXPECT_EQ(error_of(open), errc::store_unavailable);
    EXPECT_NE(text_of(open).find("unable to open database file"), std::string::npos);
}

TEST_F(sqlite_guards, a_statement_of_comments_is_refused_in_words) {
    EXPECT_EQ(error_of([&] { return old_db().run("-- nothing", {}); }), errc::invalid_argument);
}

class in_memory : public ::testing::Test {
protected:
    in_memory() {
        sqlite3* made = nullptr;
        EXPECT_EQ(::sqlite3_open(":memory:", &made), SQLITE_OK);
        handle_.reset(made);
    }

    struct close {
        void operator()(sqlite3* handle) const noexcept { ::sqlite3_close(handle); }
    };
    std::unique_ptr<sqlite3, close> handle_;
};

/// Where text is kept in UTF-16, everything that is not UTF-8 would be the same letter.
TEST_F(in_memory, no_two_keys_are_the_same_in_a_database_of_utf_16) {
    sqlite_database connection{handle_.get()};
    connection.run("PRAGMA encoding = 'UTF-16'", {});
    fence{connection}.create_table();
    storage_lease{connection}.create_table();
    once{connection}.create_table();
    expect_distinct_keys(connection, connection);
    EXPECT_EQ(connection.run("SELECT token FROM holdfast_fence WHERE resource = 'pay'", {}).row.size(),
              1U)
        << "by hand";
}

TEST_F(in_memory, statements_whose_text_differs_each_time_are_not_kept) {
    sqlite_database connection{handle_.get()};
    connection.run("CREATE TABLE product_stock (id INTEGER PRIMARY KEY, stock INTEGER)", {});
    for (int sold = 0; sold < 1000; ++sold) {
        connection.run("UPDATE product_stock SET stock = " + std::to_string(sold), {});
        connection.run("SELECT stock FROM product_stock", {});
    }
    int kept = 0;
    const sqlite3_stmt* used_most = nullptr;
    for (auto* one = ::sqlite3_next_stmt(handle_.get(), nullptr); one != nullptr;
         one = ::sqlite3_next_stmt(handle_.get(), one)) {
        ++kept;
        if (::sqlite3_stmt_status(one, SQLITE_STMTSTATUS_RUN, 0) == 1000) {
            used_most = one;
        }
    }
    EXPECT_LE(kept, 16);
    EXPECT_NE(used_most, nullptr) << "the one that stays the same is prepared once";
}

TEST_F(in_memory, a_statement_that_is_interrupted_is_busy) {
    sqlite_database connection{handle_.get()};
    fence guarded{connection};
    guarded.create_table();
    ::sqlite3_progress_handler(
        handle_.get(), 1, [](void*) { return 1; }, nullptr);
    EXPECT_EQ(error_of([&] { return guarded.announce("stock", {33}); }), errc::busy);
    ::sqlite3_progress_handler(handle_.get(), 0, nullptr, nullptr);
    EXPECT_EQ(guarded.newest("stock"), fencing_token{0});
}

}  // namespace

}  // namespace holdfast::guard::testing
