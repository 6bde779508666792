#pragma once

#include <cstdint>
#include <string_view>

#include <holdfast/guard/database.hpp>
#include <holdfast/token.hpp>

/// What all guards ask of their arguments. Everything throws `std::system_error`.
namespace holdfast::guard::detail {

/// Goes into statements as it is, so it must be one: letters, digits and underscores, with dots
/// between.
void check_identifier(std::string_view name);
/// 1 to 255 bytes: what a key of every database can hold.
void check_key(std::string_view key);
/// The databases' integers have a sign.
[[nodiscard]] std::int64_t checked(fencing_token token);
/// For a check that is worth nothing unless the write is committed with it.
void require_transaction(const database& connection, std::string_view what);
void refuse_transaction(const database& connection, std::string_view what);
/// Refuses, in a transaction, what would end it.
void before_creating_table(const database& connection);

/// Milliseconds since 1970, by the database's clock.
[[nodiscard]] std::string_view now_of(dialect which) noexcept;

}  // namespace holdfast::guard::detail
