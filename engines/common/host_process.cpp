#include <array>
#include <cerrno>
#include <common/host_process.hpp>
#include <csignal>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::engines {

namespace {

bool shows_our_processes() {
    std::array<char, 32> number{};
    const ssize_t length = ::readlink("/proc/self", number.data(), number.size());
    return length > 0 && std::string_view{number.data(), static_cast<std::size_t>(length)} ==
                             std::to_string(::getpid());
}

/// What start times are counted from: this boot, and the time namespace that shifts them.
std::string time_mark() {
    const auto boot = read_small_file("/proc/sys/kernel/random/boot_id");
    if (!boot || boot->find_first_of(" \n") == 0) {
        return {};
    }
    struct ::stat space {};
    const bool known = ::stat("/proc/self/ns/time", &space) == 0;  // older kernels have none
    return boot->substr(0, boot->find('\n')) + " " + std::to_string(known ? space.st_ino : 0);
}

}  // namespace

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

std::string process_mark() {
    const auto self = this_process();
    const auto time = time_mark();
    if (self.pid_namespace == 0 || time.empty()) {
        return {};
    }
    return time + " " + std::to_string(self.pid_namespace) + " " + std::to_string(self.start_time);
}

liveness liveness_of(std::int64_t pid, std::string_view mark) {
    const auto time = time_mark();
    if (time.empty() || !mark.starts_with(time + " ")) {
        return liveness::unknown;
    }
    process_ref process;
    process.pid = pid;
    std::istringstream rest{std::string{mark.substr(time.size())}};
    rest >> process.pid_namespace >> process.start_time;
    return rest ? liveness_of(process, this_process()) : liveness::unknown;
}

}  // namespace holdfast::engines
