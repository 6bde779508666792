#include <array>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <support/mariadb_server.hpp>
#include <support/server_process.hpp>

#include <holdfast/guard/mysql.hpp>
#include "odd_keys.hpp"
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
    /// Leaves the result unread.
    void ask(const std::string& sql) { ::mysql_query(handle_.get(), sql.c_str()); }
    [[nodiscard]] MYSQL* handle() const { return handle_.get(); }
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

void cancel(sql_session& observer, sql_session& other) {
    observer.execute("KILL QUERY " + std::to_string(dynamic_cast<mysql_session&>(other).number()));
}

void limit_statements(sql_session& session) {
    session.execute("SET max_statement_time = 0.05");
}

void with_refused_connection(const std::function<void(database&)>& use) {
    for (const char reconnect : {'\0', '\1'}) {
        const std::unique_ptr<MYSQL, decltype(&::mysql_close)> handle{::mysql_init(nullptr),
                                                                      &::mysql_close};
        ::mysql_options(handle.get(), MYSQL_OPT_RECONNECT, &reconnect);
        EXPECT_EQ(::mysql_real_connect(handle.get(), "127.0.0.1", "root", "", "test", 1, nullptr, 0),
                  nullptr);
        mysql_database refused{handle.get()};
        use(refused);
    }
}

namespace {

using mysql_guards = sql_guards;

TEST(mysql_connection, null_is_refused_in_words) {
    const auto make = [] { return mysql_database(nullptr).speaks(); };
    EXPECT_EQ(error_of(make), errc::invalid_argument);
    EXPECT_NE(text_of(make).find("mysql_database: the connection is null"), std::string::npos);
}

TEST_F(mysql_guards, a_result_that_was_not_read_is_misuse) {
    mysql_session careless;
    careless.ask("SELECT 1");
    EXPECT_EQ(error_of([&] { return fence{careless.guarded()}.announce("stock", {33}); }),
              errc::invalid_argument);
}

TEST_F(mysql_guards, a_statement_without_its_parameters_is_refused_in_words) {
    EXPECT_EQ(error_of([&] { return old_db().run("SELECT $1", {}); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return old_db().run("SELECT $", {}); }), errc::invalid_argument);
}

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

TEST_F(mysql_guards, a_table_is_not_made_in_a_transaction_which_that_would_commit) {
    old_->execute("BEGIN");
    const auto make = [&] { return fence{old_db()}.create_table(), 0; };
    EXPECT_EQ(error_of(make), errc::invalid_argument);
    EXPECT_NE(text_of(make).find("would commit it"), std::string::npos) << text_of(make);
    EXPECT_EQ(text_of(make).find("others would not see"), std::string::npos) << text_of(make);
    old_->execute("ROLLBACK");
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

/// Also where the server reads statements in another character set than the client believes: in GBK, an
/// escaped quote may be one letter and the quote.
TEST_F(mysql_guards, no_two_keys_are_the_same_whatever_the_connections_character_set) {
    for (const std::string set : {"latin1", "gbk", "sjis", "binary"}) {
        SCOPED_TRACE(set);
        SetUp();
        old_->execute("SET NAMES " + set);
        expect_distinct_keys(old_db(), fresh_db());
    }
}

TEST_F(mysql_guards, a_text_stays_a_text_whatever_the_servers_character_set) {
    old_->execute("SET NAMES gbk");
    const std::string odd = "\xbf' OR 1 = 1 -- ";
    const std::array parameters{parameter::of(odd)};
    EXPECT_EQ(error_of([&] {
                  return old_db().run("UPDATE product_stock SET stock = 1 WHERE id = $1", parameters);
              }),
              errc::invalid_argument)
        << "no text in this character set";
    EXPECT_EQ(stock(), "100");
}

/// A row whose column takes two texts for the same is one row, with one sequence.
TEST_F(mysql_guards, a_key_of_the_users_is_compared_as_its_column_does) {
    old_->execute(
        "CREATE TABLE named_stock (name VARCHAR(50) COLLATE utf8mb4_general_ci PRIMARY KEY,"
        " lease_seq BIGINT NOT NULL) CHARACTER SET utf8mb4");
    old_->execute("INSERT INTO named_stock VALUES ('pay', 7)");
    storage_lease lease{old_db(), {.table = "named_stock", .key = "name"}};
    for (const auto* same : {"pay", "Pay", "pay "}) {
        EXPECT_EQ(lease.read(same), lease_sequence{7}) << same;
    }
    EXPECT_EQ(lease.read("payx"), std::nullopt);
    old_->execute("DROP TABLE named_stock");
}

TEST_F(mysql_guards, two_statements_are_refused_where_the_connection_allows_them) {
    mysql_session several{CLIENT_MULTI_STATEMENTS};
    EXPECT_EQ(error_of([&] {
                  return several.guarded().run(
                      "UPDATE product_stock SET stock = 1; UPDATE product_stock SET stock = 2", {});
              }),
              errc::invalid_argument);
    EXPECT_EQ(stock(), "100");
    EXPECT_EQ(several.guarded().run("UPDATE product_stock SET stock = 99;", {}).changed, 1U);
}

/// The server would end the connection.
/// The client library connects again by itself, if the user wants that, and goes on in another session:
/// without the transaction, and without `autocommit = 0`.
TEST_F(mysql_guards, who_is_connected_again_in_the_middle_is_not_admitted) {
    for (const std::string operation : {"admit", "advance"}) {
        SCOPED_TRACE(operation);
        const std::unique_ptr<MYSQL, decltype(&::mysql_close)> handle{::mysql_init(nullptr),
                                                                      &::mysql_close};
        const char reconnect = 1;
        ::mysql_options(handle.get(), MYSQL_OPT_RECONNECT, &reconnect);
        ASSERT_NE(::mysql_real_connect(handle.get(), nullptr, "root", "", "test", 0,
                                       server().unix_socket().c_str(), 0),
                  nullptr);
        ASSERT_EQ(::mysql_query(handle.get(), "SET autocommit = 0"), 0);
        const auto number = std::to_string(::mysql_thread_id(handle.get()));
        fresh_->execute("KILL " + number);
        testing_support::wait_until("the server has closed the connection", [&] {
            return fresh_->value("SELECT count(*) FROM information_schema.processlist WHERE id = " +
                                 number) == "0";
        });
        mysql_database connection{handle.get()};
        const auto failed = error_of([&] {
            return operation == "admit"
                       ? fence{connection}.admit("stock", {33}) == admission::admitted
                       : storage_lease{connection}.advance("stock", {0}) == contest::won;
        });
        EXPECT_EQ(failed, errc::outcome_unknown);
    }
}

TEST_F(mysql_guards, an_outcome_that_is_too_long_for_the_server_is_refused_in_words) {
    const auto most = std::stoull(old_->value("SELECT @@max_allowed_packet"));
    once operations{old_db()};
    const auto mine = operations.claim("pay:123").ticket;
    EXPECT_EQ(operations.complete(mine, std::string(most / 8, 'x')), completion::recorded);
    const auto other = operations.claim("pay:124").ticket;
    const auto record = [&] { return operations.complete(other, std::string(most / 4, 'x')); };
    EXPECT_EQ(error_of(record), errc::invalid_argument);
    EXPECT_NE(text_of(record).find("max_allowed_packet"), std::string::npos);
    EXPECT_EQ(operations.complete(other, "paid"), completion::recorded);
    EXPECT_EQ(once{fresh_db()}.claim("pay:123").outcome.size(), most / 8);
}

TEST_F(mysql_guards, the_further_results_of_a_procedure_are_not_in_the_way) {
    old_db().run("CREATE OR REPLACE PROCEDURE look() BEGIN SELECT 7; SELECT 8; END", {});
    EXPECT_EQ(old_db().run("CALL look()", {}).number(0), 7);
    EXPECT_EQ(fence{old_db()}.announce("stock", {33}), admission::admitted);
    old_->execute("DROP PROCEDURE look");
}

TEST_F(mysql_guards, a_session_that_may_only_read_says_so) {
    old_->execute("SET SESSION TRANSACTION READ ONLY");
    EXPECT_EQ(error_of([&] { return fence{old_db()}.announce("stock", {33}); }), errc::unauthorised);
}

TEST_F(mysql_guards, a_lock_timeout_is_busy) {
    fresh_->execute("BEGIN");
    EXPECT_EQ(fence{fresh_db()}.admit("stock", {34}), admission::admitted);
    old_->execute("SET innodb_lock_wait_timeout = 0");
    EXPECT_EQ(error_of([&] { return fence{old_db()}.announce("stock", {33}); }), errc::busy);
    fresh_->execute("ROLLBACK");
}

/// A statement that fails may have ended the transaction, and the client library is not told.
class mysql_lost_transaction : public sql_guards {
protected:
    using operation = std::pair<std::string, std::function<void(database&)>>;

    [[nodiscard]] MYSQL* handle() const { return dynamic_cast<mysql_session&>(*old_).handle(); }

    [[nodiscard]] static std::vector<operation> guards_that_need_a_transaction() {
        return {{"admit", [](database& on) { static_cast<void>(fence{on}.admit("stock", {7})); }},
                {"advance",
                 [](database& on) { static_cast<void>(storage_lease{on}.advance("stock", {0})); }}};
    }

    /// `old` has begun a transaction, and its `last_statement`, on row 2, is the deadlock's victim.
    template <class Statement>
    void be_the_victim(Statement last_statement) {
        fresh_->execute("DELETE FROM product_stock");
        fresh_->execute("INSERT INTO product_stock VALUES (1, 100, 0), (2, 100, 0)");
        old_->execute("BEGIN");
        old_->execute("UPDATE product_stock SET stock = 99 WHERE id = 1");
        fresh_->execute("BEGIN");
        fresh_->execute("UPDATE product_stock SET stock = 98 WHERE id = 2");
        // The one that has written less is the victim.
        fresh_->execute("INSERT INTO product_stock SELECT seq, 100, 0 FROM seq_10_to_50");
        auto other = std::async(std::launch::async, [&] {
            fresh_->execute("UPDATE product_stock SET stock = 98 WHERE id = 1");
        });
        testing_support::wait_until("the other one waits", [&] { return somebody_waits(*observer_); });
        last_statement("UPDATE product_stock SET stock = 99 WHERE id = 2");
        EXPECT_NO_THROW(other.get());
        fresh_->execute("ROLLBACK");
    }

    void expect_refused(const std::function<void()>& lose) {
        for (const auto& [name, ask] : guards_that_need_a_transaction()) {
            SCOPED_TRACE(name);
            lose();
            EXPECT_EQ(error_of([&, &ask = ask] { return ask(old_db()), 0; }), errc::invalid_argument);
        }
    }

    void expect_nothing_written() {
        EXPECT_EQ(fence{fresh_db()}.newest("stock"), fencing_token{0});
        EXPECT_EQ(storage_lease{fresh_db()}.read("stock"), lease_sequence{0});
    }

    std::unique_ptr<sql_session> observer_{open_session()};
};

TEST_F(mysql_lost_transaction, after_a_deadlock_nobody_is_admitted) {
    expect_refused([&] {
        be_the_victim([&](const std::string& sql) {
            EXPECT_EQ(error_of([&] { return old_db().run(sql, {}); }), errc::busy);
        });
    });
    expect_nothing_written();
}

TEST_F(mysql_lost_transaction, after_a_deadlock_of_a_statement_of_the_users_nobody_is_admitted) {
    expect_refused([&] {
        be_the_victim([&](const std::string& sql) {
            EXPECT_NE(::mysql_query(handle(), sql.c_str()), 0) << "a deadlock";
        });
    });
    expect_nothing_written();
}

TEST_F(mysql_lost_transaction, after_a_statement_that_committed_and_failed_nobody_is_admitted) {
    const std::string create = "CREATE TABLE product_stock (id INT)";
    expect_refused([&] {
        old_->execute("BEGIN");
        EXPECT_TRUE(error_of([&] { return old_db().run(create, {}); }));
    });
    expect_refused([&] {
        old_->execute("BEGIN");
        EXPECT_NE(::mysql_query(handle(), create.c_str()), 0);
    });
    expect_nothing_written();
}

/// These leave no error on the handle, and the client library does not look at the server's new status
/// either. The answer to the guard's own statement tells: its change is in effect, the caller is not
/// let in.
TEST_F(mysql_lost_transaction, what_hides_the_loss_from_the_client_library_is_noticed_afterwards) {
    expect_refused([&] {
        old_->execute("BEGIN");
        EXPECT_NE(::mysql_query(handle(), "CREATE TABLE product_stock (id INT)"), 0);
        EXPECT_EQ(::mysql_ping(handle()), 0);
        ASSERT_EQ(::mysql_errno(handle()), 0U);
    });
    fresh_->execute("DELETE FROM holdfast_lease");
    expect_refused([&] {
        old_->execute("BEGIN");
        EXPECT_EQ(::mysql_reset_connection(handle()), 0);
    });
}

TEST_F(mysql_lost_transaction, an_error_that_leaves_the_transaction_does_not_keep_anybody_out) {
    old_->execute("BEGIN");
    EXPECT_TRUE(
        error_of([&] { return old_db().run("INSERT INTO product_stock VALUES (1, 1, 1)", {}); }));
    EXPECT_EQ(fence{old_db()}.admit("stock", {7}), admission::admitted);
    EXPECT_NE(::mysql_query(handle(), "nonsense"), 0);
    EXPECT_EQ(storage_lease{old_db()}.advance("stock", {0}), contest::won);
    old_->execute("ROLLBACK");
    expect_nothing_written();
}

TEST_F(mysql_lost_transaction, who_has_none_any_more_may_announce) {
    old_->execute("BEGIN");
    EXPECT_TRUE(error_of([&] { return old_db().run("CREATE TABLE product_stock (id INT)", {}); }));
    EXPECT_EQ(fence{old_db()}.announce("stock", {7}), admission::admitted);
    EXPECT_EQ(fence{fresh_db()}.newest("stock"), fencing_token{7});
}

/// The other way round: a procedure begins one and fails.
TEST_F(mysql_lost_transaction, who_has_one_since_an_error_may_not_announce) {
    old_->execute(
        "CREATE OR REPLACE PROCEDURE begin_and_fail() BEGIN START TRANSACTION; SIGNAL SQLSTATE '45000';"
        " END");
    const auto announce = [&] { return fence{old_db()}.announce("stock", {7}); };
    EXPECT_TRUE(error_of([&] { return old_db().run("CALL begin_and_fail()", {}); }));
    EXPECT_EQ(error_of(announce), errc::invalid_argument);
    old_->execute("ROLLBACK");
    EXPECT_NE(::mysql_query(handle(), "CALL begin_and_fail()"), 0);
    EXPECT_EQ(::mysql_ping(handle()), 0);
    EXPECT_EQ(error_of(announce), errc::invalid_argument);
    old_->execute("ROLLBACK");
    expect_nothing_written();
    old_->execute("DROP PROCEDURE begin_and_fail");
}

/// The check costs a question to the server only after an error.
TEST_F(mysql_lost_transaction, without_an_error_the_server_is_asked_nothing_more) {
    const auto questions = [&] {
        return std::stoul(observer_->value(
            "SELECT variable_value FROM information_schema.global_status WHERE variable_name = "
            "'QUESTIONS'"));
    };
    old_->execute("BEGIN");
    const auto before = questions();
    EXPECT_EQ(fence{old_db()}.admit("stock", {7}), admission::admitted);
    EXPECT_EQ(questions(), before + 2 + 1) << "the row, a look at it, and the question itself";
    old_->execute("ROLLBACK");
}

}  // namespace

}  // namespace holdfast::guard::testing
