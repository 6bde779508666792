#include <algorithm>
#include <charconv>
#include <common/check.hpp>
#include <limits>
#include <string>

#include <holdfast/error.hpp>

namespace holdfast::guard {

std::int64_t answer::number(std::size_t column) const {
    const auto& text = row.at(column);
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
    char before = '.';
    for (const char c : name) {
        if (!is_word_character(c) && (c != '.' || before == '.')) {
            refuse(errc::invalid_argument, "\"" + std::string{name} + "\" is not an SQL identifier");
        }
        before = c;
    }
    if (before == '.') {
        refuse(errc::invalid_argument, "\"" + std::string{name} + "\" is not an SQL identifier");
    }
}

void check_key(std::string_view key) {
    constexpr std::size_t longest = 255;
    if (key.empty() || key.size() > longest) {
        refuse(errc::invalid_name, "a key has 1 to 255 bytes, not " + std::to_string(key.size()));
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

void require_transaction(const database& connection, std::string_view what) {
    if (!connection.in_transaction()) {
        refuse(errc::invalid_argument, std::string{what} +
                                           " outside of a transaction: the check and the write would "
                                           "not be one step; begin one first");
    }
}

void refuse_transaction(const database& connection, std::string_view what) {
    if (connection.in_transaction()) {
        refuse(errc::invalid_argument,
               std::string{what} +
                   " inside a transaction: others would not see it before the commit, and what was "
                   "read before it may be old; call it before the transaction begins");
    }
}

void before_creating_table(const database& connection) {
    if (connection.speaks() == dialect::mysql) {
        refuse_transaction(connection, "create_table");
    }
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

}  // namespace detail

}  // namespace holdfast::guard
