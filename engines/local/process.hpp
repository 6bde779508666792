#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <holdfast/info.hpp>

/// Which process, and whether it is still there.
namespace holdfast::engines::local {

/// A process of this boot. The number alone does not name one: numbers are used again.
struct process_ref {
    std::int64_t pid{};
    /// In clock ticks since boot, as `/proc/<pid>/stat` has it.
    std::uint64_t start_time{};
    /// The inode of the pid namespace in which `pid` is meant; 0 if unknown.
    std::uint64_t pid_namespace{};

    friend auto operator<=>(const process_ref&, const process_ref&) = default;
};

struct process_status {
    std::uint64_t start_time{};
    /// It has ended and only waits for its parent to notice.
    bool zombie{};
};

/// What follows from the text of `/proc/<pid>/stat`; nothing if it is not such a text.
[[nodiscard]] std::optional<process_status> parse_process_status(const std::string& text);

/// What `/proc` says of a process now; nothing if it cannot be read.
[[nodiscard]] std::optional<process_status> status_of(std::int64_t pid);

/// This process. Found out anew every time: it may have been forked since.
[[nodiscard]] process_ref this_process();

/// Whether `process` is there, as seen by `observer`, which is this process. Dead only where there is
/// proof: the number is free, or another process has it, or a zombie.
[[nodiscard]] liveness liveness_of(const process_ref& process, const process_ref& observer);

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
