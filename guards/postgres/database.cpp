#include <algorithm>
#include <array>
#include <charconv>
#include <common/check.hpp>
#include <cstddef>
#include <limits>
#include <memory>

#include <holdfast/error.hpp>
#include <holdfast/guard/postgres.hpp>

#include <libpq-fe.h>

namespace holdfast::guard {

namespace {

struct clear {
    void operator()(PGresult* result) const noexcept { ::PQclear(result); }
    void operator()(unsigned char* memory) const noexcept { ::PQfreemem(memory); }
};
using result_handle = std::unique_ptr<PGresult, clear>;

/// bytea, as the system catalogue numbers it.
constexpr Oid bytea_type = 17;

constexpr std::string_view undefined_column = "42703";

/// By class (the first two characters) or by the whole code; see the manual's appendix A.
errc code_of(std::string_view state) {
    // Not SQL, several statements at once, parameters too many or too few, and a text that the
    // database's encoding or the column's type does not know.
    constexpr std::array<std::string_view, 5> misuse{"42601", "08P01", "22021", "22P02", "22P05"};
    if (std::find(misuse.begin(), misuse.end(), state) != misuse.end()) {
        return errc::invalid_argument;
    }
    // 25P03, 25P04: the server ended the session because its transaction took too long.
    if (state.empty() || state.starts_with("08") || state.starts_with("57P") || state == "25P03" ||
        state == "25P04") {
        return errc::outcome_unknown;
    }
    // 57014: cancelled, by the user or by a timeout of the statement.
    if (state.starts_with("40") || state == "55P03" || state == "57014") {
        return errc::busy;
    }
    if (state == "42P01" || state == undefined_column || state == "3F000") {
        return errc::bad_configuration;
    }
    if (state == "42501" || state.starts_with("28") || state == "25006") {
        return errc::unauthorised;
    }
    return errc::store_error;
}

[[noreturn]] void fail(errc code, std::string message, std::string_view advice = detail::table_advice) {
    message.erase(message.find_last_not_of('\n') + 1);
    detail::raise_refusal(code, std::move(message), "guard on postgres", advice);
}

/// The types are left to the server, which knows the columns: a key may be a number there.
struct sent_parameters {
    explicit sent_parameters(std::span<const parameter> parameters) {
        texts.reserve(parameters.size());
        for (const auto& one : parameters) {
            check(one);
            const bool is_number = one.type == parameter::kind::number;
            texts.push_back(is_number ? std::to_string(one.number) : std::string{one.content});
            values.push_back(texts.back().c_str());
            lengths.push_back(static_cast<int>(texts.back().size()));
            formats.push_back(one.type == parameter::kind::bytes ? 1 : 0);
        }
    }

    static void check(const parameter& one) {
        // As a text it would end there, and be another one's.
        if (one.type == parameter::kind::text && one.content.find('\0') != std::string_view::npos) {
            fail(errc::invalid_argument, "PostgreSQL has no text with a zero byte; use of_bytes");
        }
        // The protocol counts with 32 bits and a sign; the server takes half of that.
        if (one.content.size() > std::numeric_limits<int>::max() / 2) {
            fail(errc::invalid_argument, "PostgreSQL has no value of more than 1 GiB");
        }
    }

    std::vector<std::string> texts;
    std::vector<const char*> values;
    std::vector<int> lengths;
    std::vector<int> formats;
};

std::optional<std::string> column_of(const PGresult* result, int column) {
    if (::PQgetisnull(result, 0, column) != 0) {
        return std::nullopt;
    }
    const char* const text = ::PQgetvalue(result, 0, column);
    if (::PQftype(result, column) != bytea_type) {
        return std::string{text, static_cast<std::size_t>(::PQgetlength(result, 0, column))};
    }
    std::size_t size = 0;
    const std::unique_ptr<unsigned char, clear> bytes{
        ::PQunescapeBytea(reinterpret_cast<const unsigned char*>(text), &size)};
    return std::string{reinterpret_cast<const char*>(bytes.get()), size};
}

[[noreturn]] void fail(const PGresult* result, const PGconn* connection) {
    const char* const reported = ::PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const std::string_view state = reported != nullptr ? reported : "";
    fail(code_of(state),
         result != nullptr ? ::PQresultErrorMessage(result) : ::PQerrorMessage(connection),
         state == undefined_column ? detail::column_advice : detail::table_advice);
}

/// libpq sends nothing on a connection that it knows to be broken, or that was never made.
void check_connected(const PGconn* connection) {
    if (::PQstatus(connection) != CONNECTION_OK) {
        fail(errc::store_unavailable, ::PQerrorMessage(connection));
    }
    // libpq would throw away what the user has not read.
    if (::PQtransactionStatus(connection) == PQTRANS_ACTIVE) {
        fail(errc::invalid_argument,
             "a command is under way on this connection; read its results first");
    }
#ifdef LIBPQ_HAS_PIPELINING
    if (::PQpipelineStatus(connection) != PQ_PIPELINE_OFF) {
        fail(errc::invalid_argument, "the connection is in pipeline mode; end that first");
    }
#endif
}

std::uint64_t changed_by(PGresult* result) {
    // For a SELECT that would be the rows that it found.
    if (std::string_view{::PQcmdStatus(result)}.starts_with("SELECT")) {
        return 0;
    }
    const std::string_view count{::PQcmdTuples(result)};
    std::uint64_t number = 0;
    std::from_chars(count.data(), count.data() + count.size(), number);
    return number;
}

bool is_blank(char letter) {
    return std::string_view{" \t\r\n\f\v;"}.find(letter) != std::string_view::npos;
}

/// Without the blanks and comments at its beginning. Comments of PostgreSQL may have others in them.
std::string_view without_comments(std::string_view text) {
    int depth = 0;
    while (!text.empty()) {
        if (text.starts_with("/*")) {
            ++depth;
            text.remove_prefix(2);
        } else if (depth > 0 && text.starts_with("*/")) {
            --depth;
            text.remove_prefix(2);
        } else if (depth == 0 && text.starts_with("--")) {
            text.remove_prefix(std::min(text.size(), text.find('\n')));
        } else if (depth > 0 || is_blank(text.front())) {
            text.remove_prefix(1);
        } else {
            break;
        }
    }
    return text;
}

bool begins_with(std::string_view statement, std::string_view word) {
    return std::equal(
        word.begin(), word.end(), statement.begin(),
        statement.begin() + static_cast<std::ptrdiff_t>(std::min(word.size(), statement.size())),
        [](char one, char other) { return one == (other & ~0x20); });
}

/// Whether the server has rolled back what was to be committed: it does so, and reports no error, if a
/// statement of the transaction has failed.
bool rolled_back_instead(std::string_view statement, PGresult* result) {
    if (std::string_view{::PQcmdStatus(result)} != "ROLLBACK") {
        return false;
    }
    const auto words = without_comments(statement);
    return !begins_with(words, "ROLLBACK") && !begins_with(words, "ABORT");
}

bool is_about_creation(std::string_view statement) {
    return statement.starts_with("CREATE ");
}

/// Two sessions that create a table at once: the second one is told of a duplicate in one catalogue or
/// another (a key, a type, a table), although it said IF NOT EXISTS.
bool was_created_meanwhile(const PGresult* result) {
    const char* const state = ::PQresultErrorField(result, PG_DIAG_SQLSTATE);
    constexpr std::array<std::string_view, 3> duplicates{"23505", "42710", "42P07"};
    return state != nullptr &&
           std::find(duplicates.begin(), duplicates.end(), state) != duplicates.end();
}

}  // namespace

postgres_database::postgres_database(pg_conn* connection)
    : connection_{detail::not_null(connection, "postgres_database")} {}

bool postgres_database::in_transaction() const {
    check_connected(connection_);
    const auto status = ::PQtransactionStatus(connection_);
    return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

answer postgres_database::run(std::string_view statement, std::span<const parameter> parameters) {
    detail::check_statement(statement);
    check_connected(connection_);
    const sent_parameters sent{parameters};
    const result_handle result{::PQexecParams(
        connection_, std::string{statement}.c_str(), static_cast<int>(sent.values.size()), nullptr,
        sent.values.data(), sent.lengths.data(), sent.formats.data(), 0)};
    const auto status = ::PQresultStatus(result.get());
    if (status == PGRES_EMPTY_QUERY) {
        fail(errc::invalid_argument, "the statement is empty");
    }
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        if (is_about_creation(statement) && was_created_meanwhile(result.get()) && !in_transaction()) {
            return {};
        }
        fail(result.get(), connection_);
    }
    if (rolled_back_instead(statement, result.get())) {
        fail(errc::store_error,
             "nothing was committed: the server rolled the transaction back, because an earlier "
             "statement in it had failed");
    }
    answer said{.changed = changed_by(result.get()), .row = {}};
    if (::PQntuples(result.get()) > 0) {
        for (int column = 0; column < ::PQnfields(result.get()); ++column) {
            said.row.push_back(column_of(result.get(), column));
        }
    }
    return said;
}

}  // namespace holdfast::guard
