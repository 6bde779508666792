#include <algorithm>
#include <charconv>
#include <common/check.hpp>
#include <core/names.hpp>
#include <limits>
#include <string>

#include <holdfast/error.hpp>

namespace holdfast::guard {

std::int64_t answer::number(std::size_t column) const {
    if (column >= row.size()) {
        failure{errc::invalid_argument,
                row.empty() ? std::string{"the answer has no row; look at answer::row first"}
                            : "the answer's row has no column " + std::to_string(column) +
                                  "; they are counted from 0 to " + std::to_string(row.size() - 1)}
            .raise("answer::number");
    }
    const auto& text = row[column];
    if (!text) {
        return 0;
    }
    std::int64_t value{};
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc{} || end != text->data() + text->size()) {
        failure{errc::store_error, "\"" + *text + "\" is not a number"}.raise("guard");
    }
    return value;
}

namespace detail {

namespace {

bool is_word_character(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

[[noreturn]] void refuse(errc code, std::string reason) {
    failure{code, std::move(reason)}.raise("guard");
}

}  // namespace

void check_identifier(std::string_view name) {
    // PostgreSQL cuts off the rest, and two names would be one.
    constexpr std::size_t longest = 63;
    char before = '.';
    std::size_t length = 0;
    for (const char c : name) {
        if (!is_word_character(c) && (c != '.' || before == '.')) {
            refuse(errc::invalid_argument, core::quote_name(name) + " is not an SQL identifier");
        }
        length = c == '.' ? 0 : length + 1;
        if (length > longest) {
            refuse(errc::invalid_argument,
                   core::quote_name(name) + " is too long: a name in SQL has at most 63 characters");
        }
        before = c;
    }
    if (before == '.') {
        refuse(errc::invalid_argument, core::quote_name(name) + " is not an SQL identifier");
    }
}

void check_key(std::string_view key) {
    constexpr std::size_t longest = 255;
    if (key.empty() || key.size() > longest) {
        refuse(errc::invalid_name,
               "a guard's key has 1 to 255 bytes, not " + std::to_string(key.size()));
    }
}

parameter key_of(dialect which, std::string_view key) {
    const bool as_text = which == dialect::sqlite && !core::check_name(key);
    return as_text ? parameter::of(key) : parameter::of_bytes(key);
}

void check_statement(std::string_view statement) {
    if (statement.empty()) {
        refuse(errc::invalid_argument, "the statement is empty");
    }
    // The libraries count with 32 bits and a sign.
    if (statement.size() > std::numeric_limits<std::int32_t>::max() / 2) {
        refuse(errc::invalid_argument, "the statement has more than 1 GiB");
    }
    if (statement.find('\0') != std::string_view::npos) {
        refuse(errc::invalid_argument,
               "the statement " + core::quote_name(statement) + " has a zero byte in it");
    }
}

void check_terms(const once_terms& terms, std::string_view guard) {
    constexpr std::chrono::days longest_claim{366};
    // Less would be over before anybody repeats a request.
    constexpr std::chrono::seconds shortest_keep{1};
    constexpr std::chrono::days longest_keep{36525};
    if (terms.claim.count() <= 0 || terms.claim > longest_claim) {
        failure{errc::invalid_argument, "a claim of " + std::to_string(terms.claim.count()) +
                                            " ms is out of range; it lasts for 1 ms to 366 days"}
            .raise(std::string{guard});
    }
    if (terms.keep < shortest_keep || terms.keep > longest_keep) {
        failure{errc::invalid_argument, "an outcome cannot be kept for " +
                                            std::to_string(terms.keep.count()) +
                                            " ms; the range is 1 s to 36525 days"}
            .raise(std::string{guard});
    }
}

std::int64_t checked(fencing_token token) {
    constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (token.value == 0 || token.value > largest) {
        refuse(errc::invalid_argument,
               "the token " + std::to_string(token.value) + " is not one that a lock gives");
    }
    return static_cast<std::int64_t>(token.value);
}

void require_transaction(const database& connection, std::string_view operation) {
    if (!connection.in_transaction()) {
        refuse(errc::invalid_argument, std::string{operation} +
                                           " outside of a transaction: the check and the write would "
                                           "not be one step; begin one first");
    }
}

void refuse_transaction(const database& connection, std::string_view operation) {
    if (connection.in_transaction()) {
        refuse(errc::invalid_argument,
               std::string{operation} +
                   " inside a transaction: others would not see it before the commit, and what was "
                   "read before it may be old; call it before the transaction begins");
    }
}

void confirm_transaction(const database& connection, std::string_view operation) {
    if (!after_a_change([&] { return connection.in_transaction(); })) {
        refuse(errc::invalid_argument,
               std::string{operation} +
                   " outside of a transaction: the one before had ended unnoticed, by an error or a "
                   "reset of the connection, and what the guard wrote is in effect; begin a new one");
    }
}

void confirm_no_transaction(const database& connection, std::string_view operation) {
    if (after_a_change([&] { return connection.in_transaction(); })) {
        refuse(errc::invalid_argument,
               std::string{operation} +
                   " inside a transaction, which an earlier statement had begun before it failed: "
                   "others do not see it before the commit; roll back first");
    }
}

void before_creating_table(const database& connection) {
    if (connection.speaks() == dialect::mysql && connection.in_transaction()) {
        refuse(errc::invalid_argument,
               "create_table inside a transaction: MariaDB and MySQL would commit it before they make "
               "the table; call it before the transaction begins");
    }
}

void create(database& connection, std::string_view name, std::string_view statement) {
    if (connection.speaks() != dialect::postgres) {
        connection.run(statement, {});
        return;
    }
    const auto dot = name.rfind('.');
    const bool has_schema = dot != std::string_view::npos;
    // Names in statements are folded to small letters, and longer ones are cut off.
    const auto folded = [](std::string_view part) {
        return "lower(left('" + std::string{part} + "', 63))";
    };
    const auto schema = has_schema ? folded(name.substr(0, dot)) : "current_schema()";
    const auto found = connection.run(
        "SELECT 1 FROM pg_catalog.pg_class AS one JOIN pg_catalog.pg_namespace AS schema ON schema.oid "
        "= "
        "one.relnamespace WHERE schema.nspname = " +
            schema + " AND one.relname = " + folded(has_schema ? name.substr(dot + 1) : name),
        {});
    if (found.row.empty()) {
        connection.run(statement, {});
    }
}

void raise_refusal(errc code, std::string message, const std::string& guard, std::string_view advice) {
    if (code == errc::bad_configuration) {
        message += advice;
    }
    failure{code, std::move(message)}.raise(guard);
}

void refuse_null_connection(std::string_view guard) {
    failure{errc::invalid_argument, "the connection is null; connect first"}.raise(std::string{guard});
}

void rethrow_after_a_change(const std::system_error& error) {
    if (error.code() == errc::store_unavailable) {
        failure{errc::outcome_unknown, error.what()}.raise("guard");
    }
    throw;
}

std::string_view now_of(dialect which) noexcept {
    switch (which) {
        case dialect::sqlite:
            return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";
        case dialect::postgres:
            // Not now(): that stands still while the transaction lasts.
            return "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        case dialect::mysql:
            break;
    }
    return "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000)";
}

std::string_view now_at_the_row(dialect which) noexcept {
    if (which != dialect::mysql) {
        return now_of(which);
    }
    // SYSDATE() is read anew for each row. It is in the session's time zone, so only what has passed
    // since the statement began is taken from it; where summer time ends meanwhile, nothing.
    return "((TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) + "
           "GREATEST(TIMESTAMPDIFF(MICROSECOND, NOW(3), SYSDATE(3)), 0)) DIV 1000)";
}

}  // namespace detail

}  // namespace holdfast::guard
