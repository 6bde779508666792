#pragma once

#include <holdfast/export.hpp>
#include <holdfast/guard/database.hpp>

struct pg_conn;

namespace holdfast::guard {
inline namespace v0 {

/// A connection to PostgreSQL, 9.5 or newer (`PGconn*`).
///
/// Works in every isolation level. In REPEATABLE READ and SERIALIZABLE a guard whose row was changed
/// since the transaction began ends with `busy`: roll back and start again. After any error PostgreSQL
/// wants the transaction rolled back: it turns a COMMIT into a ROLLBACK, and `run` throws
/// `store_error`.
///
/// Nothing is prepared and nothing is kept in the session, so poolers of connections are welcome.
class HOLDFAST_EXPORT postgres_database final : public database {
public:
    /// Throws `invalid_argument` for a null connection.
    explicit postgres_database(pg_conn* connection);

    [[nodiscard]] dialect speaks() const noexcept override { return dialect::postgres; }
    [[nodiscard]] bool in_transaction() const override;
    answer run(std::string_view statement, std::span<const parameter> parameters) override;

private:
    pg_conn* connection_;
};

}  // namespace v0
}  // namespace holdfast::guard
