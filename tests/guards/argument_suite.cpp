#include <array>
#include <chrono>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "odd_keys.hpp"
#include "sql_session.hpp"

/// What the guards and `database::run` make of odd arguments, the same on every database.
namespace holdfast::guard::testing {

namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using verdict = once_reply::verdict;

using arguments_on = sql_guards;
constexpr lease_columns stock_row{.table = "product_stock", .key = "id"};
constexpr auto longest = std::chrono::milliseconds::max();
constexpr auto largest = std::numeric_limits<std::int64_t>::max();

TEST_F(arguments_on, no_two_keys_are_the_same) {
    expect_distinct_keys(old_db(), fresh_db());
}

/// What the guards' pages give for this database, to be put into migrations.
[[nodiscard]] std::vector<std::string> documented_tables(dialect which) {
    const std::string wanted = which == dialect::sqlite     ? "-- SQLite"
                               : which == dialect::postgres ? "-- PostgreSQL"
                                                            : "-- MariaDB, MySQL";
    std::vector<std::string> statements;
    for (const std::string page : {"fenced-write", "once", "storage-lease"}) {
        std::ifstream file{HOLDFAST_DOCS "/guards/" + page + ".md"};
        bool is_ours = false;
        bool is_complete = true;
        for (std::string line; std::getline(file, line);) {
            if (line.starts_with("-- ") || line.starts_with("```")) {
                is_ours = line == wanted;
            } else if (is_ours) {
                statements.resize(statements.size() + (is_complete ? 1U : 0U));
                statements.back() += line;
                is_complete = line.ends_with(';');
            }
        }
    }
    return statements;
}

TEST_F(arguments_on, the_tables_of_the_pages_serve_as_well) {
    const auto statements = documented_tables(old_db().speaks());
    ASSERT_EQ(statements.size(), old_db().speaks() == dialect::mysql ? 3U : 4U);
    for (const auto* table : {"holdfast_fence", "holdfast_lease", "holdfast_once"}) {
        old_->execute(std::string{"DROP TABLE "} + table);
    }
    for (const auto& statement : statements) {
        old_->execute(statement);
    }
    expect_distinct_keys(old_db(), fresh_db());
}

/// In a column of the user's the key means what the column makes of it, and never a part of it.
TEST_F(arguments_on, a_key_that_only_begins_like_a_row_s_finds_no_row) {
    old_->execute("INSERT INTO product_stock VALUES (0, 100, 0)");
    storage_lease lease{old_db(), stock_row};
    EXPECT_EQ(lease.read("1"), lease_sequence{0});
    for (const auto& key : {"1x"s, "x"s, "1\0"s, "1\0x"s, "\xff"s, "1\xff"s, "1;"s, "1 OR 1"s, "1'"s}) {
        SCOPED_TRACE(key);
        std::optional<lease_sequence> found;
        const auto failed = error_of([&] { return found = lease.read(key); });
        EXPECT_TRUE(!failed || failed == errc::invalid_argument) << failed.message();
        EXPECT_EQ(found, std::nullopt);
        old_->execute("BEGIN");
        auto result = contest::lost;
        static_cast<void>(error_of([&] { return result = lease.advance(key, {0}); }));
        EXPECT_EQ(result, contest::lost);
        old_->execute("ROLLBACK");
    }
}

TEST_F(arguments_on, a_name_of_a_table_may_have_its_schema) {
    const std::string schema = old_db().speaks() == dialect::sqlite     ? "main."
                               : old_db().speaks() == dialect::postgres ? "public."
                                                                        : "test.";
    fence tokens{old_db(), schema + "our_fence"};
    tokens.create_table();
    EXPECT_EQ(tokens.announce("stock", {7}), admission::admitted);
    EXPECT_EQ(fence(fresh_db(), "our_fence").newest("stock"), fencing_token{7});
    once operations{old_db(), {}, schema + "our_once"};
    operations.create_table();
    operations.create_table();
    EXPECT_EQ(operations.claim("pay").result, verdict::claimed);
    EXPECT_EQ(once(fresh_db(), {}, "our_once").claim("pay").result, verdict::running);
    EXPECT_EQ(operations.forget(), 0U);
    EXPECT_EQ(storage_lease(old_db(), {.table = schema + "product_stock", .key = "id"}).read("1"),
              lease_sequence{0});
    old_->execute("DROP TABLE our_fence");
    old_->execute("DROP TABLE our_once");
}

/// PostgreSQL cuts longer ones off.
TEST_F(arguments_on, a_name_of_a_table_has_at_most_63_characters) {
    const std::string long_name(64, 't');
    EXPECT_EQ(error_of([&] { return fence(old_db(), long_name); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return once(old_db(), {}, "public." + long_name); }),
              errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return storage_lease(old_db(), {.table = "t", .key = long_name}); }),
              errc::invalid_argument);
    EXPECT_NO_THROW(fence(old_db(), std::string(63, 's') + "." + std::string(63, 't')));
}

TEST_F(arguments_on, tokens_that_no_lock_gives_are_refused) {
    fence guarded{old_db()};
    for (const auto wild : {std::uint64_t{0}, std::uint64_t{1} << 63U, ~std::uint64_t{0}}) {
        EXPECT_EQ(error_of([&] { return guarded.announce("stock", {wild}); }), errc::invalid_argument);
    }
    EXPECT_EQ(guarded.newest("stock"), fencing_token{0});
}

TEST_F(arguments_on, a_sequence_goes_up_to_the_largest_and_then_nothing_is_won) {
    old_->execute("UPDATE product_stock SET lease_seq = " + std::to_string(largest - 1));
    storage_lease lease{old_db(), stock_row};
    old_->execute("BEGIN");
    EXPECT_EQ(lease.advance("1", {-1}), contest::lost);
    EXPECT_EQ(lease.advance("1", {std::numeric_limits<std::int64_t>::min()}), contest::lost);
    EXPECT_EQ(lease.advance("1", {largest - 1}), contest::won);
    old_->execute("COMMIT");
    EXPECT_EQ(lease.read("1"), lease_sequence{largest});
    old_->execute("BEGIN");
    EXPECT_EQ(error_of([&] { return lease.advance("1", {largest}); }), errc::store_error);
    old_->execute("ROLLBACK");
    EXPECT_EQ(lease.read("1"), lease_sequence{largest});
}

TEST_F(arguments_on, a_sequence_that_is_null_is_named_as_such) {
    old_->execute("CREATE TABLE nullable (id BIGINT PRIMARY KEY, lease_seq BIGINT)");
    old_->execute("INSERT INTO nullable (id) VALUES (1)");
    EXPECT_EQ(
        error_of([&] { return storage_lease(old_db(), {.table = "nullable", .key = "id"}).read("1"); }),
        errc::bad_configuration);
    old_->execute("DROP TABLE nullable");
}

TEST_F(arguments_on, terms_out_of_range_are_refused_at_construction) {
    for (const auto& terms :
         {once_terms{.claim = 0ms}, once_terms{.claim = -1ms}, once_terms{.keep = -1ms},
          once_terms{.keep = 0ms}, once_terms{.keep = 999ms},
          once_terms{.claim = std::chrono::days{366} + 1ms}, once_terms{.claim = longest},
          once_terms{.keep = std::chrono::days{36525} + 1ms}, once_terms{.keep = longest},
          once_terms{.keep = std::chrono::milliseconds::min()}}) {
        EXPECT_EQ(error_of([&] { return once(old_db(), terms); }), errc::invalid_argument);
    }
    EXPECT_NE(text_of([&] { return once(old_db(), {.claim = longest}); }).find("1 ms to 366 days"),
              std::string::npos);
    EXPECT_NE(text_of([&] { return once(old_db(), {.keep = longest}); }).find("1 s to 36525 days"),
              std::string::npos);
}

TEST_F(arguments_on, the_longest_terms_do_what_they_say) {
    once patient{old_db(), {.claim = std::chrono::days{366}, .keep = std::chrono::days{36525}}};
    const auto mine = patient.claim("pay");
    ASSERT_EQ(mine.result, verdict::claimed);
    const auto other = once{fresh_db()}.claim("pay");
    EXPECT_EQ(other.result, verdict::running);
    EXPECT_GT(other.retry_after, std::chrono::days{365});
    EXPECT_EQ(patient.extend(mine.ticket), completion::recorded);
    EXPECT_EQ(patient.complete(mine.ticket, "paid"), completion::recorded);
    EXPECT_EQ(patient.forget(), 0U);
    EXPECT_EQ(once{fresh_db()}.claim("pay").outcome, "paid");
}

TEST_F(arguments_on, forget_takes_every_limit) {
    once operations{old_db(), {.keep = 1s}};
    for (const auto* operation : {"pay:1", "pay:2"}) {
        static_cast<void>(operations.complete(operations.claim(operation).ticket, "done"));
    }
    old_->execute("UPDATE holdfast_once SET taken_until = 1");
    EXPECT_EQ(operations.forget(0), 0U);
    EXPECT_EQ(operations.forget(std::numeric_limits<std::size_t>::max()), 2U);
}

TEST_F(arguments_on, of_two_statements_in_one_text_none_is_executed) {
    for (const auto* text : {"UPDATE product_stock SET stock = 1; UPDATE product_stock SET stock = 2",
                             "UPDATE product_stock SET stock = 1; nonsense",
                             "UPDATE product_stock SET stock = 1;; UPDATE product_stock SET stock = 2",
                             "UPDATE product_stock SET stock = ;"}) {
        EXPECT_EQ(error_of([&] { return old_db().run(text, {}); }), errc::invalid_argument) << text;
    }
    EXPECT_EQ(stock(), "100");
}

TEST_F(arguments_on, a_semicolon_at_the_end_or_in_a_text_is_no_second_statement) {
    EXPECT_EQ(old_db().run("UPDATE product_stock SET stock = 99;", {}).changed, 1U);
    EXPECT_EQ(old_db().run("UPDATE product_stock SET stock = 98 ; \n", {}).changed, 1U);
    EXPECT_EQ(old_db().run("SELECT 'a; b'", {}).row.at(0), "a; b");
    EXPECT_EQ(stock(), "98");
}

TEST_F(arguments_on, a_statement_with_a_zero_byte_is_refused_as_a_whole) {
    const auto text = "UPDATE product_stock SET stock = 1\0 WHERE id = 2"s;
    EXPECT_EQ(error_of([&] { return old_db().run(text, {}); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return old_db().run("", {}); }), errc::invalid_argument);
    EXPECT_EQ(stock(), "100");
}

TEST_F(arguments_on, parameters_too_many_or_too_few_are_refused) {
    const std::array one{parameter::of(1)};
    const std::array three{parameter::of(1), parameter::of(1), parameter::of(1)};
    const std::string text = "UPDATE product_stock SET stock = $1 WHERE id = $2";
    EXPECT_EQ(error_of([&] { return old_db().run(text, {}); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return old_db().run(text, one); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return old_db().run(text, three); }), errc::invalid_argument);
    EXPECT_EQ(stock(), "100");
}

TEST_F(arguments_on, a_tenth_parameter_is_not_the_first_with_a_zero) {
    std::vector<parameter> parameters(9, parameter::of(1));
    parameters.push_back(parameter::of(55));
    old_db().run(
        "UPDATE product_stock SET stock = $10 WHERE id = $1 AND id = $2 AND id = $3 AND id = $4 AND id "
        "="
        " $5 AND id = $6 AND id = $7 AND id = $8 AND id = $9",
        parameters);
    EXPECT_EQ(stock(), "55");
}

TEST_F(arguments_on, only_statements_that_change_rows_have_changed_some) {
    EXPECT_EQ(old_db().run("UPDATE product_stock SET stock = 99", {}).changed, 1U);
    EXPECT_EQ(old_db().run("BEGIN", {}).changed, 0U);
    EXPECT_EQ(old_db().run("SELECT stock FROM product_stock", {}).changed, 0U);
    EXPECT_EQ(old_db().run("UPDATE product_stock SET stock = 98 WHERE id = 2", {}).changed, 0U);
    EXPECT_EQ(old_db().run("COMMIT", {}).changed, 0U);
}

}  // namespace

}  // namespace holdfast::guard::testing
