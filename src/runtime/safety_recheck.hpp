#pragma once

#include <atomic>
#include <chrono>

namespace holdfast::detail {

/// How long a waiter sleeps at most before it asks the store again, in case a notification was lost.
/// Tests make it hours, so that a notification that is lost is noticed. Read when a client is made.
inline std::atomic<std::chrono::milliseconds> safety_recheck{std::chrono::seconds{1}};

}  // namespace holdfast::detail
