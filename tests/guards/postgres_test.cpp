#include <future>
#include <memory>
#include <stdexcept>
#include <support/postgres_server.hpp>
#include <support/server_process.hpp>

#include <holdfast/guard/postgres.hpp>
#include "odd_keys.hpp"
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
    [[nodiscard]] PGconn* handle() const { return handle_.get(); }
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

void cancel(sql_session& observer, sql_session& other) {
    const auto pid = std::to_string(dynamic_cast<postgres_session&>(other).server_process());
    observer.execute("SELECT pg_cancel_backend(" + pid + ")");
}

void limit_statements(sql_session& session) {
    session.execute("SET statement_timeout = '50ms'");
}

void with_refused_connection(const std::function<void(database&)>& use) {
    const std::unique_ptr<PGconn, decltype(&::PQfinish)> handle{
        ::PQconnectdb("host=127.0.0.1 port=1 user=nobody dbname=none"), &::PQfinish};
    postgres_database refused{handle.get()};
    EXPECT_NE(text_of([&] { return refused.run("SELECT 1", {}); }).find("Connection refused"),
              std::string::npos);
    use(refused);
}

namespace {

using postgres_guards = sql_guards;

TEST(postgres_connection, null_is_refused_in_words) {
    const auto make = [] { return postgres_database(nullptr).speaks(); };
    EXPECT_EQ(error_of(make), errc::invalid_argument);
    EXPECT_NE(text_of(make).find("postgres_database: the connection is null"), std::string::npos);
}

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

TEST_F(postgres_guards, a_text_without_a_statement_is_refused_in_words) {
    for (const std::string text : {" ", ";", "\n", "-- hello", "/* hello */"}) {
        SCOPED_TRACE(text);
        EXPECT_EQ(error_of([&] { return old_db().run(text, {}); }), errc::invalid_argument);
    }
}

/// PostgreSQL answers the COMMIT of such a transaction with ROLLBACK, and not with an error.
TEST_F(postgres_guards, a_commit_that_the_server_made_a_rollback_is_an_error_in_words) {
    for (const std::string commit :
         {"COMMIT", "commit;", "END", "-- done\nCOMMIT", "/* a /* b */ */COMMIT", "COMMIT AND CHAIN",
          "PREPARE TRANSACTION 'stock'"}) {
        SCOPED_TRACE(commit);
        old_->execute("BEGIN");
        EXPECT_EQ(old_db().run("UPDATE product_stock SET stock = 99", {}).changed, 1U);
        EXPECT_TRUE(error_of([&] { return old_db().run("SELECT nonsense", {}); }));
        const auto text = text_of([&] { return old_db().run(commit, {}); });
        EXPECT_NE(text.find("the server rolled the transaction back"), std::string::npos) << text;
        old_->execute("ROLLBACK");
        EXPECT_EQ(stock(), "100");
    }
    old_->execute("BEGIN");
    EXPECT_TRUE(error_of([&] { return old_db().run("SELECT nonsense", {}); }));
    EXPECT_EQ(error_of([&] { return old_db().run("COMMIT", {}); }), errc::store_error);
}

TEST_F(postgres_guards, a_rollback_that_was_asked_for_is_none) {
    for (const std::string rollback : {"ROLLBACK", "rollback;", "ABORT", " -- enough\n ROLLBACK",
                                       "/* a /* b */ */ROLLBACK", "ROLLBACK TO SAVEPOINT before"}) {
        SCOPED_TRACE(rollback);
        old_->execute("BEGIN");
        old_->execute("SAVEPOINT before");
        EXPECT_TRUE(error_of([&] { return old_db().run("SELECT nonsense", {}); }));
        EXPECT_FALSE(error_of([&] { return old_db().run(rollback, {}); }));
        old_->execute("ROLLBACK");
    }
}

TEST_F(postgres_guards, a_connection_in_pipeline_mode_is_refused_in_words) {
    ASSERT_EQ(::PQenterPipelineMode(dynamic_cast<postgres_session&>(*old_).handle()), 1);
    EXPECT_EQ(error_of([&] { return fence{old_db()}.announce("stock", {33}); }),
              errc::invalid_argument);
    EXPECT_EQ(::PQexitPipelineMode(dynamic_cast<postgres_session&>(*old_).handle()), 1);
    EXPECT_EQ(fence{old_db()}.announce("stock", {33}), admission::admitted);
}

/// The same bytes are other letters to each of them; Shift_JIS has letters twice.
TEST_F(postgres_guards, no_two_keys_are_the_same_whatever_the_connections_encoding) {
    fresh_->execute("SET bytea_output TO 'escape'");
    for (const std::string encoding : {"LATIN1", "SJIS", "SQL_ASCII"}) {
        SCOPED_TRACE(encoding);
        SetUp();
        old_->execute("SET client_encoding TO '" + encoding + "'");
        expect_distinct_keys(old_db(), fresh_db());
    }
}

TEST_F(postgres_guards, a_text_with_a_zero_byte_is_refused_and_not_cut) {
    old_->execute("CREATE TABLE named_stock (name text PRIMARY KEY, lease_seq bigint NOT NULL)");
    old_->execute("INSERT INTO named_stock VALUES ('pay', 7)");
    storage_lease lease{old_db(), {.table = "named_stock", .key = "name"}};
    EXPECT_EQ(lease.read("pay"), lease_sequence{7});
    EXPECT_EQ(error_of([&] {
                  return lease.read(std::string_view{"pay\0x", 5});
              }),
              errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return lease.read("pay\xff"); }), errc::invalid_argument);
    const auto mine = once{old_db()}.claim("pay").ticket;
    auto forged = mine;
    forged.claimant += '\0';
    EXPECT_EQ(error_of([&] { return once{old_db()}.complete(forged, "paid"); }),
              errc::invalid_argument);
    EXPECT_EQ(once{fresh_db()}.claim("pay").result, once_reply::verdict::running);
    old_->execute("DROP TABLE named_stock");
}

/// As tables that were made with `text` columns.
TEST_F(postgres_guards, a_table_of_texts_still_serves_and_takes_no_key_for_another) {
    old_->execute("CREATE TABLE old_fence (resource text PRIMARY KEY, token bigint NOT NULL)");
    fence guarded{old_db(), "old_fence"};
    EXPECT_EQ(guarded.announce("pay", {7}), admission::admitted);
    EXPECT_EQ(guarded.announce("pay", {6}), admission::stale);
    EXPECT_EQ(old_->value("SELECT resource FROM old_fence"), "pay");
    EXPECT_EQ(error_of([&] {
                  return guarded.announce(std::string_view{"pay\0x", 5}, {6});
              }),
              errc::invalid_argument);
    old_->execute("DROP TABLE old_fence");
}

TEST_F(postgres_guards, a_session_that_the_server_ended_in_its_transaction_leaves_the_outcome_unknown) {
    const auto pid = std::to_string(dynamic_cast<postgres_session&>(*old_).server_process());
    old_->execute("SET idle_in_transaction_session_timeout = '20ms'");
    old_->execute("BEGIN");
    testing_support::wait_until("the server has ended the session", [&] {
        return fresh_->value("SELECT count(*) FROM pg_stat_activity WHERE pid = " + pid) == "0";
    });
    EXPECT_EQ(error_of([&] { return fence{old_db()}.admit("stock", {33}); }), errc::outcome_unknown);
    EXPECT_EQ(error_of([&] { return fence{old_db()}.admit("stock", {33}); }), errc::store_unavailable);
}

TEST_F(postgres_guards, a_command_that_is_under_way_is_misuse) {
    PGconn* const handle = dynamic_cast<postgres_session&>(*old_).handle();
    ASSERT_EQ(::PQsendQuery(handle, "SELECT 1"), 1);
    EXPECT_EQ(error_of([&] { return fence{old_db()}.announce("stock", {33}); }),
              errc::invalid_argument);
    while (PGresult* const result = ::PQgetResult(handle)) {
        ::PQclear(result);
    }
    EXPECT_EQ(fence{old_db()}.announce("stock", {33}), admission::admitted);
}

TEST_F(postgres_guards, a_session_that_may_only_read_says_so) {
    old_->execute("SET default_transaction_read_only = on");
    EXPECT_EQ(error_of([&] { return fence{old_db()}.announce("stock", {33}); }), errc::unauthorised);
}

/// So that poolers, which give a session to another user, are welcome.
TEST_F(postgres_guards, nothing_is_left_in_the_session) {
    static_cast<void>(fence{old_db()}.announce("stock", {33}));
    static_cast<void>(once{old_db()}.claim("pay:123"));
    EXPECT_EQ(old_->value("SELECT count(*) FROM pg_prepared_statements"), "0");
    EXPECT_EQ(old_->value("SELECT count(*) FROM pg_cursors"), "0");
    EXPECT_EQ(old_->value("SELECT count(*) FROM pg_settings WHERE source = 'session' AND name NOT LIKE"
                          " 'client%'"),
              fresh_->value("SELECT count(*) FROM pg_settings WHERE source = 'session' AND name NOT"
                            " LIKE 'client%'"));
}

TEST_F(postgres_guards, a_lock_timeout_of_the_users_is_busy) {
    fresh_->execute("BEGIN");
    EXPECT_EQ(fence{fresh_db()}.admit("stock", {34}), admission::admitted);
    old_->execute("SET lock_timeout = '20ms'");
    EXPECT_EQ(error_of([&] { return fence{old_db()}.announce("stock", {33}); }), errc::busy);
    fresh_->execute("ROLLBACK");
}

/// libpq writes them to the standard error, and the server to its log.
TEST_F(postgres_guards, a_table_that_is_there_is_made_again_without_a_notice) {
    std::string notices;
    ::PQsetNoticeProcessor(
        dynamic_cast<postgres_session&>(*old_).handle(),
        [](void* into, const char* text) { *static_cast<std::string*>(into) += text; }, &notices);
    old_->execute("CREATE SCHEMA elsewhere");
    for (const std::string schema : {"", "elsewhere.", "Elsewhere."}) {
        fence{old_db(), schema + "Our_fence"}.create_table();
        once{old_db(), {}, schema + "Our_once"}.create_table();
    }
    storage_lease{old_db()}.create_table();
    storage_lease{old_db()}.create_table();
    fence{old_db(), "Our_fence"}.create_table();
    once{old_db(), {}, "Our_once"}.create_table();
    EXPECT_EQ(notices, "");
    EXPECT_EQ(fence(old_db(), "our_fence").announce("stock", {7}), admission::admitted);
    EXPECT_EQ(fence(old_db(), "elsewhere.our_fence").newest("stock"), fencing_token{0});
    old_->execute("SET search_path TO elsewhere, public");
    old_->execute("DROP TABLE elsewhere.our_fence, elsewhere.our_once");
    fence{old_db(), "our_fence"}.create_table();
    EXPECT_EQ(fence(old_db(), "our_fence").newest("stock"), fencing_token{0})
        << "where CREATE TABLE makes one, not where another is found";
    once{old_db(), {}, "our_once"}.create_table();
    old_->execute("DROP INDEX elsewhere.our_once_taken_until");
    once{old_db(), {}, "our_once"}.create_table();
    EXPECT_EQ(
        old_->value("SELECT count(*) FROM pg_indexes WHERE schemaname = 'elsewhere' AND indexname ="
                    " 'our_once_taken_until'"),
        "1");
    EXPECT_EQ(notices, "");
    old_->execute("DROP TABLE public.our_fence, public.our_once, our_fence, our_once");
    old_->execute("DROP SCHEMA elsewhere");
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
