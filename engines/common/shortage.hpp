#pragma once

#include <cerrno>

#include <holdfast/error.hpp>

namespace holdfast::engines {

/// Whether something has run out on this host (room, descriptors, memory, threads), or its disk fails:
/// it may work later, as it is.
[[nodiscard]] inline bool is_shortage(int error) noexcept {
    return error == ENOSPC || error == EDQUOT || error == EFBIG || error == EMFILE || error == ENFILE ||
           error == ENOMEM || error == EAGAIN || error == EIO;
}

/// The code for a store that cannot be opened for this reason.
[[nodiscard]] inline errc refusal_for(int error) noexcept {
    return is_shortage(error) ? errc::store_unavailable : errc::bad_configuration;
}

}  // namespace holdfast::engines
