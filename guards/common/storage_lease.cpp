#include <algorithm>
#include <array>
#include <cctype>
#include <common/check.hpp>
#include <limits>

#include <holdfast/error.hpp>
#include <holdfast/guard/storage_lease.hpp>

namespace holdfast::guard {
inline namespace v0 {

namespace {

constexpr lease_columns own_columns{.table = "holdfast_lease", .key = "resource"};

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

bool is_part_of_a_name(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

bool has_word(std::string_view text, std::string_view word) {
    for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const auto end = at + word.size();
        if ((at == 0 || !is_part_of_a_name(text[at - 1])) &&
            (end == text.size() || !is_part_of_a_name(text[end]))) {
            return true;
        }
    }
    return false;
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
    : database_{connection},
      whose_{whose},
      table_{columns.table},
      key_{columns.key},
      sequence_{columns.sequence} {
    detail::check_identifier(columns.table);
    detail::check_identifier(columns.key);
    detail::check_identifier(columns.sequence);
    auto row = " WHERE " + key_ + " = $1";
    if (connection.speaks() == dialect::mysql && whose == ownership::users) {
        // MySQL compares a column of numbers with the number that a text begins with: "1x" would be 1,
        // and "x" 0.
        row += " AND CONCAT(" + key_ + ") = $1";
    }
    read_ = "SELECT " + sequence_ + " FROM " + table_ + row;
    advance_ = "UPDATE " + table_ + " SET " + sequence_ + " = " + sequence_ + " + 1" + row + " AND " +
               sequence_ + " = $2";
    begin_ = beginning(connection.speaks());
}

void storage_lease::create_table() {
    if (whose_ == ownership::users) {
        failure{errc::invalid_argument,
                "the columns that were given are of a table of yours; create it yourself, "
                "or give none for the guard's own table"}
            .raise("storage_lease::create_table");
    }
    detail::before_creating_table(database_);
    detail::create(database_, own_columns.table, lease_table(database_.speaks()));
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
        const std::string_view said = error.what();
        const auto words =
            said.substr(0, std::min(said.find(detail::table_advice), said.find(detail::column_advice)));
        const bool has_table = said.find(detail::table_advice) == std::string_view::npos;
        failure{errc::bad_configuration, has_table ? advice_on_columns(words) : advice_on_table()}
            .raise(std::string{words});
    }
}

std::string storage_lease::advice_on_table() const {
    return "the user's table " + table_ + " is not there; create it with the columns " + key_ +
           " and " + sequence_ + ", or name another one in lease_columns::table";
}

/// `said`: the database's words, in its language, which name the column in their first line.
std::string storage_lease::advice_on_columns(std::string_view said) const {
    const auto line = said.substr(0, said.find('\n'));
    const bool names_key = has_word(line, key_);
    const bool names_sequence = has_word(line, sequence_);
    std::string advice =
        "the user's table " + table_ + " needs the columns " + key_ + " and " + sequence_;
    if (names_key || !names_sequence) {
        advice += "; another column for the keys is named in lease_columns::key";
    }
    if (names_sequence || !names_key) {
        advice += "; ALTER TABLE " + table_ + " ADD COLUMN " + sequence_ +
                  " BIGINT NOT NULL DEFAULT 0 adds the latter";
    }
    return advice;
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

}  // namespace v0
}  // namespace holdfast::guard
