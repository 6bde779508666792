#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <local/lock_wait.hpp>

struct sqlite3;
struct sqlite3_stmt;

/// SQLite, with its resources owned and its errors in our words.
namespace holdfast::engines::local {

/// Thrown inside the engine only; its callers answer with the failure.
class database_error : public std::exception {
public:
    explicit database_error(failure reason) : failure_{std::move(reason)} {}
    [[nodiscard]] const char* what() const noexcept override { return failure_.detail.c_str(); }
    [[nodiscard]] const failure& reason() const noexcept { return failure_; }

private:
    failure failure_;
};

/// Another process keeps the database locked.
class database_busy : public database_error {
public:
    using database_error::database_error;
};

/// There is no room on the disk. Nothing was changed.
class database_full : public database_error {
public:
    using database_error::database_error;
};

class database;

/// Prepared when first used, then kept. Parameters are bound by position, from 1; what they refer to
/// must live until the statement is reset.
class statement {
public:
    statement(database& owner, std::string_view sql) : database_{owner}, sql_{sql} {}
    statement(const statement&) = delete;
    statement& operator=(const statement&) = delete;
    ~statement();

    statement& bind(int place, std::int64_t value);
    statement& bind(int place, std::string_view bytes);
    /// True when there is a row to read.
    [[nodiscard]] bool step();
    /// Runs to its end, ignoring rows.
    void run();
    void reset() noexcept;

    [[nodiscard]] std::int64_t number(int column) const noexcept;
    /// Valid until the next step.
    [[nodiscard]] std::string_view bytes(int column) const noexcept;
    [[nodiscard]] bool is_null(int column) const noexcept;

private:
    void prepare();

    database& database_;
    std::string_view sql_;
    sqlite3_stmt* handle_{};
};

/// One connection. SQLite keeps the files beside the database when the last connection closes: whoever
/// finds them missing knows that somebody deleted them.
///
/// Thread safety: one thread at a time.
class database {
public:
    enum class opening : std::uint8_t { existing, create_if_missing };

    /// Waits for other processes until `deadline`, and no longer than until `stopping` is set. Throws
    /// `database_error`.
    database(const std::string& path, opening mode, clock::time_point deadline,
             const std::atomic<bool>& stopping);
    database(const database&) = delete;
    database& operator=(const database&) = delete;
    ~database();

    /// Until when the following statements wait for other processes.
    void wait_until(clock::time_point deadline) noexcept { wait_.set_deadline(deadline); }
    void execute(const std::string& sql);
    /// Takes the write lock at once: a transaction that reads first and writes later may be refused
    /// for ever.
    void begin() { begin_.run(); }
    void commit() { commit_.run(); }
    void rollback() noexcept;
    /// Empties the journal, which may be what fills the disk.
    void make_room() { execute("PRAGMA wal_checkpoint(TRUNCATE)"); }
    [[nodiscard]] std::int64_t read_number(const std::string& sql);
    /// How many rows the last statement changed.
    [[nodiscard]] int changes() const noexcept;
    [[nodiscard]] std::int64_t last_row_id() const noexcept;
    /// Closing writes nothing: what would be written to is not ours any more.
    void end_without_checkpoint() noexcept;
    [[nodiscard]] bool in_transaction() const noexcept;
    [[noreturn]] void fail(int result) const;
    [[nodiscard]] sqlite3* handle() const noexcept { return handle_; }

private:
    std::string path_;
    sqlite3* handle_{};
    lock_wait wait_;
    statement begin_{*this, "BEGIN IMMEDIATE"};
    statement commit_{*this, "COMMIT"};
    statement rollback_{*this, "ROLLBACK"};
};

/// Resets a statement when a scope ends, whatever happens in it.
class statement_use {
public:
    explicit statement_use(statement& used) noexcept : used_{used} {}
    statement_use(const statement_use&) = delete;
    statement_use& operator=(const statement_use&) = delete;
    ~statement_use() { used_.reset(); }

private:
    statement& used_;
};

}  // namespace holdfast::engines::local
