#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/export.hpp>
#include <holdfast/info.hpp>

/// Which process of this host, and whether it is still there.
namespace holdfast::engines {

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

/// What tells this process from all others that have or had its number, on any host:
/// `<id of the boot> <time namespace> <pid namespace> <start time>`. Empty where `/proc` does not tell.
[[nodiscard]] HOLDFAST_EXPORT std::string process_mark();

/// Whether the process with this number and mark is there. Unknown unless it is one of this boot of
/// this host, in our namespaces.
[[nodiscard]] HOLDFAST_EXPORT liveness liveness_of(std::int64_t pid, std::string_view mark);

/// Nothing, and `errno`, where it cannot be read.
[[nodiscard]] std::optional<std::string> read_small_file(const std::string& path);

}  // namespace holdfast::engines
