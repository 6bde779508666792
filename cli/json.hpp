#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <holdfast/client.hpp>
#include <holdfast/info.hpp>
#include <string_view>

namespace holdfast::cli {

/// Times are milliseconds since the epoch, durations milliseconds; every key says so.
[[nodiscard]] boost::json::object to_json(const holder_info& holder);
[[nodiscard]] boost::json::object to_json(const lock_info& lock);
/// The store's address without secrets, and what it promises.
[[nodiscard]] boost::json::object to_json(const client& store);

[[nodiscard]] std::string_view to_word(scope reach) noexcept;
[[nodiscard]] std::int64_t epoch_milliseconds(std::chrono::system_clock::time_point when) noexcept;

/// Text from others, with bytes that are not UTF-8 replaced: JSON has to stay JSON.
[[nodiscard]] boost::json::string to_json_text(std::string_view text);

/// Writes the object and a newline, in one write.
void print_json(int descriptor, const boost::json::object& value);

}  // namespace holdfast::cli
