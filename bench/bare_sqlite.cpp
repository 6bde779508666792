#include "bare_sqlite.hpp"

#include <sqlite3.h>

#include <stdexcept>

namespace bench {

bare_sqlite::bare_sqlite(const std::filesystem::path& file) {
    if (sqlite3_open(file.c_str(), &database_) != SQLITE_OK ||
        sqlite3_exec(
            database_,
            "PRAGMA page_size=1024; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
            "CREATE TABLE hold(name TEXT PRIMARY KEY, owner BLOB, token INTEGER) WITHOUT ROWID;"
            "INSERT INTO hold VALUES('a', x'00112233445566778899aabbccddeeff', 1);",
            nullptr, nullptr, nullptr) != SQLITE_OK) {
        throw std::runtime_error{sqlite3_errmsg(database_)};
    }
    begin_ = prepare("BEGIN IMMEDIATE");
    update_ = prepare("UPDATE hold SET token = token + 1 WHERE name = 'a'");
    commit_ = prepare("COMMIT");
}

bare_sqlite::~bare_sqlite() {
    sqlite3_finalize(begin_);
    sqlite3_finalize(update_);
    sqlite3_finalize(commit_);
    sqlite3_close(database_);
}

sqlite3_stmt* bare_sqlite::prepare(const char* text) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(database_, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) !=
        SQLITE_OK) {
        throw std::runtime_error{sqlite3_errmsg(database_)};
    }
    return statement;
}

void bare_sqlite::step(sqlite3_stmt* statement) {
    if (sqlite3_step(statement) != SQLITE_DONE || sqlite3_reset(statement) != SQLITE_OK) {
        throw std::runtime_error{sqlite3_errmsg(database_)};
    }
}

void bare_sqlite::immediate_transaction() {
    step(begin_);
    step(update_);
    step(commit_);
}

}  // namespace bench
