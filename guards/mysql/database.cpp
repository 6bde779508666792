#include <algorithm>
#include <charconv>
#include <common/check.hpp>
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

/// MySQL's own errors, which MariaDB's header does not name.
constexpr unsigned mysql_query_timeout = 3024;
constexpr unsigned mysql_disconnected_idle_client = 4031;

errc code_of(unsigned number) {
    switch (number) {
        case ER_LOCK_DEADLOCK:
        case ER_LOCK_WAIT_TIMEOUT:
        // With innodb_snapshot_isolation, which MariaDB has as its default from 11.6 on.
        case ER_CHECKREAD:
        // KILL QUERY, max_statement_time, and MySQL's max_execution_time.
        case ER_QUERY_INTERRUPTED:
        case ER_STATEMENT_TIMEOUT:
        case mysql_query_timeout:
            return errc::busy;
        // The client could not send the statement, or not connect again to send it.
        case CR_SERVER_GONE_ERROR:
        case CR_CONNECTION_ERROR:
        case CR_CONN_HOST_ERROR:
        case CR_UNKNOWN_HOST:
        case ER_CON_COUNT_ERROR:
        case ER_TOO_MANY_USER_CONNECTIONS:
            return errc::store_unavailable;
        case CR_SERVER_LOST:
        case ER_CONNECTION_KILLED:
        case ER_SERVER_SHUTDOWN:
        case mysql_disconnected_idle_client:
            return errc::outcome_unknown;
        // The user has not read all of an earlier result; nothing was sent.
        case CR_COMMANDS_OUT_OF_SYNC:
        // Not SQL, or several statements at once.
        case ER_PARSE_ERROR:
        // A text that the connection's character set does not know.
        case ER_INVALID_CHARACTER_STRING:
            return errc::invalid_argument;
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

std::string_view advice_of(unsigned number) {
    return number == ER_BAD_FIELD_ERROR ? detail::column_advice : detail::table_advice;
}

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

[[noreturn]] void refuse(std::string reason) {
    failure{errc::invalid_argument, std::move(reason)}.raise("guard on mysql");
}

bool has_transaction(const MYSQL& connection) {
    // Without autocommit every statement is in one, also the first.
    return (connection.server_status & SERVER_STATUS_IN_TRANS) != 0 ||
           (connection.server_status & SERVER_STATUS_AUTOCOMMIT) == 0;
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

mysql_database::mysql_database(st_mysql* connection)
    : connection_{detail::not_null(connection, "mysql_database")} {}

bool mysql_database::in_transaction() const {
    // Without a connection its status says nothing. A ping connects again where the user wants that.
    if (::mysql_get_socket(connection_) == MARIADB_INVALID_SOCKET && ::mysql_ping(connection_) != 0) {
        fail();
    }
    if (!status_is_current_ || ::mysql_errno(connection_) != 0) {
        ask_for_status();
    }
    return has_transaction(*connection_);
}

/// An error does not carry the server's status, and may have ended the transaction (a deadlock, a
/// CREATE TABLE that commits and then fails). An OK does. Not a ping: of its answer the client library
/// does not read the status.
void mysql_database::ask_for_status() const {
    constexpr std::string_view nothing = "DO 0";
    if (::mysql_real_query(connection_, nothing.data(), nothing.size()) == 0) {
        return;
    }
    const auto code = code_of(::mysql_errno(connection_));
    // Whatever the caller wants to send has not been sent.
    detail::raise_refusal(code == errc::outcome_unknown ? errc::store_unavailable : code,
                          ::mysql_error(connection_), "guard on mysql");
}

/// As one text: a prepared statement would be one more round trip for its preparation, and one for its
/// end.
answer mysql_database::run(std::string_view statement, std::span<const parameter> parameters) {
    detail::check_statement(statement);
    const auto text = filled_in(statement, parameters);
    const bool had_transaction = has_transaction(*connection_);
    const auto session = ::mysql_thread_id(connection_);
    status_is_current_ = false;
    refuse_too_long(text);
    refuse_several(text);
    auto said = execute(text);
    status_is_current_ = true;
    // Where the user wants that the client library connects again by itself, it may have done so.
    if (had_transaction && ::mysql_thread_id(connection_) != session) {
        failure{errc::outcome_unknown, "the connection was made anew, and the transaction is gone"}
            .raise("guard on mysql");
    }
    return said;
}

answer mysql_database::execute(const std::string& text) const {
    if (::mysql_real_query(connection_, text.data(), static_cast<unsigned long>(text.size())) != 0) {
        fail();
    }
    answer said;
    if (::mysql_field_count(connection_) == 0) {
        said.changed = ::mysql_affected_rows(connection_);
    } else {
        const result_handle result{::mysql_store_result(connection_)};
        if (!result) {
            fail();
        }
        said = first_row_of(result.get());
    }
    skip_further_results();
    return said;
}

/// A procedure has several. What is not read would be in the way of the next statement.
void mysql_database::skip_further_results() const {
    int status = 0;
    while ((status = ::mysql_next_result(connection_)) == 0) {
        const result_handle skipped{::mysql_store_result(connection_)};
    }
    if (status > 0) {
        fail();
    }
}

/// The server would end the connection, and with it the transaction, and say no more than that.
void mysql_database::refuse_too_long(const std::string& text) const {
    constexpr std::size_t always_taken = 1U << 20U;
    if (text.size() <= always_taken) {
        return;
    }
    const auto most = execute("SELECT @@max_allowed_packet").number(0);
    if (text.size() >= static_cast<std::size_t>(most)) {
        refuse("a statement of " + std::to_string(text.size()) +
               " bytes is too long for the server (max_allowed_packet is " + std::to_string(most) +
               ")");
    }
}

/// On a connection with CLIENT_MULTI_STATEMENTS the server would execute all of them. It never prepares
/// more than one.
void mysql_database::refuse_several(const std::string& text) const {
    const auto end = text.find(';');
    if (end == std::string::npos || text.find_first_not_of("; \t\r\n", end) == std::string::npos) {
        return;
    }
    const std::unique_ptr<MYSQL_STMT, decltype(&::mysql_stmt_close)> tried{
        ::mysql_stmt_init(connection_), &::mysql_stmt_close};
    if (!tried) {
        fail();
    }
    if (::mysql_stmt_prepare(tried.get(), text.data(), static_cast<unsigned long>(text.size())) == 0) {
        return;
    }
    const auto number = ::mysql_stmt_errno(tried.get());
    // What cannot be prepared (CREATE TRIGGER) is one statement.
    if (number != ER_UNSUPPORTED_PS) {
        detail::raise_refusal(code_of(number), ::mysql_stmt_error(tried.get()), "guard on mysql",
                              advice_of(number));
    }
}

std::string mysql_database::filled_in(std::string_view statement,
                                      std::span<const parameter> parameters) const {
    std::string text;
    std::size_t last_used = 0;
    while (true) {
        const auto dollar = statement.find('$');
        text += statement.substr(0, dollar);
        if (dollar == std::string_view::npos) {
            break;
        }
        statement.remove_prefix(dollar + 1);
        std::size_t number = 0;
        const auto end =
            std::from_chars(statement.data(), statement.data() + statement.size(), number).ptr;
        if (number == 0 || number > parameters.size()) {
            refuse("a $ without its parameter, before \"" + std::string{statement} + '"');
        }
        statement.remove_prefix(static_cast<std::size_t>(end - statement.data()));
        text += literal(parameters[number - 1]);
        last_used = std::max(last_used, number);
    }
    if (last_used != parameters.size()) {
        refuse("more parameters than the statement has");
    }
    return text;
}

/// In hexadecimal, which says the same in every mode of the server and in whatever character set it
/// reads statements. With its character set before it, it is a text also where it is compared with a
/// number.
std::string mysql_database::literal(const parameter& value) const {
    switch (value.type) {
        case parameter::kind::number:
            return std::to_string(value.number);
        case parameter::kind::bytes:
            return hexadecimal(value.content);
        case parameter::kind::text:
            break;
    }
    return std::string{"_"} + ::mysql_character_set_name(connection_) + " " +
           hexadecimal(value.content);
}

void mysql_database::fail() const {
    const auto number = ::mysql_errno(connection_);
    detail::raise_refusal(code_of(number), ::mysql_error(connection_), "guard on mysql",
                          advice_of(number));
}

}  // namespace holdfast::guard
