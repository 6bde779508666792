#include "processes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "descriptor.hpp"

namespace holdfast::cli {

namespace {

[[nodiscard]] std::string read_stat(pid_t id) {
    const descriptor file{
        ::open(("/proc/" + std::to_string(id) + "/stat").c_str(), O_RDONLY | O_CLOEXEC)};
    std::array<char, 1024> buffer{};
    const auto length = file ? ::read(file.get(), buffer.data(), buffer.size()) : -1;
    return length > 0 ? std::string(buffer.data(), static_cast<std::size_t>(length)) : std::string{};
}

/// The fields of `stat` from the third on; the second is a name that may hold spaces and parentheses.
[[nodiscard]] std::vector<std::string_view> split_stat(std::string_view stat) {
    std::vector<std::string_view> fields;
    const auto name_end = stat.rfind(')');
    if (name_end == std::string_view::npos) {
        return fields;
    }
    stat.remove_prefix(name_end + 1);
    while (!stat.empty()) {
        stat.remove_prefix(std::min(stat.find_first_not_of(" \n"), stat.size()));
        const auto length = std::min(stat.find_first_of(" \n"), stat.size());
        if (length > 0) {
            fields.push_back(stat.substr(0, length));
        }
        stat.remove_prefix(length);
    }
    return fields;
}

template <class Number>
[[nodiscard]] Number to_number(std::string_view text) noexcept {
    Number value{};
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

[[nodiscard]] std::optional<process> look_up(pid_t id) {
    constexpr std::size_t state = 0, parent = 1, group = 2, started = 19;
    const auto stat = read_stat(id);
    const auto fields = split_stat(stat);
    if (fields.size() <= started) {
        return std::nullopt;
    }
    return process{id, to_number<pid_t>(fields[parent]), to_number<pid_t>(fields[group]),
                   to_number<std::uint64_t>(fields[started]), fields[state] == "Z"};
}

using children_by_parent = std::unordered_multimap<pid_t, process>;

[[nodiscard]] children_by_parent all_processes() {
    children_by_parent result;
    const std::unique_ptr<DIR, int (*)(DIR*)> directory{::opendir("/proc"), ::closedir};
    if (!directory) {
        return result;
    }
    while (const dirent* entry = ::readdir(directory.get())) {
        const auto id = to_number<pid_t>(entry->d_name);
        if (id <= 0) {
            continue;
        }
        if (const auto found = look_up(id)) {
            result.emplace(found->parent, *found);
        }
    }
    return result;
}

// The C library's own declarations, where there are any, cannot be linked from C++ before glibc 2.37.
[[nodiscard]] int open_process(pid_t id) noexcept {
    return static_cast<int>(::syscall(SYS_pidfd_open, id, 0));
}

[[nodiscard]] bool signal_process(int handle, int signal) noexcept {
    return ::syscall(SYS_pidfd_send_signal, handle, signal, nullptr, 0) == 0;
}

}  // namespace

std::vector<process> descendants() {
    const auto children = all_processes();
    std::vector<process> result;
    std::vector<pid_t> open{getpid()};
    while (!open.empty()) {
        const auto [begin, end] = children.equal_range(open.back());
        open.pop_back();
        for (auto child = begin; child != end; ++child) {
            result.push_back(child->second);
            open.push_back(child->second.id);
        }
    }
    return result;
}

bool send_signal(const process& target, int signal) noexcept {
    const descriptor handle{open_process(target.id)};
    if (!handle) {
        // Kernels before 5.3 have no such handle; a process that is gone needs no signal.
        return errno == ENOSYS ? ::kill(target.id, signal) == 0 : errno == ESRCH;
    }
    const auto now = look_up(target.id);
    if (!now || now->started != target.started) {
        return true;
    }
    return signal_process(handle.get(), signal) || errno == ESRCH;
}

}  // namespace holdfast::cli
