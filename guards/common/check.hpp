#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include <holdfast/error.hpp>
#include <holdfast/export.hpp>
#include <holdfast/guard/database.hpp>
#include <holdfast/guard/once.hpp>
#include <holdfast/token.hpp>

/// What all guards ask of their arguments. Everything throws `std::system_error`.
namespace holdfast::guard::detail {

/// Goes into statements as it is, so it must be one: letters, digits and underscores, with dots
/// between.
HOLDFAST_EXPORT void check_identifier(std::string_view name);
/// 1 to 255 bytes: what a key of every database can hold.
HOLDFAST_EXPORT void check_key(std::string_view key);
/// A key as the guards' own tables hold it: bytes, so that no encoding of a connection and no collation
/// makes one key of two. SQLite has text for keys that are printable UTF-8, which it compares by its
/// bytes and never changes.
[[nodiscard]] HOLDFAST_EXPORT parameter key_of(dialect which, std::string_view key);
/// Not empty, and without a zero byte, at which the databases' libraries would cut it off.
HOLDFAST_EXPORT void check_statement(std::string_view statement);
/// Sums of these and the clock stay far from the ends of every number that they are kept in.
HOLDFAST_EXPORT void check_terms(const once_terms& terms, std::string_view guard);
/// The databases' integers have a sign.
[[nodiscard]] HOLDFAST_EXPORT std::int64_t checked(fencing_token token);
/// For a check that is worth nothing unless the write is committed with it.
HOLDFAST_EXPORT void require_transaction(const database& connection, std::string_view operation);
HOLDFAST_EXPORT void refuse_transaction(const database& connection, std::string_view operation);
/// The same once more after `operation` has changed something. MySQL's client library may have shown
/// the status of a transaction that had ended unnoticed; the answer to the change has brought the true
/// one.
HOLDFAST_EXPORT void confirm_transaction(const database& connection, std::string_view operation);
HOLDFAST_EXPORT void confirm_no_transaction(const database& connection, std::string_view operation);
/// Refuses, in a transaction, what would end it.
HOLDFAST_EXPORT void before_creating_table(const database& connection);
/// A table or an index, by a statement that says IF NOT EXISTS. PostgreSQL would send a notice of one
/// that is there, which its library prints, so it is looked for first.
HOLDFAST_EXPORT void create(database& connection, std::string_view name, std::string_view statement);

inline constexpr std::string_view table_advice =
    "; create_table() makes a guard's own table, once, at start";
/// `create_table` leaves a table as it is that is there.
inline constexpr std::string_view column_advice =
    "; if this is to be a guard's own table, another one is in its place: drop it or give the guard "
    "another name";
/// Throws what the database says; `bad_configuration` with what to do about the table or the column.
[[noreturn]] HOLDFAST_EXPORT void raise_refusal(errc code, std::string message,
                                                const std::string& guard,
                                                std::string_view advice = table_advice);
/// Throws `invalid_argument` in the name of `guard`.
[[noreturn]] HOLDFAST_EXPORT void refuse_null_connection(std::string_view guard);
template <class Connection>
[[nodiscard]] Connection* not_null(Connection* connection, std::string_view guard) {
    if (connection == nullptr) {
        refuse_null_connection(guard);
    }
    return connection;
}

/// Rethrows. `store_unavailable` says that nothing was changed, and becomes `outcome_unknown`.
[[noreturn]] HOLDFAST_EXPORT void rethrow_after_a_change(const std::system_error& error);
/// For the second and later statements of one call: those before may have taken effect, even if this
/// one was not sent.
template <class Statement>
auto after_a_change(const Statement& run) {
    try {
        return run();
    } catch (const std::system_error& error) {
        rethrow_after_a_change(error);
    }
}

/// Milliseconds since 1970, by the database's clock. MySQL has the time at which the statement began,
/// also in what it writes after it has waited for a row.
[[nodiscard]] HOLDFAST_EXPORT std::string_view now_of(dialect which) noexcept;
/// The same at the moment at which a row is written.
[[nodiscard]] HOLDFAST_EXPORT std::string_view now_at_the_row(dialect which) noexcept;

}  // namespace holdfast::guard::detail
