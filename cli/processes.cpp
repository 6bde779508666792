#include "processes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>

#include "descriptor.hpp"

namespace holdfast::cli {

namespace {

/// Empty, and `errno`, where it cannot be read.
[[nodiscard]] std::string read_text(int directory, const std::string& path) {
    const descriptor file{::openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC)};
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

/// What `stat` in this directory of /proc says.
[[nodiscard]] std::optional<process> look_up(int directory, pid_t id) {
    constexpr std::size_t state = 0, parent = 1, group = 2, started = 19;
    const auto stat = read_text(directory, "stat");
    const auto fields = split_stat(stat);
    if (fields.size() <= started) {
        return std::nullopt;
    }
    return process{id, to_number<pid_t>(fields[parent]), to_number<pid_t>(fields[group]),
                   to_number<std::uint64_t>(fields[started]), fields[state] == "Z"};
}

/// Stands for a process like a pidfd, also where the number means another process to us.
[[nodiscard]] descriptor open_directory(pid_t id) {
    return descriptor{
        ::open(("/proc/" + std::to_string(id)).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
}

/// Our number in this /proc. Zero: there is no /proc, or it does not show us.
[[nodiscard]] pid_t own_number() {
    std::array<char, 32> number{};
    const auto length = ::readlink("/proc/self", number.data(), number.size());
    return length > 0 ? to_number<pid_t>({number.data(), static_cast<std::size_t>(length)}) : 0;
}

[[nodiscard]] bool out_of_resources(int error) noexcept {
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

struct process_list {
    std::unordered_multimap<pid_t, process> by_parent;
    bool complete{};
};

[[nodiscard]] process_list all_processes() {
    process_list result;
    const std::unique_ptr<DIR, int (*)(DIR*)> listing{::opendir("/proc"), ::closedir};
    result.complete = listing != nullptr;
    while (const dirent* entry = listing ? ::readdir(listing.get()) : nullptr) {
        const auto id = to_number<pid_t>(entry->d_name);
        if (id <= 0) {
            continue;
        }
        errno = 0;
        const auto directory = open_directory(id);
        if (const auto found = directory ? look_up(directory.get(), id) : std::nullopt) {
            result.by_parent.emplace(found->parent, *found);
        } else if (out_of_resources(errno)) {
            result.complete = false;
        }
    }
    return result;
}

// The C library's own declarations, where there are any, cannot be linked from C++ before glibc 2.37.
[[nodiscard]] descriptor open_process(pid_t id) noexcept {
    return descriptor{static_cast<int>(::syscall(SYS_pidfd_open, id, 0))};
}

[[nodiscard]] bool signal_process(int handle, int signal) noexcept {
    return ::syscall(SYS_pidfd_send_signal, handle, signal, nullptr, 0) == 0;
}

/// The numbers of the process that is `id` to us: in the namespace of /proc, in the one below, and so
/// on down to its own. Empty where kernel or /proc do not tell.
[[nodiscard]] std::vector<pid_t> numbers_of(pid_t id) {
    constexpr std::string_view key = "\nNSpid:\t";
    const auto handle = open_process(id);
    const auto text = read_text(AT_FDCWD, "/proc/self/fdinfo/" + std::to_string(handle.get()));
    const auto found = text.find(key);
    std::vector<pid_t> numbers;
    if (found != std::string::npos) {
        std::istringstream line{text.substr(found + key.size())};
        numbers.assign(std::istream_iterator<pid_t>{line}, {});
    }
    return numbers;
}

/// Whether /proc has the numbers of our own pid namespace.
[[nodiscard]] bool proc_is_ours() {
    const auto numbers = numbers_of(::getpid());
    return numbers.empty() ? own_number() == ::getpid() : numbers.size() == 1;
}

/// The number of a process made just now. Older processes have smaller ones, unless the kernel has
/// started again from the smallest.
[[nodiscard]] pid_t newest_number() noexcept {
    const auto id = ::fork();
    if (id == 0) {
        ::_exit(0);
    }
    if (id > 0) {
        ::waitpid(id, nullptr, 0);
    }
    return id;
}

}  // namespace

process_tree descendants() {
    const auto self = own_number();
    if (self == 0) {
        return {};
    }
    const auto all = all_processes();
    process_tree result{{}, all.complete};
    std::vector<pid_t> open{self};
    while (!open.empty()) {
        const auto [begin, end] = all.by_parent.equal_range(open.back());
        open.pop_back();
        for (auto child = begin; child != end; ++child) {
            result.found.push_back(child->second);
            open.push_back(child->second.id);
        }
    }
    return result;
}

pid_t number_in_proc(pid_t id) {
    const auto numbers = numbers_of(id);
    if (!numbers.empty()) {
        return numbers.front();
    }
    return proc_is_ours() ? id : 0;
}

bool send_signal(const process& target, int signal) {
    const auto directory = open_directory(target.id);
    const auto now = directory ? look_up(directory.get(), target.id) : std::nullopt;
    if (!now) {
        return !out_of_resources(errno);  // it is gone
    }
    const auto self = own_number();
    // A parent that has died may have left its number to another process before we saw that one.
    if (now->started != target.started || (now->parent != target.parent && now->parent != self)) {
        return true;
    }
    if (signal_process(directory.get(), signal) || errno == ESRCH) {
        return true;
    }
    if (!proc_is_ours()) {
        return false;
    }
    ::kill(target.id, signal);  // kernels before 5.1 and some sandboxes do not know the call
    return true;
}

void signal_children(pid_t oldest, pid_t spared_group, int signal) noexcept {
    constexpr pid_t largest = 1 << 22;  // the kernel's own limit
    const auto newest = newest_number();
    const bool wrapped = newest < oldest;
    const auto last = wrapped ? largest : newest;
    for (pid_t id = wrapped ? 1 : oldest; id <= last; ++id) {
        siginfo_t state{};
        const bool ours =
            ::waitid(P_PID, static_cast<id_t>(id), &state, WEXITED | WNOHANG | WNOWAIT) == 0;
        if (ours && ::getpgid(id) != spared_group) {
            ::kill(id, signal);
        }
    }
}

}  // namespace holdfast::cli
