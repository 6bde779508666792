#pragma once

#include "isolation.hpp"

namespace holdfast::guard::testing {

/// What a program with `row_lock_suite.cpp` defines besides: ends the other's connection.
void cut(sql_session& observer, sql_session& other);

}  // namespace holdfast::guard::testing
