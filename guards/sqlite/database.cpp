#include <algorithm>
#include <common/check.hpp>
#include <memory>

#include <holdfast/error.hpp>
#include <holdfast/guard/sqlite.hpp>

#include <sqlite3.h>

namespace holdfast::guard {

namespace {

bool lacks_column(std::string_view message) {
    return message.starts_with("no such column") ||
           message.find(" has no column named ") != std::string_view::npos;
}

errc code_of(int result, std::string_view message) {
    switch (result & 0xFF) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
        case SQLITE_INTERRUPT:
            return errc::busy;
        case SQLITE_RANGE:
        case SQLITE_TOOBIG:
            return errc::invalid_argument;
        case SQLITE_PERM:
        case SQLITE_READONLY:
        case SQLITE_AUTH:
            return errc::unauthorised;
        case SQLITE_FULL:
        case SQLITE_CANTOPEN:
            return errc::store_unavailable;
        case SQLITE_ERROR:
            if (message.starts_with("no such table") || lacks_column(message)) {
                return errc::bad_configuration;
            }
            return message.ends_with("syntax error") ? errc::invalid_argument : errc::store_error;
        default:
            return errc::store_error;
    }
}

struct reset {
    void operator()(sqlite3_stmt* statement) const noexcept {
        ::sqlite3_reset(statement);
        ::sqlite3_clear_bindings(statement);
    }
};
using use = std::unique_ptr<sqlite3_stmt, reset>;

/// Whether something else than blanks and comments is there: a statement, or what is none.
bool has_statement(sqlite3* connection, std::string_view text) {
    while (!text.empty()) {
        sqlite3_stmt* made = nullptr;
        const char* rest = nullptr;
        const int result = ::sqlite3_prepare_v3(connection, text.data(), static_cast<int>(text.size()),
                                                0, &made, &rest);
        ::sqlite3_finalize(made);
        if (result != SQLITE_OK || made != nullptr) {
            return true;
        }
        text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    }
    return false;
}

[[noreturn]] void refuse(std::string reason) {
    failure{errc::invalid_argument, std::move(reason)}.raise("guard on sqlite");
}

int bind(sqlite3_stmt* statement, const std::string& name, const parameter& value) {
    const int place = ::sqlite3_bind_parameter_index(statement, name.c_str());
    const auto size = static_cast<sqlite3_uint64>(value.content.size());
    // A null pointer would be NULL, and an empty content may have one.
    const char* const data = value.content.empty() ? "" : value.content.data();
    switch (value.type) {
        case parameter::kind::number:
            return ::sqlite3_bind_int64(statement, place, value.number);
        case parameter::kind::text:
            return ::sqlite3_bind_text64(statement, place, data, size, SQLITE_STATIC, SQLITE_UTF8);
        case parameter::kind::bytes:
            break;
    }
    return ::sqlite3_bind_blob64(statement, place, data, size, SQLITE_STATIC);
}

std::vector<std::optional<std::string>> row_of(sqlite3_stmt* statement) {
    std::vector<std::optional<std::string>> row;
    for (int column = 0; column < ::sqlite3_column_count(statement); ++column) {
        const int type = ::sqlite3_column_type(statement, column);
        if (type == SQLITE_NULL) {
            row.emplace_back();
            continue;
        }
        // Of a text in a database of UTF-16 the bytes would be UTF-16.
        const void* const bytes = type == SQLITE_BLOB ? ::sqlite3_column_blob(statement, column)
                                                      : ::sqlite3_column_text(statement, column);
        const auto* const data = static_cast<const char*>(bytes);
        const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(statement, column));
        row.emplace_back(size == 0 ? std::string{} : std::string{data, size});
    }
    return row;
}

}  // namespace

sqlite_database::sqlite_database(sqlite3* connection)
    : connection_{detail::not_null(connection, "sqlite_database")} {
    // A handle that `sqlite3_open` gave together with an error can do nothing but tell the error.
    if (::sqlite3_exec(connection, "", nullptr, nullptr, nullptr) == SQLITE_MISUSE) {
        failure{errc::store_unavailable, ::sqlite3_errmsg(connection)}.raise("guard on sqlite");
    }
}

sqlite_database::~sqlite_database() {
    for (const auto& [text, statement] : prepared_) {
        ::sqlite3_finalize(statement);
    }
}

bool sqlite_database::in_transaction() const {
    return ::sqlite3_get_autocommit(connection_) == 0;
}

answer sqlite_database::run(std::string_view statement, std::span<const parameter> parameters) {
    detail::check_statement(statement);
    const use used{prepared(statement)};
    if (static_cast<std::size_t>(::sqlite3_bind_parameter_count(used.get())) != parameters.size()) {
        // SQLite would take NULL for one that is missing.
        refuse("not as many parameters as the statement has: " + std::string{statement});
    }
    for (std::size_t index = 0; index < parameters.size(); ++index) {
        const auto result = bind(used.get(), "$" + std::to_string(index + 1), parameters[index]);
        if (result != SQLITE_OK) {
            fail(result);
        }
    }
    answer said;
    const auto changed_before = ::sqlite3_total_changes64(connection_);
    int result = ::sqlite3_step(used.get());
    if (result == SQLITE_ROW) {
        said.row = row_of(used.get());
        // A statement that writes is not left before its end; of others, no more rows are wanted.
        result = ::sqlite3_stmt_readonly(used.get()) != 0 ? SQLITE_DONE : ::sqlite3_step(used.get());
    }
    if (result != SQLITE_DONE) {
        fail(result);
    }
    // A statement that changes nothing leaves the number of an earlier one.
    if (::sqlite3_total_changes64(connection_) != changed_before) {
        said.changed = static_cast<std::uint64_t>(::sqlite3_changes64(connection_));
    }
    return said;
}

/// The guards' own statements stay the same; a user's may be another one each time.
sqlite3_stmt* sqlite_database::prepared(std::string_view statement) {
    constexpr std::size_t most = 16;
    const auto found = std::find_if(prepared_.begin(), prepared_.end(),
                                    [&](const auto& one) { return one.first == statement; });
    if (found != prepared_.end()) {
        std::rotate(found, found + 1, prepared_.end());
        return prepared_.back().second;
    }
    sqlite3_stmt* made = nullptr;
    const char* rest = nullptr;
    const int result =
        ::sqlite3_prepare_v3(connection_, statement.data(), static_cast<int>(statement.size()),
                             SQLITE_PREPARE_PERSISTENT, &made, &rest);
    if (result != SQLITE_OK) {
        fail(result);
    }
    if (made == nullptr) {
        refuse("the statement is empty");
    }
    std::unique_ptr<sqlite3_stmt, decltype(&::sqlite3_finalize)> owned{made, &::sqlite3_finalize};
    if (has_statement(connection_,
                      statement.substr(static_cast<std::size_t>(rest - statement.data())))) {
        refuse("more than one statement in one text; run them one by one: " + std::string{statement});
    }
    if (prepared_.size() == most) {
        ::sqlite3_finalize(prepared_.front().second);
        prepared_.erase(prepared_.begin());
    }
    prepared_.emplace_back(statement, made);
    return owned.release();
}

void sqlite_database::fail(int result) const {
    const std::string message{::sqlite3_errmsg(connection_)};
    const auto code = code_of(result, message);
    detail::raise_refusal(code, message, "guard on sqlite",
                          lacks_column(message) ? detail::column_advice : detail::table_advice);
}

}  // namespace holdfast::guard
