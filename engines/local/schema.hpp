#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <local/database.hpp>
#include <local/process.hpp>

/// The tables of a local store, and what happens to them when it is opened.
///
///     hold        the holds. One row, with the empty name, is the token counter: it is first in the
///                 tree, so that a grant in a small store writes one page.
///     client      the clients that hold something
///     revocation  the last one of each name, the newest 1024
///     latch, latch_mark    counters, and the requests that were counted, the newest 4096
///     boot        the time base in which all of this is true: the host's boot, and the offset of the
///                 time namespace
namespace holdfast::engines::local {

inline constexpr std::int64_t application_id = 0x484F4C44;  // "HOLD"
inline constexpr std::int64_t schema_version = 2;

/// Who else has the store open. `newcomers` are opening it, and have read nothing yet.
enum class company : std::uint8_t { none, newcomers, users };

/// Creates the tables in a new file; refuses a file that is not ours or newer than us. If the host was
/// booted since, forgets all holds; but only while `exclude_others` says that nobody else has the store
/// open. Refuses a store of another time namespace, and one that is open to programs which see another
/// boot. Throws `database_error`.
void prepare_schema(database& store, const std::string& path, const time_base& base,
                    clock::time_point deadline, const std::function<company()>& exclude_others);

/// What every further connection needs.
void configure_connection(database& store);

}  // namespace holdfast::engines::local
