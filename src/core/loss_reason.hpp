#pragma once

#include <utility>
#include <vector>

#include <holdfast/engine.hpp>

namespace holdfast::core {

/// A store that no longer has a lease when it is converted or released need not say why. It remembers a
/// revocation, and tells a renewal: this takes the reason from its answer.
inline void take_loss_reason(failure& reason, const engines::renew_reply& reply) {
    if (reply.result == engines::renew_reply::outcome::gone && reply.error.code == errc::revoked) {
        reason = reply.error;
    }
}
inline void take_loss_reason(failure& reason, const std::vector<engines::renew_reply>& replies) {
    if (!replies.empty()) {
        take_loss_reason(reason, replies.front());
    }
}

}  // namespace holdfast::core
