#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <local/database.hpp>
#include <local/process.hpp>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::engines::local {

namespace {

/// Nothing, and `errno`, where it cannot be read.
std::optional<std::string> read_small_file(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return std::nullopt;
    }
    std::string text(4096, '\0');
    ssize_t length = 0;
    do {
        length = ::read(file, text.data(), text.size());
    } while (length < 0 && errno == EINTR);
    const int error = errno;
    ::close(file);
    if (length < 0) {
        errno = error;
        return std::nullopt;
    }
    text.resize(static_cast<std::size_t>(length));
    return text;
}

bool shows_our_processes() {
    std::array<char, 32> number{};
    const ssize_t length = ::readlink("/proc/self", number.data(), number.size());
    return length > 0 && std::string_view{number.data(), static_cast<std::size_t>(length)} ==
                             std::to_string(::getpid());
}

[[noreturn]] void refuse_unknown_time(const std::string& file, const std::string& reason) {
    throw database_error{
        {errc::bad_configuration,
         file + " cannot be read (" + reason +
             "), so nobody can tell which holds are from before the last boot; give the program the "
             "whole /proc (systemd: ProcSubset=all; a chroot: mount it there), or use redis://"}};
}

/// By how much our time namespace shifts `CLOCK_BOOTTIME`.
std::chrono::nanoseconds boottime_offset(const std::string& proc) {
    const std::string space = proc + "/self/ns/time";
    struct ::stat ours {};
    if (::stat(space.c_str(), &ours) != 0) {
        struct ::stat pid_space {};
        const int error = errno;
        if (error == ENOENT && ::stat((proc + "/self/ns/pid").c_str(), &pid_space) == 0) {
            return {};  // this kernel has no time namespaces
        }
        refuse_unknown_time(space, std::system_category().message(error));
    }
    constexpr ::ino_t of_the_host = 0xEFFFFFFA;  // PROC_TIME_INIT_INO
    if (ours.st_ino == of_the_host) {
        return {};
    }
    // The kernel shows the offsets of the namespace that our children will be in.
    struct ::stat of_children {};
    const bool same = ::stat((proc + "/self/ns/time_for_children").c_str(), &of_children) == 0 &&
                      of_children.st_ino == ours.st_ino;
    const std::string file = proc + "/self/timens_offsets";
    const auto text = same ? read_small_file(file) : std::nullopt;
    const auto offset = text ? parse_boottime_offset(*text) : std::nullopt;
    if (!offset) {
        refuse_unknown_time(file, "the offset of this time namespace is unknown");
    }
    return *offset;
}

}  // namespace

std::optional<process_status> parse_process_status(const std::string& text) {
    // The second field is the program's name in parentheses, and may hold spaces and parentheses.
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) {
        return std::nullopt;
    }
    std::istringstream fields{text.substr(name_end + 1)};
    char state{};
    fields >> state;
    std::uint64_t threads = 0;
    process_status status;
    std::string skipped;
    for (int field = 4; field <= 22; ++field) {
        if (field == 20) {
            fields >> threads;
        } else if (field == 22) {
            fields >> status.start_time;
        } else {
            fields >> skipped;
        }
    }
    if (!fields) {
        return std::nullopt;
    }
    // A first thread that ended before the others looks like a zombie, too.
    status.zombie = (state == 'Z' || state == 'X') && threads <= 1;
    return status;
}

std::optional<process_status> status_of(std::int64_t pid) {
    const auto text = read_small_file("/proc/" + std::to_string(pid) + "/stat");
    return text ? parse_process_status(*text) : std::nullopt;
}

process_ref this_process() {
    process_ref self;
    self.pid = ::getpid();
    struct ::stat space {};
    // A /proc of another pid namespace means other processes by the same numbers.
    const auto status = shows_our_processes() ? status_of(self.pid) : std::nullopt;
    if (status && ::stat("/proc/self/ns/pid", &space) == 0) {
        self.start_time = status->start_time;
        self.pid_namespace = space.st_ino;
    }
    return self;
}

liveness liveness_of(const process_ref& process, const process_ref& observer) {
    if (observer.pid_namespace == 0 || process.pid_namespace != observer.pid_namespace ||
        process.pid <= 0) {
        return liveness::unknown;
    }
    const auto status = status_of(process.pid);
    if (status) {
        return status->zombie || status->start_time != process.start_time ? liveness::dead
                                                                          : liveness::alive;
    }
    // Unreadable is not gone: /proc may be mounted so that it hides processes.
    const bool gone = ::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH;
    return gone ? liveness::dead : liveness::unknown;
}

std::optional<std::chrono::nanoseconds> parse_boottime_offset(const std::string& text) {
    std::istringstream lines{text};
    std::string name;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    while (lines >> name >> seconds >> nanoseconds) {
        if (name == "boottime") {
            return std::chrono::seconds{seconds} + std::chrono::nanoseconds{nanoseconds};
        }
    }
    return std::nullopt;
}

std::string time_base::text() const {
    return offset.count() == 0 ? boot : boot + " " + std::to_string(offset.count());
}

time_base this_time_base(const std::string& proc) {
    const std::string file = proc + "/sys/kernel/random/boot_id";
    const auto text = read_small_file(file);
    if (!text) {
        refuse_unknown_time(file, std::system_category().message(errno));
    }
    constexpr std::size_t length = 36;  // a UUID in text
    if (std::min(text->find('\n'), text->size()) != length) {
        refuse_unknown_time(file, "this is not the id of a boot");
    }
    return {text->substr(0, length), boottime_offset(proc)};
}

}  // namespace holdfast::engines::local
