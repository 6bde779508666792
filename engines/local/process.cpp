#include <cerrno>
#include <csignal>
#include <local/process.hpp>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::engines::local {

namespace {

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
    ::close(file);
    if (length < 0) {
        return std::nullopt;
    }
    text.resize(static_cast<std::size_t>(length));
    return text;
}

std::optional<process_status> status_of(const std::string& pid) {
    const auto text = read_small_file("/proc/" + pid + "/stat");
    return text ? parse_process_status(*text) : std::nullopt;
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

process_ref this_process() {
    process_ref self;
    self.pid = ::getpid();
    struct ::stat space {};
    const auto status = status_of("self");
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
    const auto status = status_of(std::to_string(process.pid));
    if (status) {
        return status->zombie || status->start_time != process.start_time ? liveness::dead
                                                                          : liveness::alive;
    }
    // Unreadable is not gone: /proc may be mounted so that it hides processes.
    const bool gone = ::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH;
    return gone ? liveness::dead : liveness::unknown;
}

std::string boot_id() {
    std::string text = read_small_file("/proc/sys/kernel/random/boot_id").value_or("");
    while (!text.empty() && text.back() == '\n') {
        text.pop_back();
    }
    return text;
}

}  // namespace holdfast::engines::local
