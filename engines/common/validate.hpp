#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <holdfast/engine.hpp>
#include <holdfast/export.hpp>

/// What every engine refuses before it looks at its store. Pure functions; an empty failure means
/// that the request makes sense.
namespace holdfast::engines {

/// Who revoked a hold and why are words for people; beyond this length they are cut.
inline constexpr std::size_t longest_remark = 1024;

/// The most permits of one acquisition. Stores that know each permit by an id have room for so many ids
/// of one owner.
inline constexpr std::uint32_t most_permits = 65'536;

[[nodiscard]] HOLDFAST_EXPORT failure check_name(std::string_view name);
/// Why a part of a name cannot be one: "is not UTF-8", "holds a control character". Empty when it can.
[[nodiscard]] HOLDFAST_EXPORT std::string_view flaw_in(std::string_view text) noexcept;
[[nodiscard]] HOLDFAST_EXPORT failure check_request(const acquire_request& request,
                                                    const guarantees& promises);
[[nodiscard]] HOLDFAST_EXPORT failure check_request(const renew_request& request,
                                                    const guarantees& promises);
[[nodiscard]] HOLDFAST_EXPORT failure check_request(const release_request& request,
                                                    const guarantees& promises);
[[nodiscard]] HOLDFAST_EXPORT failure check_request(const revoke_request& request,
                                                    const guarantees& promises);
[[nodiscard]] HOLDFAST_EXPORT failure check_request(const latch_request& request,
                                                    const guarantees& promises);
[[nodiscard]] HOLDFAST_EXPORT failure check_request(const list_request& request,
                                                    const guarantees& promises);

/// For error texts: in quotes, at most about 64 characters, nothing a terminal would obey.
[[nodiscard]] HOLDFAST_EXPORT std::string in_quotes(std::string_view text);
/// The beginning of `text`, never ending inside a UTF-8 character.
[[nodiscard]] HOLDFAST_EXPORT std::string_view shortened(std::string_view text, std::size_t bytes);

}  // namespace holdfast::engines
