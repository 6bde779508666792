#pragma once

#include <string>
#include <utility>
#include <vector>

#include <holdfast/export.hpp>
#include <holdfast/guard/database.hpp>

struct sqlite3;
struct sqlite3_stmt;

namespace holdfast::guard {
inline namespace v0 {

/// A connection to SQLite, 3.37 or newer. Keeps the last 16 statements that it prepared, so it must be
/// gone before the connection is closed.
///
/// A guard's first statement takes the database's write lock, also in a transaction begun with plain
/// `BEGIN`. If the transaction has read before, and somebody wrote since, that fails with `busy`: begin
/// with `BEGIN IMMEDIATE` to wait instead.
class HOLDFAST_EXPORT sqlite_database final : public database {
public:
    /// Throws `invalid_argument` for a null connection, `store_unavailable` for one that failed to
    /// open.
    explicit sqlite_database(sqlite3* connection);
    sqlite_database(const sqlite_database&) = delete;
    sqlite_database& operator=(const sqlite_database&) = delete;
    ~sqlite_database() override;

    [[nodiscard]] dialect speaks() const noexcept override { return dialect::sqlite; }
    [[nodiscard]] bool in_transaction() const override;
    answer run(std::string_view statement, std::span<const parameter> parameters) override;

private:
    sqlite3_stmt* prepared(std::string_view statement);
    [[noreturn]] void fail(int result) const;

    sqlite3* connection_;
    std::vector<std::pair<std::string, sqlite3_stmt*>> prepared_;
};

}  // namespace v0
}  // namespace holdfast::guard
