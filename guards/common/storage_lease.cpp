#include <algorithm>
#include <array>
#include <common/check.hpp>
#include <limits>

#include <holdfast/error.hpp>
#include <holdfast/guard/storage_lease.hpp>

namespace holdfast::guard {

namespace {

constexpr lease_columns own_columns{.table = "holdfast_lease", .key = "resource"};

std::string text(std::string_view part) {
    return std::string{part};
}

std::string beginning(dialect which) {
    if (which == dialect::mysql) {
        return "INSERT IGNORE INTO holdfast_lease (resource, lease_seq) VALUES ($1, 0)";
    }
    return "INSERT INTO holdfast_lease (resource, lease_seq) VALUES ($1, 0) ON CONFLICT DO NOTHING";
}

std::string_view lease_table(dialect which) {
    switch (which) {
        case dialect::sqlite:
            return "CREATE TABLE IF NOT EXISTS holdfast_lease"
                   " (resource TEXT PRIMARY KEY, lease_seq INTEGER NOT NULL) WITHOUT ROWID";
        case dialect::postgres:
            return "CREATE TABLE IF NOT EXISTS holdfast_lease"
                   " (resource bytea PRIMARY KEY, lease_seq bigint NOT NULL)";
        case dialect::mysql:
            break;
    }
    return "CREATE TABLE IF NOT EXISTS holdfast_lease"
           " (resource VARBINARY(255) PRIMARY KEY, lease_seq BIGINT NOT NULL) ENGINE=InnoDB";
}

}  // namespace

std::string_view to_string(contest result) noexcept {
    return result == contest::won ? "won" : "lost";
}

storage_lease::storage_lease(database& connection)
    : storage_lease{connection, own_columns, ownership::ours} {}

storage_lease::storage_lease(database& connection, const lease_columns& columns)
    : storage_lease{connection, columns, ownership::users} {}

storage_lease::storage_lease(database& connection, const lease_columns& columns, ownership whose)
    : database_{connection}, whose_{whose} {
    detail::check_identifier(columns.table);
    detail::check_identifier(columns.key);
    detail::check_identifier(columns.sequence);
    const auto sequence = text(columns.sequence);
    auto row = " WHERE " + text(columns.key) + " = $1";
    if (connection.speaks() == dialect::mysql && whose == ownership::users) {
        // MySQL compares a column of numbers with the number that a text begins with: "1x" would be 1,
        // and "x" 0.
        row += " AND CONCAT(" + text(columns.key) + ") = $1";
    }
    read_ = "SELECT " + sequence + " FROM " + text(columns.table) + row;
    advance_ = "UPDATE " + text(columns.table) + " SET " + sequence + " = " + sequence + " + 1" + row +
               " AND " + sequence + " = $2";
    begin_ = beginning(connection.speaks());
    advice_ = "the user's table " + text(columns.table) + " needs the columns " + text(columns.key) +
              " and " + sequence + "; ALTER TABLE " + text(columns.table) + " ADD COLUMN " + sequence +
              " BIGINT NOT NULL DEFAULT 0 adds the latter";
}

void storage_lease::create_table() {
    if (whose_ == ownership::users) {
        failure{errc::invalid_argument, "the table is the user's"}.raise("storage_lease::create_table");
    }
    detail::before_creating_table(database_);
    database_.run(lease_table(database_.speaks()), {});
}

std::optional<lease_sequence> storage_lease::read(std::string_view key) {
    detail::check_key(key);
    const std::array parameters{named(key)};
    const auto found = run(read_, parameters);
    if (found.row.empty()) {
        return whose_ == ownership::ours ? std::optional{lease_sequence{}} : std::nullopt;
    }
    if (!found.row.front()) {
        // Nobody could ever win it.
        failure{errc::bad_configuration, "the sequence is NULL; set it to 0, and its column NOT NULL"}
            .raise("storage_lease::read");
    }
    return lease_sequence{found.number(0)};
}

/// A column of the user's may be of any type, and reads the key's text in its own way.
parameter storage_lease::named(std::string_view key) const {
    return whose_ == ownership::ours ? detail::key_of(database_.speaks(), key) : parameter::of(key);
}

/// `create_table` does not help with a table of the user's: says what the table needs instead.
answer storage_lease::run(std::string_view statement, std::span<const parameter> parameters) {
    try {
        return database_.run(statement, parameters);
    } catch (const std::system_error& error) {
        if (whose_ == ownership::ours || error.code() != errc::bad_configuration) {
            throw;
        }
        std::string message = error.what();
        message.resize(std::min(message.size(), message.find(detail::table_advice)));
        failure{errc::bad_configuration, advice_}.raise(message);
    }
}

contest storage_lease::advance(std::string_view key, lease_sequence seen) {
    detail::check_key(key);
    detail::require_transaction(database_, "storage_lease::advance");
    if (seen.value == std::numeric_limits<std::int64_t>::max()) {
        // SQLite would go on with a floating-point number; the others refuse it like this.
        failure{errc::store_error, "the sequence is at its end, 2^63 - 1"}.raise(
            "storage_lease::advance");
    }
    const std::array parameters{named(key), parameter::of(seen.value)};
    if (whose_ == ownership::ours && seen == lease_sequence{}) {
        database_.run(begin_, std::span{parameters}.first(1));
    }
    const auto changed = run(advance_, parameters).changed;
    detail::confirm_transaction(database_, "storage_lease::advance");
    return changed == 1 ? contest::won : contest::lost;
}

}  // namespace holdfast::guard
