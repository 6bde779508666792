#include <string>
#include <vector>

#include "sql_session.hpp"

namespace holdfast::guard::testing {

namespace {

using storage_lease_on = sql_guards;
constexpr lease_columns leased_row{.table = "product_stock", .key = "id"};

/// Of the two that hold "the" lock after a fail-over, in the order of the source's example.
TEST_F(storage_lease_on, of_two_who_read_the_same_sequence_one_wins) {
    storage_lease first{old_db(), leased_row};
    storage_lease second{fresh_db(), leased_row};
    const auto seen_by_first = first.read("1").value();
    const auto seen_by_second = second.read("1").value();

    old_->execute("BEGIN");
    EXPECT_EQ(first.advance("1", seen_by_first), contest::won);
    old_->execute("UPDATE product_stock SET stock = stock - 1 WHERE id = 1");
    old_->execute("COMMIT");
    fresh_->execute("BEGIN");
    EXPECT_EQ(second.advance("1", seen_by_second), contest::lost);
    fresh_->execute("ROLLBACK");

    EXPECT_EQ(stock(), "99");
    EXPECT_EQ(first.read("1"), lease_sequence{1});
}

TEST_F(storage_lease_on, what_is_rolled_back_wins_nothing) {
    storage_lease lease{old_db(), leased_row};
    old_->execute("BEGIN");
    EXPECT_EQ(lease.advance("1", {0}), contest::won);
    old_->execute("ROLLBACK");
    fresh_->execute("BEGIN");
    EXPECT_EQ(storage_lease(fresh_db(), leased_row).advance("1", {0}), contest::won);
    fresh_->execute("COMMIT");
}

TEST_F(storage_lease_on, a_row_that_is_not_there_has_no_sequence_and_cannot_be_won) {
    storage_lease lease{old_db(), leased_row};
    EXPECT_EQ(lease.read("2"), std::nullopt);
    old_->execute("BEGIN");
    EXPECT_EQ(lease.advance("2", {0}), contest::lost);
    old_->execute("ROLLBACK");
}

TEST_F(storage_lease_on, a_table_of_its_own_starts_at_zero_for_everything) {
    storage_lease lease{old_db()};
    EXPECT_EQ(lease.read("any name"), lease_sequence{0});
    old_->execute("BEGIN");
    EXPECT_EQ(lease.advance("any name", {1}), contest::lost);
    EXPECT_EQ(lease.advance("any name", {0}), contest::won);
    EXPECT_EQ(lease.advance("any name", {0}), contest::lost);
    EXPECT_EQ(lease.advance("any name", {1}), contest::won);
    old_->execute("COMMIT");
    EXPECT_EQ(storage_lease{fresh_db()}.read("any name"), lease_sequence{2});
}

TEST_F(storage_lease_on, a_missing_column_is_named_as_such) {
    for (const auto& wrong :
         {lease_columns{.table = "product_stock", .key = "absent"},
          lease_columns{.table = "product_stock", .key = "id", .sequence = "absent"},
          lease_columns{.table = "absent", .key = "id"}}) {
        EXPECT_EQ(error_of([&] { return storage_lease(old_db(), wrong).read("1"); }),
                  errc::bad_configuration);
    }
}

TEST_F(storage_lease_on, what_a_table_of_the_users_lacks_is_added_by_the_statement_in_the_error) {
    old_->execute("DROP TABLE IF EXISTS goods");
    old_->execute("CREATE TABLE goods (id BIGINT PRIMARY KEY)");
    old_->execute("INSERT INTO goods VALUES (1)");
    storage_lease lease{old_db(), {.table = "goods", .key = "id", .sequence = "version"}};
    const std::string statement = "ALTER TABLE goods ADD COLUMN version BIGINT NOT NULL DEFAULT 0";
    try {
        static_cast<void>(lease.read("1"));
        ADD_FAILURE() << "there is no such column";
    } catch (const std::system_error& error) {
        const std::string text{error.what()};
        EXPECT_NE(text.find("version"), std::string::npos) << text;
        EXPECT_NE(text.find(statement), std::string::npos) << text;
        EXPECT_EQ(text.find("create_table"), std::string::npos) << text;
    }
    old_->execute(statement);
    EXPECT_EQ(lease.read("1"), lease_sequence{0});
    old_->execute("DROP TABLE goods");
}

/// Inside a transaction, too, where PostgreSQL answers no further question.
TEST_F(storage_lease_on, the_error_advises_what_is_missing) {
    const std::string alter = "ALTER TABLE";
    const std::string create = "create it";
    const std::string rename = "lease_columns::key";
    struct lack {
        lease_columns columns;
        std::string advised;
        std::vector<std::string> not_advised;
    };
    const std::vector<lack> lacks{
        {{.table = "absent", .key = "id"}, create, {alter, rename}},
        {{.table = "product_stock", .key = "absent"}, rename, {alter, create}},
        {{.table = "product_stock", .key = "id", .sequence = "absent"}, alter, {rename, create}},
    };
    for (const auto& [columns, advised, not_advised] : lacks) {
        SCOPED_TRACE(advised);
        storage_lease lease{old_db(), columns};
        old_->execute("BEGIN");
        const auto in_transaction = text_of([&] { return lease.advance("1", {0}); });
        old_->execute("ROLLBACK");
        for (const auto& text : {text_of([&] { return lease.read("1"); }), in_transaction}) {
            EXPECT_NE(text.find(advised), std::string::npos) << text;
            EXPECT_EQ(text.find("create_table"), std::string::npos) << text;
            for (const auto& other : not_advised) {
                EXPECT_EQ(text.find(other), std::string::npos) << text;
            }
        }
    }
}

TEST_F(storage_lease_on, a_number_that_an_answer_does_not_have_is_an_error_in_words) {
    const auto none = old_db().run("SELECT stock FROM product_stock WHERE id = 2", {});
    const auto one = old_db().run("SELECT stock FROM product_stock WHERE id = 1", {});
    const auto text_of = [](const answer& from, std::size_t column) -> std::string {
        try {
            return std::to_string(from.number(column));
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), errc::invalid_argument);
            return error.what();
        }
    };
    EXPECT_NE(text_of(none, 0).find("the answer has no row"), std::string::npos) << text_of(none, 0);
    EXPECT_EQ(text_of(one, 0), "100");
    EXPECT_NE(text_of(one, 1).find("no column 1"), std::string::npos) << text_of(one, 1);
}

TEST_F(storage_lease_on, misuse_is_an_error) {
    storage_lease lease{old_db(), leased_row};
    EXPECT_EQ(error_of([&] { return lease.advance("1", {0}); }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { return lease.read(""); }), errc::invalid_name);
    EXPECT_EQ(error_of([&] { return lease.create_table(), 0; }), errc::invalid_argument);
    EXPECT_EQ(error_of([&] {
                  return storage_lease{old_db(), {.table = "a b", .key = "id"}};
              }),
              errc::invalid_argument);
}

}  // namespace

}  // namespace holdfast::guard::testing
