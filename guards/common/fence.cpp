#include <array>
#include <common/check.hpp>

#include <holdfast/guard/fence.hpp>

namespace holdfast::guard {
inline namespace v0 {

namespace {

/// One statement: it takes the row's lock, compares with what is committed (not with what a snapshot
/// shows) and writes. A row that is not changed is a token that was refused.
std::string raising(dialect which, const std::string& table) {
    if (which == dialect::mysql) {
        // MySQL counts a row that is set to what it was as unchanged, so an equal token would look like
        // a refused one: something else is changed as well. Assignments are made from left to right.
        return "INSERT INTO " + table +
               " (resource, token, admissions) VALUES ($1, $2, 1) ON DUPLICATE KEY UPDATE admissions = "
               "admissions + (token <= VALUES(token)), token = GREATEST(token, VALUES(token))";
    }
    return "INSERT INTO " + table +
           " AS seen (resource, token) VALUES ($1, $2) ON CONFLICT (resource) DO UPDATE SET token = "
           "excluded.token WHERE seen.token <= excluded.token";
}

std::string fence_table(dialect which, const std::string& table) {
    const auto create = "CREATE TABLE IF NOT EXISTS " + table;
    switch (which) {
        case dialect::sqlite:
            return create + " (resource TEXT PRIMARY KEY, token INTEGER NOT NULL) WITHOUT ROWID";
        case dialect::postgres:
            return create + " (resource bytea PRIMARY KEY, token bigint NOT NULL)";
        case dialect::mysql:
            break;
    }
    // Bytes, because text would be compared without regard to case and trailing spaces.
    return create +
           " (resource VARBINARY(255) PRIMARY KEY, token BIGINT NOT NULL, admissions BIGINT NOT NULL)"
           " ENGINE=InnoDB";
}

std::string checked_table(std::string_view table) {
    detail::check_identifier(table);
    return std::string{table};
}

}  // namespace

std::string_view to_string(admission verdict) noexcept {
    return verdict == admission::admitted ? "admitted" : "stale";
}

fence::fence(database& connection, std::string_view table)
    : database_{connection},
      table_{checked_table(table)},
      raise_{raising(connection.speaks(), table_)},
      read_{"SELECT token FROM " + table_ + " WHERE resource = $1"} {}

void fence::create_table() {
    detail::before_creating_table(database_);
    detail::create(database_, table_, fence_table(database_.speaks(), table_));
}

admission fence::admit(std::string_view resource, fencing_token token) {
    detail::require_transaction(database_, "fence::admit");
    const auto verdict = raise(resource, token);
    detail::confirm_transaction(database_, "fence::admit");
    return verdict;
}

admission fence::announce(std::string_view resource, fencing_token token) {
    detail::refuse_transaction(database_, "fence::announce");
    const auto verdict = raise(resource, token);
    detail::confirm_no_transaction(database_, "fence::announce");
    return verdict;
}

admission fence::raise(std::string_view resource, fencing_token token) {
    detail::check_key(resource);
    const std::array parameters{detail::key_of(database_.speaks(), resource),
                                parameter::of(detail::checked(token))};
    const auto changed = database_.run(raise_, parameters).changed;
    if (database_.speaks() != dialect::mysql || changed != 1) {
        return changed == 0 ? admission::stale : admission::admitted;
    }
    // MySQL says 1 for a new row, and, to clients that asked for found rows, for an unchanged one.
    const auto seen = detail::after_a_change(
        [&] { return database_.run(read_ + " FOR UPDATE", std::span{parameters}.first(1)); });
    return !seen.row.empty() && seen.number(0) <= parameters[1].number ? admission::admitted
                                                                       : admission::stale;
}

fencing_token fence::newest(std::string_view resource) {
    detail::check_key(resource);
    const std::array parameters{detail::key_of(database_.speaks(), resource)};
    const auto seen = database_.run(read_, parameters);
    return {seen.row.empty() ? 0 : static_cast<std::uint64_t>(seen.number(0))};
}

}  // namespace v0
}  // namespace holdfast::guard
