#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <holdfast/client.hpp>
#include <holdfast/info.hpp>
#include <string>
#include <string_view>

#include "exit_code.hpp"

namespace holdfast::cli {

/// Times are milliseconds since the epoch, durations milliseconds; every key says so.
[[nodiscard]] boost::json::object to_json(const holder_info& holder);
[[nodiscard]] boost::json::object to_json(const lock_info& lock);
/// The store's address without secrets, and what it promises.
[[nodiscard]] boost::json::object to_json(const client& store);

[[nodiscard]] std::int64_t epoch_milliseconds(std::chrono::system_clock::time_point when) noexcept;

/// Text from others, with bytes that are not UTF-8 replaced: JSON has to stay JSON.
[[nodiscard]] boost::json::string to_json_text(std::string_view text);

/// What went wrong: `status`, `error`, `message`.
[[nodiscard]] boost::json::object to_json(const problem& reason);

/// The object as text. Characters that could drive a terminal are escaped.
[[nodiscard]] std::string to_document(const boost::json::object& value);

enum class output_format : std::uint8_t { text, json };

/// Tells people on standard error what went wrong, and with `json` programs on standard output, too.
void print_problem(const problem& reason, output_format format);

/// Writes the object and a newline, in one write.
void print_json(const boost::json::object& value);

}  // namespace holdfast::cli
