#pragma once

#include <holdfast/export.hpp>
#include <holdfast/mutex.hpp>

namespace holdfast {
inline namespace v0 {

/// A mutex whose waiters are served in the order in which they came, whatever process or host they are
/// in. Everybody stands in a line that the store keeps, so threads of one process do not hand it to
/// each other: where order does not matter, `mutex` is several times faster. A waiter whose process
/// dies is passed over, at once or half a second after it came; one whose host vanishes keeps its turn
/// for a few seconds.
///
/// Only in stores that promise it; others are refused with `errc::guarantee_not_met`. Everything else
/// is as with `mutex`; use a name for one of the two only.
class HOLDFAST_EXPORT fair_mutex : private mutex {
public:
    fair_mutex(client& owner, std::string name, lease_options options = {});

    using mutex::acquire;
    using mutex::acquire_unless_stopped;
    using mutex::lock;
    using mutex::lock_unless_stopped;
    using mutex::lost;
    using mutex::name;
    using mutex::token;
    using mutex::try_acquire;
    using mutex::try_acquire_for;
    using mutex::try_acquire_until;
    using mutex::try_lock;
    using mutex::try_lock_for;
    using mutex::try_lock_until;
    using mutex::unlock;
};

}  // namespace v0
}  // namespace holdfast
