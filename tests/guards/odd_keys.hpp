#pragma once

#include <string>
#include <vector>

#include <holdfast/guard/database.hpp>

/// Names are data: keys that a careless encoding, collation or conversion would take for one another.
namespace holdfast::guard::testing {

/// All different, each of 1 to 255 bytes.
[[nodiscard]] std::vector<std::string> odd_keys();

/// Goes through every operation of every SQL guard with all of these keys. `writer` and `reader` may be
/// one connection, or two with different settings. The guards' tables must be there, and empty.
void expect_distinct_keys(database& writer, database& reader);

}  // namespace holdfast::guard::testing
