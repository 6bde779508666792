#include <algorithm>
#include <cerrno>
#include <common/shortage.hpp>
#include <local/database.hpp>
#include <local/process.hpp>
#include <sstream>
#include <system_error>

#include <sys/stat.h>

namespace holdfast::engines::local {

namespace {

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
        const int error = errno;
        const std::string reason = std::system_category().message(error);
        if (is_shortage(error)) {
            throw database_error{
                {errc::store_unavailable, file + " cannot be read now (" + reason + ")"}};
        }
        refuse_unknown_time(file, reason);
    }
    constexpr std::size_t length = 36;  // a UUID in text
    if (std::min(text->find('\n'), text->size()) != length) {
        refuse_unknown_time(file, "this is not the id of a boot");
    }
    return {text->substr(0, length), boottime_offset(proc)};
}

}  // namespace holdfast::engines::local
