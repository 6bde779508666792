#include <algorithm>
#include <memory>

#include <holdfast/error.hpp>
#include <holdfast/guard/sqlite.hpp>

#include <sqlite3.h>

namespace holdfast::guard {

namespace {

errc code_of(int result, std::string_view message) {
    switch (result & 0xFF) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return errc::busy;
        case SQLITE_PERM:
        case SQLITE_READONLY:
        case SQLITE_AUTH:
            return errc::unauthorised;
        case SQLITE_FULL:
        case SQLITE_CANTOPEN:
            return errc::store_unavailable;
        case SQLITE_ERROR:
            return message.starts_with("no such table") || message.starts_with("no such column")
                       ? errc::bad_configuration
                       : errc::store_error;
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
        if (::sqlite3_column_type(statement, column) == SQLITE_NULL) {
            row.emplace_back();
            continue;
        }
        const auto* const data = static_cast<const char*>(::sqlite3_column_blob(statement, column));
        const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(statement, column));
        row.emplace_back(size == 0 ? std::string{} : std::string{data, size});
    }
    return row;
}

}  // namespace

sqlite_database::~sqlite_database() {
    for (const auto& [text, statement] : prepared_) {
        ::sqlite3_finalize(statement);
    }
}

bool sqlite_database::in_transaction() const {
    return ::sqlite3_get_autocommit(connection_) == 0;
}

answer sqlite_database::run(std::string_view statement, std::span<const parameter> parameters) {
    const use used{prepared(statement)};
    for (std::size_t index = 0; index < parameters.size(); ++index) {
        const auto result = bind(used.get(), "$" + std::to_string(index + 1), parameters[index]);
        if (result != SQLITE_OK) {
            fail(result);
        }
    }
    answer said;
    int result = ::sqlite3_step(used.get());
    if (result == SQLITE_ROW) {
        said.row = row_of(used.get());
        // A statement that writes is not left before its end; of others, no more rows are wanted.
        result = ::sqlite3_stmt_readonly(used.get()) != 0 ? SQLITE_DONE : ::sqlite3_step(used.get());
    }
    if (result != SQLITE_DONE) {
        fail(result);
    }
    said.changed = static_cast<std::uint64_t>(::sqlite3_changes64(connection_));
    return said;
}

sqlite3_stmt* sqlite_database::prepared(std::string_view statement) {
    const auto found = std::find_if(prepared_.begin(), prepared_.end(),
                                    [&](const auto& one) { return one.first == statement; });
    if (found != prepared_.end()) {
        return found->second;
    }
    sqlite3_stmt* made = nullptr;
    const int result =
        ::sqlite3_prepare_v3(connection_, statement.data(), static_cast<int>(statement.size()),
                             SQLITE_PREPARE_PERSISTENT, &made, nullptr);
    if (result != SQLITE_OK) {
        fail(result);
    }
    return prepared_.emplace_back(statement, made).second;
}

void sqlite_database::fail(int result) const {
    const std::string message{::sqlite3_errmsg(connection_)};
    const auto code = code_of(result, message);
    failure{code, message}.raise("guard on sqlite");
}

}  // namespace holdfast::guard
