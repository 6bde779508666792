#pragma once

#include <string_view>

#include <holdfast/error.hpp>
#include <redis/resp/value.hpp>

namespace holdfast::engines::redis {

/// What a server's error reply means to somebody who wants a lock.
///
///     READONLY, LOADING, MASTERDOWN, CLUSTERDOWN, TRYAGAIN,   store_unavailable: nothing was changed,
///     BUSY, OOM, MISCONF, NOREPLICAS, MOVED, ASK,             it may work later or elsewhere
///     too many clients
///     NOAUTH, WRONGPASS, NOPERM                               unauthorised
///     WRONGTYPE, WRONGKIND (our scripts)                      wrong_kind
///     anything else                                           store_error
[[nodiscard]] failure meaning_of(const value& error);

/// Servers before 7.2 do not say which command of a script its user may not run, only in which line:
/// adds that line of `script` to such an error.
void name_forbidden_command(value& answer, std::string_view script);

/// Whether the server has as many clients as it takes. It says so without being asked, as soon as the
/// connection is made, and hangs up: it is no answer to the first command.
[[nodiscard]] bool says_full(const value& answer) noexcept;

/// The answer makes no sense.
[[nodiscard]] failure senseless_answer(std::string_view to);

}  // namespace holdfast::engines::redis
