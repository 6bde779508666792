#pragma once

#include <string_view>

#include <holdfast/error.hpp>
#include <redis/resp/value.hpp>

namespace holdfast::engines::redis {

/// What a server's error reply means to somebody who wants a lock.
///
///     READONLY, LOADING, MASTERDOWN, CLUSTERDOWN, TRYAGAIN,   store_unavailable: nothing was changed,
///     BUSY, OOM, MISCONF, NOREPLICAS, MOVED, ASK              it may work later or elsewhere
///     NOAUTH, WRONGPASS, NOPERM                               unauthorised
///     WRONGTYPE, WRONGKIND (our scripts)                      wrong_kind
///     anything else                                           store_error
[[nodiscard]] failure meaning_of(const value& error);

/// The answer makes no sense.
[[nodiscard]] failure senseless_answer(std::string_view to);

}  // namespace holdfast::engines::redis
