#pragma once

#include <memory>
#include <string_view>

#include <holdfast/engine.hpp>

/// `sqlite-records:<path>`: locks in one table of an SQLite database.
std::unique_ptr<holdfast::engines::engine> open_sqlite_records(
    std::string_view path, const holdfast::engines::client_identity& identity);
