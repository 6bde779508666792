#pragma once

#include <chrono>
#include <holdfast/client.hpp>
#include <holdfast/info.hpp>
#include <string>

#include "once_per.hpp"

namespace holdfast::cli {

/// A holder on several lines, for people who have to decide about it.
[[nodiscard]] std::string format_card(const lock_info& lock, const holder_info& holder,
                                      std::chrono::system_clock::time_point now);

/// How long others wait at most if this holder dies now.
[[nodiscard]] std::string format_takeover(const holder_info& holder,
                                          const engines::guarantees& promises);

/// Everything about one lock.
[[nodiscard]] std::string format_lock(const lock_info& lock, const earlier_run& earlier,
                                      const client& store, std::chrono::system_clock::time_point now);

}  // namespace holdfast::cli
