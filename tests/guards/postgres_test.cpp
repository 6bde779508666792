#include <future>
#include <memory>
#include <stdexcept>
#include <support/postgres_server.hpp>

#include <holdfast/guard/postgres.hpp>
#include "row_locks.hpp"

#include <libpq-fe.h>

namespace holdfast::guard::testing {

namespace {

class postgres_session final : public sql_session {
public:
    explicit postgres_session(const std::string& server)
        : handle_{::PQconnectdb(server.c_str()), &::PQfinish} {
        if (::PQstatus(handle_.get()) != CONNECTION_OK) {
            throw std::runtime_error{::PQerrorMessage(handle_.get())};
        }
        ::PQsetNoticeProcessor(
            handle_.get(), [](void*, const char*) {}, nullptr);
    }

    void execute(const std::string& sql) override { static_cast<void>(value(sql)); }
    std::string value(const std::string& sql) override {
        const std::unique_ptr<PGresult, decltype(&::PQclear)> result{
            ::PQexec(handle_.get(), sql.c_str()), &::PQclear};
        const auto status = ::PQresultStatus(result.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
            throw std::runtime_error{::PQresultErrorMessage(result.get())};
        }
        return ::PQntuples(result.get()) > 0 ? ::PQgetvalue(result.get(), 0, 0) : "";
    }
    database& guarded() override { return guarded_; }
    [[nodiscard]] int server_process() const { return ::PQbackendPID(handle_.get()); }

private:
    std::unique_ptr<PGconn, decltype(&::PQfinish)> handle_;
    postgres_database guarded_{handle_.get()};
};

}  // namespace

std::unique_ptr<sql_session> open_session() {
    static const testing_support::postgres_server server;
    return std::make_unique<postgres_session>(server.connection_text());
}

std::vector<isolation_level> isolation_levels() {
    std::vector<isolation_level> levels;
    for (const std::string name : {"read committed", "repeatable read", "serializable"}) {
        levels.push_back({.name = name,
                          .setup = {"SET default_transaction_isolation TO '" + name + "'",
                                    "SET deadlock_timeout TO '20ms'"}});
    }
    return levels;
}

bool somebody_waits(sql_session& observer) {
    return observer.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") !=
           "0";
}

void cut(sql_session& observer, sql_session& other) {
    const auto pid = std::to_string(dynamic_cast<postgres_session&>(other).server_process());
    observer.execute("SELECT pg_terminate_backend(" + pid + ", 10000)");
}

namespace {

using postgres_guards = sql_guards;

/// A snapshot from before somebody else's write is of no use, and PostgreSQL says so.
TEST_F(postgres_guards, in_repeatable_read_a_transaction_older_than_the_last_write_is_busy) {
    EXPECT_EQ(write_stock(*old_, {33}, 99), admission::admitted);
    fresh_->execute("BEGIN ISOLATION LEVEL REPEATABLE READ");
    EXPECT_EQ(fresh_->value("SELECT stock FROM product_stock"), "99");
    EXPECT_EQ(write_stock(*old_, {33}, 98), admission::admitted);
    EXPECT_EQ(error_of([&] { return fence{fresh_db()}.admit("stock", {34}); }), errc::busy);
    fresh_->execute("ROLLBACK");
    EXPECT_EQ(write_stock(*fresh_, {34}, 97), admission::admitted);
}

TEST_F(postgres_guards, in_repeatable_read_a_claim_made_since_is_busy) {
    fresh_->execute("BEGIN ISOLATION LEVEL REPEATABLE READ");
    EXPECT_EQ(fresh_->value("SELECT stock FROM product_stock"), "100");
    EXPECT_EQ(once{old_db()}.claim("pay:123").result, once_reply::verdict::claimed);
    EXPECT_EQ(error_of([&] { return once{fresh_db()}.claim("pay:123"); }), errc::busy);
    fresh_->execute("ROLLBACK");
}

TEST_F(postgres_guards, a_transaction_that_failed_already_is_still_one) {
    old_->execute("BEGIN");
    EXPECT_THROW(old_->execute("SELECT nonsense"), std::runtime_error);
    EXPECT_EQ(error_of([&] { return fence{old_db()}.admit("stock", {33}); }), errc::store_error);
    old_->execute("ROLLBACK");
}

TEST_F(postgres_guards, a_lock_timeout_of_the_users_is_busy) {
    fresh_->execute("BEGIN");
    EXPECT_EQ(fence{fresh_db()}.admit("stock", {34}), admission::admitted);
    old_->execute("SET lock_timeout = '20ms'");
    EXPECT_EQ(error_of([&] { return fence{old_db()}.announce("stock", {33}); }), errc::busy);
    fresh_->execute("ROLLBACK");
}

TEST_F(postgres_guards, two_that_create_the_table_at_once_both_succeed) {
    for (int round = 0; round < 20; ++round) {
        auto other = std::async(std::launch::async, [&] { fence{fresh_db(), "raced"}.create_table(); });
        EXPECT_NO_THROW((fence{old_db(), "raced"}.create_table()));
        EXPECT_NO_THROW(other.get());
        old_->execute("DROP TABLE raced");
    }
}

}  // namespace

}  // namespace holdfast::guard::testing
