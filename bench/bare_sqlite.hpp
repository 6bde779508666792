#pragma once

#include <filesystem>
#include <memory>

struct sqlite3;
struct sqlite3_stmt;

namespace bench {

/// The least that a lock on SQLite could do: an immediate transaction that writes one row, with
/// prepared statements and the settings of the local store (WAL, synchronous NORMAL, pages of 1 KiB).
class bare_sqlite {
public:
    explicit bare_sqlite(const std::filesystem::path& file);
    bare_sqlite(const bare_sqlite&) = delete;
    bare_sqlite& operator=(const bare_sqlite&) = delete;
    ~bare_sqlite();

    void immediate_transaction();

private:
    sqlite3_stmt* prepare(const char* text);
    void step(sqlite3_stmt* statement);

    sqlite3* database_{};
    sqlite3_stmt* begin_{};
    sqlite3_stmt* update_{};
    sqlite3_stmt* commit_{};
};

}  // namespace bench
