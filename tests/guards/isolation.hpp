#pragma once

#include <string>
#include <vector>

#include "sql_session.hpp"

namespace holdfast::guard::testing {

/// How a user of the database may have set up its transactions.
struct isolation_level {
    std::string name;
    std::vector<std::string> setup;
    std::string begin{"BEGIN"};
    /// Plain reads show what may be rolled back.
    bool dirty_reads{};
};

/// What a program with `isolation_suite.cpp` defines besides `open_session`.
[[nodiscard]] std::vector<isolation_level> isolation_levels();
/// Whether a transaction waits for another one. Never in SQLite: there the second one is told `busy`.
[[nodiscard]] bool somebody_waits(sql_session& observer);

}  // namespace holdfast::guard::testing
