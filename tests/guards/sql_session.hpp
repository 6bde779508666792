#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <system_error>

#include <holdfast/error.hpp>
#include <holdfast/guard/fence.hpp>
#include <holdfast/guard/once.hpp>
#include <holdfast/guard/storage_lease.hpp>

/// What the tests of the guards have in common on all databases.
namespace holdfast::guard::testing {

/// A user of a database, with a connection of its own.
class sql_session {
public:
    virtual ~sql_session() = default;
    /// Throws `std::runtime_error` with the database's words.
    virtual void execute(const std::string& sql) = 0;
    /// The first column of the first row.
    [[nodiscard]] virtual std::string value(const std::string& sql) = 0;
    [[nodiscard]] virtual database& guarded() = 0;
};

/// Every test program has one database, and defines this.
[[nodiscard]] std::unique_ptr<sql_session> open_session();

/// The error a call ends with; none when it ends well.
template <class Call>
[[nodiscard]] std::error_code error_of(Call&& call) {
    try {
        static_cast<void>(call());
    } catch (const std::system_error& error) {
        return error.code();
    }
    return {};
}

/// The text of that error.
template <class Call>
[[nodiscard]] std::string text_of(Call&& call) {
    try {
        static_cast<void>(call());
    } catch (const std::system_error& error) {
        return error.what();
    }
    return {};
}

/// Two users, `old` and `fresh`, and a table of theirs with 100 pieces in stock.
class sql_guards : public ::testing::Test {
protected:
    void SetUp() override {
        fence{old_db()}.create_table();
        storage_lease{old_db()}.create_table();
        once{old_db()}.create_table();
        old_->execute(
            "CREATE TABLE IF NOT EXISTS product_stock (id BIGINT PRIMARY KEY, stock INTEGER NOT NULL,"
            " lease_seq BIGINT NOT NULL)");
        for (const auto* table :
             {"product_stock", "holdfast_fence", "holdfast_lease", "holdfast_once"}) {
            old_->execute(std::string{"DELETE FROM "} + table);
        }
        old_->execute("INSERT INTO product_stock VALUES (1, 100, 0)");
    }

    [[nodiscard]] database& old_db() { return old_->guarded(); }
    [[nodiscard]] database& fresh_db() { return fresh_->guarded(); }
    [[nodiscard]] std::string stock() { return old_->value("SELECT stock FROM product_stock"); }
    /// A whole transaction with the check that is asked for and one write.
    admission write_stock(sql_session& who, fencing_token token, int amount) {
        who.execute("BEGIN");
        const auto verdict = fence{who.guarded()}.admit("stock", token);
        if (verdict == admission::admitted) {
            who.execute("UPDATE product_stock SET stock = " + std::to_string(amount));
        }
        who.execute(verdict == admission::admitted ? "COMMIT" : "ROLLBACK");
        return verdict;
    }

    std::unique_ptr<sql_session> old_{open_session()};
    std::unique_ptr<sql_session> fresh_{open_session()};
};

}  // namespace holdfast::guard::testing
