#include <array>
#include <memory>

#include <holdfast/error.hpp>
#include <holdfast/guard/mysql.hpp>

#include <errmsg.h>
#include <mysql.h>
#include <mysqld_error.h>

namespace holdfast::guard {

namespace {

struct free_result {
    void operator()(MYSQL_RES* result) const noexcept { ::mysql_free_result(result); }
};
using result_handle = std::unique_ptr<MYSQL_RES, free_result>;

errc code_of(unsigned number) {
    switch (number) {
        case ER_LOCK_DEADLOCK:
        case ER_LOCK_WAIT_TIMEOUT:
        // With innodb_snapshot_isolation, which MariaDB has as its default from 11.6 on.
        case ER_CHECKREAD:
            return errc::busy;
        case CR_SERVER_GONE_ERROR:
        case CR_SERVER_LOST:
        case ER_CONNECTION_KILLED:
        case ER_SERVER_SHUTDOWN:
            return errc::outcome_unknown;
        case ER_NO_SUCH_TABLE:
        case ER_BAD_FIELD_ERROR:
        case ER_NO_DB_ERROR:
            return errc::bad_configuration;
        case ER_TABLEACCESS_DENIED_ERROR:
        case ER_COLUMNACCESS_DENIED_ERROR:
        case ER_DBACCESS_DENIED_ERROR:
        case ER_ACCESS_DENIED_ERROR:
        case ER_OPTION_PREVENTS_STATEMENT:
        case ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION:
            return errc::unauthorised;
        default:
            return errc::store_error;
    }
}

/// Says the same in every character set and in every mode of the server.
std::string hexadecimal(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text = "x'";
    text.reserve(bytes.size() * 2 + 3);
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        text += digits[value >> 4U];
        text += digits[value & 0xFU];
    }
    return text += '\'';
}

answer first_row_of(MYSQL_RES* result) {
    answer said;
    const MYSQL_ROW row = ::mysql_fetch_row(result);
    if (row == nullptr) {
        return said;
    }
    const unsigned long* const lengths = ::mysql_fetch_lengths(result);
    for (unsigned column = 0; column < ::mysql_num_fields(result); ++column) {
        if (row[column] == nullptr) {
            said.row.emplace_back();
        } else {
            said.row.emplace_back(std::string{row[column], lengths[column]});
        }
    }
    return said;
}

}  // namespace

bool mysql_database::in_transaction() const {
    // Without autocommit every statement is in one, also the first.
    return (connection_->server_status & SERVER_STATUS_IN_TRANS) != 0 ||
           (connection_->server_status & SERVER_STATUS_AUTOCOMMIT) == 0;
}

/// As one text: a prepared statement would be one more round trip for its preparation, and one for its
/// end.
answer mysql_database::run(std::string_view statement, std::span<const parameter> parameters) {
    const auto text = filled_in(statement, parameters);
    if (::mysql_real_query(connection_, text.data(), static_cast<unsigned long>(text.size())) != 0) {
        fail();
    }
    if (::mysql_field_count(connection_) == 0) {
        return {.changed = ::mysql_affected_rows(connection_), .row = {}};
    }
    const result_handle result{::mysql_store_result(connection_)};
    if (!result) {
        fail();
    }
    return first_row_of(result.get());
}

std::string mysql_database::filled_in(std::string_view statement,
                                      std::span<const parameter> parameters) const {
    std::string text;
    for (std::size_t at = 0; at < statement.size(); ++at) {
        if (statement[at] != '$') {
            text += statement[at];
            continue;
        }
        ++at;
        text += literal(parameters[static_cast<std::size_t>(statement[at] - '1')]);
    }
    return text;
}

std::string mysql_database::literal(const parameter& value) const {
    switch (value.type) {
        case parameter::kind::number:
            return std::to_string(value.number);
        case parameter::kind::bytes:
            return hexadecimal(value.content);
        case parameter::kind::text:
            break;
    }
    // Not hexadecimal: compared with a number, that would be a number of another value.
    std::string text(value.content.size() * 2 + 2, '\'');
    const auto size = ::mysql_real_escape_string(connection_, text.data() + 1, value.content.data(),
                                                 static_cast<unsigned long>(value.content.size()));
    text.resize(size + 1);
    return text += '\'';
}

void mysql_database::fail() const {
    failure{code_of(::mysql_errno(connection_)), ::mysql_error(connection_)}.raise("guard on mysql");
}

}  // namespace holdfast::guard
