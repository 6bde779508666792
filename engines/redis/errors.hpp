#pragma once

#include <string>
#include <string_view>

#include <holdfast/error.hpp>
#include <redis/resp/value.hpp>
#include <redis/resp/word_list.hpp>

namespace holdfast::engines::redis {

/// The meaning of a server's error reply for a lock.
///
///     READONLY, LOADING, MASTERDOWN, CLUSTERDOWN, TRYAGAIN,   store_unavailable: nothing was changed,
///     BUSY, OOM, MISCONF, NOREPLICAS, MOVED, ASK,             it may work later or elsewhere
///     too many clients
///     NOAUTH, WRONGPASS, NOPERM                               unauthorised
///     CROSSSLOT (a cluster, asked as one server)              bad_configuration
///     WRONGTYPE, WRONGKIND (our scripts)                      wrong_kind
///     anything else                                           store_error
[[nodiscard]] failure meaning_of(const value& error);

/// The line that allows a user the command that a server has refused, as its words tell: "; run: ACL
/// SETUSER locker +time". Empty when they tell of none.
[[nodiscard]] std::string line_that_allows(std::string_view words, std::string_view user);

/// Servers before 7.2 do not say which command of a script its user may not run, only in which line:
/// adds that line of `script` to such an error, with the command that it publishes by.
void name_forbidden_command(value& answer, std::string_view script, std::string_view publish);

/// Whether the user may not use a key or a channel, as opposed to a command.
[[nodiscard]] bool refuses_keys(const value& answer) noexcept;

/// Servers before 7.2 do not say which key or channel the user may not use, and none says which key is
/// of another type: adds those of the request.
void name_keys(value& answer, const word_list& keys);

/// Whether the server has as many clients as it takes. It says so without being asked, as soon as the
/// connection is made, and hangs up: it is no answer to the first command.
[[nodiscard]] bool says_full(const value& answer) noexcept;

/// The answer makes no sense.
[[nodiscard]] failure senseless_answer(std::string_view to);

}  // namespace holdfast::engines::redis
