#pragma once

#include "sql_session.hpp"

namespace holdfast::guard::testing {

/// What a program with `row_lock_suite.cpp` defines besides `open_session`.
[[nodiscard]] bool somebody_waits(sql_session& observer);
/// Ends the other's connection.
void cut(sql_session& observer, sql_session& other);

}  // namespace holdfast::guard::testing
