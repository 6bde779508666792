#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/export.hpp>

/// Guards put the check where the write is: into the user's own database, on the user's own connection,
/// inside the user's own transaction. See docs/guards.md for which one to use when.
namespace holdfast::guard {
inline namespace v0 {

enum class dialect : std::uint8_t { sqlite, postgres, mysql };

/// What is put in the place of `$1`, `$2`, … of a statement.
struct parameter {
    enum class kind : std::uint8_t { number, text, bytes } type{kind::number};
    std::int64_t number{};
    /// text and bytes: must live until the statement has run. A text is in the connection's encoding;
    /// PostgreSQL has none with a zero byte, and `run` refuses it.
    std::string_view content{};

    [[nodiscard]] static parameter of(std::int64_t value) { return {.number = value}; }
    [[nodiscard]] static parameter of(std::string_view text) {
        return {.type = kind::text, .content = text};
    }
    [[nodiscard]] static parameter of_bytes(std::string_view bytes) {
        return {.type = kind::bytes, .content = bytes};
    }
};

/// What became of a statement.
struct HOLDFAST_EXPORT answer {
    /// Rows changed, as the database counts them; zero for a statement that only reads.
    std::uint64_t changed{};
    /// The columns of the first row; none when there was no row. NULL is `nullopt`.
    std::vector<std::optional<std::string>> row;

    /// A column, counted from 0, as a number; zero for NULL. Throws `std::system_error`:
    /// `invalid_argument` when there is no row or no such column, `store_error` for what is no number.
    [[nodiscard]] std::int64_t number(std::size_t column) const;
};

/// A connection of the user's, as the guards see it. `sqlite_database`, `postgres_database` and
/// `mysql_database` are made from a handle that stays the user's: nothing here opens, closes, begins,
/// commits or rolls back.
///
/// Errors of the database are `std::system_error`:
/// - `busy`: another transaction was in the way (lock timeout, deadlock, serialisation failure), or
///   somebody ended the statement (cancelled, killed, interrupted, a timeout of statements). Roll back
///   and start the transaction again.
/// - `outcome_unknown`: the connection broke after a statement was sent.
/// - `store_unavailable`: there is no connection, or it is known to be broken; nothing was sent.
/// - `bad_configuration`: the guard's table is not there; see `create_table`.
/// - `invalid_argument`: misuse; see `run` and the guards.
/// - `unauthorised`, `store_error`: as they say; the text has the database's own words.
///
/// Thread safety: that of the connection, one thread at a time as a rule.
class HOLDFAST_EXPORT database {
public:
    virtual ~database() = default;

    [[nodiscard]] virtual dialect speaks() const noexcept = 0;
    /// Whether what is done now takes effect only with the user's commit.
    [[nodiscard]] virtual bool in_transaction() const = 0;
    /// One statement, with as many parameters as it has. `invalid_argument` for anything else: what
    /// is not SQL, more than one statement (none is executed), too many or too few parameters, a zero
    /// byte.
    virtual answer run(std::string_view statement, std::span<const parameter> parameters) = 0;

protected:
    database() = default;
    database(const database&) = default;
    database& operator=(const database&) = default;
};

}  // namespace v0
}  // namespace holdfast::guard
