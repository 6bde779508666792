#pragma once

#include <chrono>
#include <holdfast/info.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace holdfast::cli {

/// The text with everything replaced that could drive the reader's terminal, or show the text in
/// another order than it is written in: control characters, format characters (Unicode's Cf), line
/// separators, and bytes that are not UTF-8. Labels, names and reasons come from others.
[[nodiscard]] std::string printable(std::string_view text);

/// Valid JSON with the same characters escaped (`\\u202e`); nothing is lost.
[[nodiscard]] std::string escape_invisible(std::string_view document);

/// How many bytes of `text` are UTF-8, from its start.
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view text) noexcept;

/// How many columns a terminal needs for UTF-8 text, nearly always.
[[nodiscard]] std::size_t display_width(std::string_view text) noexcept;

/// `12:00:03` today, `2024-11-14 12:00:03` on other days; local time.
[[nodiscard]] std::string format_time(std::chrono::system_clock::time_point when,
                                      std::chrono::system_clock::time_point now);

/// Since when it is held, like `format_time`; `-` when that is not known.
[[nodiscard]] std::string format_since(const holder_info& holder,
                                       std::chrono::system_clock::time_point now);

/// `exclusive`, `shared`, or `permit 1/3`.
[[nodiscard]] std::string format_mode(const holder_info& holder, const lock_info& lock);

/// `alive`, `dead`, `unknown` or `lingering`.
[[nodiscard]] std::string_view format_status(const holder_info& holder) noexcept;

/// `12`, or `12-139` for a tenure with several tokens; `-` when it has none.
[[nodiscard]] std::string format_tokens(const holder_info& holder);

/// `web7 pid 812 (backup.sh)`, or the owner and `no card`: a client of another library.
[[nodiscard]] std::string describe_holder(const holder_info& holder);

/// `"nightly" is held by web7 pid 812 (backup.sh) since 12:00:03, for 4m10s`
[[nodiscard]] std::string describe_busy(const lock_info& lock,
                                        std::chrono::system_clock::time_point now);

/// What there is of a name that nobody holds: `free`, `a semaphore, 3 of 3 permits free`.
[[nodiscard]] std::string describe_unheld(const lock_info& lock);
/// Whether nobody holds anything of this name, and a request for its kind of lock would be granted now.
[[nodiscard]] bool is_free(const lock_info& lock) noexcept;

/// Why a lock was lost, as part of a sentence.
[[nodiscard]] std::string describe_loss(const std::error_code& reason, const std::string& detail);

/// The store has no trace of the lease although it had time left.
inline constexpr std::string_view gone_from_store =
    "the store does not have it any more: somebody deleted it there, or the store lost its data";

/// `--max-hold 14m is near, "rollup" has been held for 13m51s`: the command is ended before, so that it
/// is gone in time.
[[nodiscard]] std::string describe_max_hold(std::string_view name, std::chrono::milliseconds max_hold,
                                            std::chrono::milliseconds held_for);

/// Columns as wide as their widest cell; the last one is not padded.
[[nodiscard]] std::string format_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace holdfast::cli
