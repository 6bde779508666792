#pragma once

#include <functional>

#include "isolation.hpp"

namespace holdfast::guard::testing {

/// What a program with `row_lock_suite.cpp` defines besides: ends the other's connection.
void cut(sql_session& observer, sql_session& other);
/// Ends the other's statement, and leaves its connection.
void cancel(sql_session& observer, sql_session& other);
/// Statements of more than 50 ms are ended by the server.
void limit_statements(sql_session& session);
/// On a port where nobody listens.
void with_refused_connection(const std::function<void(database&)>& use);

}  // namespace holdfast::guard::testing
