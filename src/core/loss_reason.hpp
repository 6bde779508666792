#pragma once

#include <utility>
#include <vector>

#include <holdfast/engine.hpp>

namespace holdfast::core {

/// A store that no longer has a lease when it is converted or released need not say why. It remembers a
/// revocation, and tells a renewal: this takes the reason from its answer.
inline void take_loss_reason(failure& reason, const std::vector<engines::renew_reply>& replies) {
    if (!replies.empty() && replies.front().result == engines::renew_reply::outcome::gone &&
        replies.front().error.code == errc::revoked) {
        reason = replies.front().error;
    }
}

}  // namespace holdfast::core
