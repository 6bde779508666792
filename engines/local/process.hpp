#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <common/host_process.hpp>

/// Which process, and whether it is still there.
namespace holdfast::engines::local {

using engines::liveness_of;
using engines::parse_process_status;
using engines::process_ref;
using engines::process_status;
using engines::status_of;
using engines::this_process;

/// What times and start times of processes are counted from: this boot of the host, and by how much
/// this process's time namespace shifts it.
struct time_base {
    /// The kernel's random id of this boot.
    std::string boot;
    /// Of `CLOCK_BOOTTIME`, against the host's.
    std::chrono::nanoseconds offset{};

    /// One text for both. The id alone where nothing is shifted.
    [[nodiscard]] std::string text() const;
    friend bool operator==(const time_base&, const time_base&) = default;
};

/// The time base of this process. Throws `database_error` where `/proc` does not tell: then nobody can
/// say which of the holds in a store are still true.
[[nodiscard]] time_base this_time_base(const std::string& proc = "/proc");

/// The offset of `boottime` in the text of `/proc/<pid>/timens_offsets`; nothing if it is not there.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_boottime_offset(const std::string& text);

}  // namespace holdfast::engines::local
