#include <array>
#include <common/check.hpp>

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

std::string_view creating(dialect which) {
    switch (which) {
        case dialect::sqlite:
            return "CREATE TABLE IF NOT EXISTS holdfast_lease"
                   " (resource TEXT PRIMARY KEY, lease_seq INTEGER NOT NULL) WITHOUT ROWID";
        case dialect::postgres:
            return "CREATE TABLE IF NOT EXISTS holdfast_lease"
                   " (resource text PRIMARY KEY, lease_seq bigint NOT NULL)";
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
    const auto row = " WHERE " + text(columns.key) + " = $1";
    read_ = "SELECT " + sequence + " FROM " + text(columns.table) + row;
    advance_ = "UPDATE " + text(columns.table) + " SET " + sequence + " = " + sequence + " + 1" + row +
               " AND " + sequence + " = $2";
    begin_ = beginning(connection.speaks());
}

void storage_lease::create_table() {
    if (whose_ == ownership::users) {
        failure{errc::invalid_argument, "the table is the user's"}.raise("storage_lease::create_table");
    }
    detail::before_creating_table(database_);
    database_.run(creating(database_.speaks()), {});
}

std::optional<lease_sequence> storage_lease::read(std::string_view key) {
    detail::check_key(key);
    const std::array parameters{parameter::of(key)};
    const auto found = database_.run(read_, parameters);
    if (found.row.empty()) {
        return whose_ == ownership::ours ? std::optional{lease_sequence{}} : std::nullopt;
    }
    return lease_sequence{found.number(0)};
}

contest storage_lease::advance(std::string_view key, lease_sequence seen) {
    detail::check_key(key);
    detail::require_transaction(database_, "storage_lease::advance");
    const std::array parameters{parameter::of(key), parameter::of(seen.value)};
    if (whose_ == ownership::ours && seen == lease_sequence{}) {
        database_.run(begin_, std::span{parameters}.first(1));
    }
    return database_.run(advance_, parameters).changed == 1 ? contest::won : contest::lost;
}

}  // namespace holdfast::guard
