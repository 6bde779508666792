#include <memory>
#include <stdexcept>
#include <support/mariadb_server.hpp>

#include <holdfast/guard/mysql.hpp>
#include "row_locks.hpp"

#include <mysql.h>

namespace holdfast::guard::testing {

namespace {

const testing_support::mariadb_server& server() {
    static const testing_support::mariadb_server only;
    return only;
}

class mysql_session final : public sql_session {
public:
    explicit mysql_session(unsigned long flags = 0) {
        if (::mysql_real_connect(handle_.get(), nullptr, "root", "", "test", 0,
                                 server().unix_socket().c_str(), flags) == nullptr) {
            throw std::runtime_error{::mysql_error(handle_.get())};
        }
    }

    void execute(const std::string& sql) override { static_cast<void>(value(sql)); }
    std::string value(const std::string& sql) override {
        if (::mysql_query(handle_.get(), sql.c_str()) != 0) {
            throw std::runtime_error{::mysql_error(handle_.get())};
        }
        const std::unique_ptr<MYSQL_RES, decltype(&::mysql_free_result)> result{
            ::mysql_store_result(handle_.get()), &::mysql_free_result};
        const MYSQL_ROW row = result ? ::mysql_fetch_row(result.get()) : nullptr;
        return row != nullptr && row[0] != nullptr ? row[0] : "";
    }
    database& guarded() override { return guarded_; }
    [[nodiscard]] unsigned long number() const { return ::mysql_thread_id(handle_.get()); }

private:
    std::unique_ptr<MYSQL, decltype(&::mysql_close)> handle_{::mysql_init(nullptr), &::mysql_close};
    mysql_database guarded_{handle_.get()};
};

}  // namespace

std::unique_ptr<sql_session> open_session() {
    return std::make_unique<mysql_session>();
}

std::vector<isolation_level> isolation_levels() {
    const std::string set = "SET SESSION TRANSACTION ISOLATION LEVEL ";
    const std::string strictly = "SET SESSION innodb_snapshot_isolation = ";
    std::vector<isolation_level> levels;
    for (const std::string name :
         {"READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}) {
        levels.push_back({.name = name, .setup = {set + name, strictly + "OFF"}});
    }
    levels.front().dirty_reads = true;
    // MariaDB's default from 11.6 on.
    levels.push_back({.name = "REPEATABLE READ with snapshot isolation",
                      .setup = {set + "REPEATABLE READ", strictly + "ON"}});
    return levels;
}

bool somebody_waits(sql_session& observer) {
    // Not innodb_trx: that is a copy which is not made anew as long as somebody keeps asking.
    return observer.value(
               "SELECT variable_value FROM information_schema.global_status"
               " WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'") != "0";
}

void cut(sql_session& observer, sql_session& other) {
    observer.execute("KILL " + std::to_string(dynamic_cast<mysql_session&>(other).number()));
}

namespace {

using mysql_guards = sql_guards;

/// The snapshot of a transaction in REPEATABLE READ, which is the default, does not matter to guards.
TEST_F(mysql_guards, a_guard_looks_past_the_transactions_snapshot) {
    EXPECT_EQ(fence{old_db()}.announce("stock", {33}), admission::admitted);
    old_->execute("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    EXPECT_EQ(write_stock(*fresh_, {34}, 99), admission::admitted);
    EXPECT_EQ(old_->value("SELECT token FROM holdfast_fence"), "33") << "what it sees by itself";
    EXPECT_EQ(fence{old_db()}.admit("stock", {33}), admission::stale);
    old_->execute("ROLLBACK");
}

TEST_F(mysql_guards, a_claim_looks_past_the_transactions_snapshot) {
    old_->execute("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    static_cast<void>(once{fresh_db()}.complete(once{fresh_db()}.claim("pay:123").ticket, "paid"));
    EXPECT_EQ(once{old_db()}.claim("pay:123").outcome, "paid");
    old_->execute("ROLLBACK");
}

/// The user's own reads are another matter: a snapshot from before `admit` shows the past, and what is
/// computed from it overwrites the older holder's last write.
TEST_F(mysql_guards, a_read_before_admit_shows_the_past_and_loses_an_update) {
    fresh_->execute("BEGIN");
    const int read_early = std::stoi(fresh_->value("SELECT stock FROM product_stock"));
    EXPECT_EQ(write_stock(*old_, {33}, 99), admission::admitted);
    EXPECT_EQ(fence{fresh_db()}.admit("stock", {34}), admission::admitted);
    EXPECT_EQ(fresh_->value("SELECT stock FROM product_stock"), "100") << "the snapshot's";
    fresh_->execute("UPDATE product_stock SET stock = " + std::to_string(read_early - 1));
    fresh_->execute("COMMIT");
    EXPECT_EQ(stock(), "99") << "two sales were admitted";
}

TEST_F(mysql_guards, without_autocommit_there_is_always_a_transaction) {
    old_->execute("SET autocommit = 0");
    EXPECT_EQ(error_of([&] { return fence{old_db()}.announce("stock", {33}); }),
              errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return fence{old_db()}.create_table(), 0; }), errc::invalid_argument);
    EXPECT_EQ(fence{old_db()}.admit("stock", {33}), admission::admitted);
    old_->execute("COMMIT");
    EXPECT_EQ(fence{fresh_db()}.newest("stock"), fencing_token{33});
    old_->execute("SET autocommit = 1");
}

/// Such clients are told how many rows were found instead of how many were changed.
TEST_F(mysql_guards, clients_that_count_found_rows_get_the_same_answers) {
    mysql_session counting{CLIENT_FOUND_ROWS};
    fence guarded{counting.guarded()};
    EXPECT_EQ(guarded.announce("stock", {33}), admission::admitted);
    EXPECT_EQ(guarded.announce("stock", {33}), admission::admitted);
    EXPECT_EQ(guarded.announce("stock", {32}), admission::stale);
    once operations{counting.guarded()};
    const auto mine = operations.claim("pay:123");
    EXPECT_EQ(mine.result, once_reply::verdict::claimed);
    EXPECT_EQ(operations.claim("pay:123").result, once_reply::verdict::running);
    EXPECT_EQ(operations.complete(mine.ticket, "paid"), completion::recorded);
    counting.execute("BEGIN");
    EXPECT_EQ(storage_lease{counting.guarded()}.advance("a", {0}), contest::won);
    EXPECT_EQ(storage_lease{counting.guarded()}.advance("a", {0}), contest::lost);
    counting.execute("ROLLBACK");
}

TEST_F(mysql_guards, names_survive_a_server_without_backslash_escapes) {
    old_->execute("SET sql_mode = 'NO_BACKSLASH_ESCAPES'");
    EXPECT_EQ(fence{old_db()}.announce("a\\'b", {33}), admission::admitted);
    EXPECT_EQ(fence{fresh_db()}.newest("a\\'b"), fencing_token{33});
}

TEST_F(mysql_guards, a_lock_timeout_is_busy) {
    fresh_->execute("BEGIN");
    EXPECT_EQ(fence{fresh_db()}.admit("stock", {34}), admission::admitted);
    old_->execute("SET innodb_lock_wait_timeout = 0");
    EXPECT_EQ(error_of([&] { return fence{old_db()}.announce("stock", {33}); }), errc::busy);
    fresh_->execute("ROLLBACK");
}

}  // namespace

}  // namespace holdfast::guard::testing
