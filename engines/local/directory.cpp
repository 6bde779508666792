#include <array>
#include <cerrno>
#include <climits>
#include <common/shortage.hpp>
#include <common/validate.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <holdfast/error.hpp>
#include <local/directory.hpp>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace holdfast::engines::local {

namespace {

[[noreturn]] void refuse(errc code, const std::string& path, const std::string& reason) {
    failure{code, reason}.raise("local:" + path);
}

std::string reason_text(int error) {
    return std::system_category().message(error);
}

/// Where the store of a user is that names none; nothing where that is unknown.
std::optional<std::string> default_directory() {
    const char* state = std::getenv("XDG_STATE_HOME");
    const char* home = std::getenv("HOME");
    if (state != nullptr && *state == '/') {
        return std::string{state} + "/holdfast";
    }
    if (home != nullptr && *home == '/') {
        return std::string{home} + "/.local/state/holdfast";
    }
    return std::nullopt;
}

/// An address to use instead.
std::string usual_directory() {
    const auto path = default_directory();
    return path ? "local: alone means local:" + *path : "local:/path/of/a/directory";
}

/// A relative path would be another store in every working directory.
[[noreturn]] void refuse_relative(const std::string& path) {
    if (path.find("://") != std::string::npos) {
        // Not repeated: it may hold a password.
        failure{errc::bad_configuration,
                "another address follows it; write that one alone, or local: and a directory"}
            .raise("store local:");
    }
    const char* home = std::getenv("HOME");
    const bool of_home = path.starts_with("~/") && home != nullptr && *home == '/';
    const auto whole = of_home ? home + path.substr(1) : std::filesystem::absolute(path).string();
    refuse(errc::bad_configuration, path,
           "this means another store in every working directory; write the whole path: local:" + whole);
}

[[noreturn]] void refuse_long(const std::string& path) {
    constexpr std::size_t enough_to_know_it = 64;
    // Another address is not repeated: it may hold a password.
    const bool known = path.starts_with('/');
    refuse(errc::bad_configuration,
           known ? std::string{shortened(path, enough_to_know_it)} + "…" : std::string{},
           "this path has " + std::to_string(path.size()) + " bytes; at most " +
               std::to_string(PATH_MAX - 1) + " are allowed");
}

[[noreturn]] void refuse_creation(const std::string& path, const std::string& part, int error) {
    const bool forbidden = error == EACCES || error == EPERM || error == EROFS;
    refuse(forbidden ? errc::unauthorised : refusal_for(error), path,
           "the directory cannot be created (" + part + ": " + reason_text(error) +
               "); create it yourself, or name another");
}

void create_with_parents(const std::string& path) {
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
            struct ::stat there {};
            const int error = errno;
            if (::stat(part.c_str(), &there) != 0) {
                refuse_creation(path, part, error);
            }
        }
        if (end == std::string::npos) {
            return;
        }
    }
}

void check_owner_and_mode(const std::string& path) {
    struct ::stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
        refuse(errc::bad_configuration, path, reason_text(errno));
    }
    if (S_ISLNK(status.st_mode)) {
        refuse(errc::bad_configuration, path, "this is a symbolic link; name the directory itself");
    }
    if (!S_ISDIR(status.st_mode)) {
        refuse(errc::bad_configuration, path, "this is not a directory; name one, or remove the file");
    }
    if (status.st_uid != ::geteuid()) {
        refuse(errc::bad_configuration, path,
               "the directory belongs to user " + std::to_string(status.st_uid) + ", we are user " +
                   std::to_string(::geteuid()) + "; name a directory of your own");
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        const bool sticky =
            (status.st_mode & S_ISVTX) != 0;  // as /tmp: what is inside stays whose it is
        refuse(errc::bad_configuration, path,
               "other users may write to this directory; name one that only you may write to: " +
                   (sticky ? "local:" + path + "/holdfast-" + user_name() : usual_directory()));
    }
}

/// SQLite would call this an outage, which waiting does not end.
void check_access(const std::string& directory, const std::string& file) {
    if (::faccessat(AT_FDCWD, file.c_str(), R_OK | W_OK, AT_EACCESS) != 0 && errno != ENOENT) {
        const int error = errno;
        refuse(is_shortage(error) ? errc::store_unavailable : errc::unauthorised, directory,
               file + " cannot be read and written (" + reason_text(error) +
                   "); make it yours (`chown`, `chmod 600`), or name another directory: " +
                   usual_directory());
    }
}

/// Whoever can rename a directory on the way to ours can put another in its place.
void check_ancestors(const std::string& path) {
    std::filesystem::path ancestor{path};
    while (ancestor.has_relative_path()) {
        ancestor = ancestor.parent_path();
        struct ::stat status {};
        if (::stat(ancestor.c_str(), &status) != 0) {
            continue;
        }
        if ((status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0) {
            refuse(errc::bad_configuration, path,
                   "everybody may write to " + ancestor.string() +
                       " and put another directory in place of this one; name one elsewhere: " +
                       usual_directory());
        }
    }
}

void check_filesystem(const std::string& path) {
    struct ::statfs status {};
    if (::statfs(path.c_str(), &status) != 0) {
        const int error = errno;
        refuse(refusal_for(error), path, "its filesystem cannot be told: " + reason_text(error));
    }
    if (const auto kind = shared_filesystem(static_cast<std::uint32_t>(status.f_type))) {
        refuse(errc::guarantee_not_met, path,
               "local: excludes the processes of one host only; " + path + " is on " +
                   std::string{*kind} +
                   ", which other hosts may share; name a directory on a disk of this host, or use "
                   "redis://");
    }
}

}  // namespace

std::string directory_of(std::string_view rest) {
    if (rest.find('\0') != std::string_view::npos) {
        refuse(errc::bad_configuration, {}, "a path cannot hold a zero byte");
    }
    std::string path{rest};
    if (path.empty()) {
        const auto usual = default_directory();
        if (!usual) {
            refuse(
                errc::bad_configuration, {},
                "neither XDG_STATE_HOME nor HOME names a directory; write local:/path/of/a/directory");
        }
        path = *usual;
    }
    if (path.size() >= PATH_MAX) {
        refuse_long(path);
    }
    if (path.front() != '/') {
        refuse_relative(path);
    }
    while (path.size() > 1 && path.back() == '/') {
        path.pop_back();
    }
    return path;
}

std::string prepare_directory(const std::string& path) {
    create_with_parents(path);
    check_owner_and_mode(path);
    const std::unique_ptr<char, decltype(&std::free)> real{::realpath(path.c_str(), nullptr),
                                                           &std::free};
    if (!real) {
        refuse(errc::bad_configuration, path, reason_text(errno));
    }
    std::string result{real.get()};
    check_ancestors(result);
    check_filesystem(result);
    if (::access(result.c_str(), R_OK | W_OK | X_OK) != 0) {
        const int error = errno;
        refuse(error == EACCES || error == EROFS ? errc::unauthorised : errc::bad_configuration, path,
               "we may not write to the directory (" + reason_text(error) +
                   "); name one that you may write to: " + usual_directory());
    }
    return result;
}

void keep_private(const std::string& directory) {
    // Not opened: a process that closes a file loses the locks that SQLite has on it for others.
    const std::string database = directory + "/locks.db";
    if (::mknod(database.c_str(), S_IFREG | 0600, 0) != 0 && is_shortage(errno)) {
        refuse(errc::store_unavailable, directory, "no file can be made: " + reason_text(errno));
    }
    for (const std::string& path :
         {database, database + "-wal", database + "-shm", directory + "/wake"}) {
        struct ::stat status {};
        if (::lstat(path.c_str(), &status) != 0) {
            continue;
        }
        if (!S_ISREG(status.st_mode)) {
            refuse(errc::bad_configuration, directory,
                   path + " is not a file; delete it, or name another directory");
        }
        if (status.st_nlink > 1) {
            refuse(errc::bad_configuration, directory,
                   path +
                       " has another name elsewhere (a hard link), under which others could use half "
                       "of this store; stop every program that uses it, then delete the other name, or "
                       "put a copy in place of this one");
        }
        const bool open_to_others = (status.st_mode & (S_IRWXG | S_IRWXO)) != 0;
        if (open_to_others && ::chmod(path.c_str(), 0600) != 0) {
            refuse(errc::bad_configuration, directory,
                   "other users have access to " + path + ", which cannot be changed (" +
                       reason_text(errno) + "); name another directory: " + usual_directory());
        }
        check_access(directory, path);
    }
}

std::optional<std::string_view> shared_filesystem(std::uint64_t f_type) noexcept {
    // From the kernel's magic.h and the statfs(2) and stat(1) sources; many are in no header.
    static constexpr std::array<std::pair<std::uint64_t, std::string_view>, 23> shared{{
        {0x6969, "nfs"},
        {0x517B, "smb"},
        {0xFF534D42, "cifs"},
        {0xFE534D42, "smb2"},
        {0x65735546, "fuse or virtiofs"},
        {0x01021997, "9p"},
        {0x00C36400, "ceph"},
        {0x0BD00BD0, "lustre"},
        {0x47504653, "gpfs"},
        {0x5346414F, "afs"},
        {0x6B414653, "afs"},
        {0x7461636F, "ocfs2"},
        {0x01161970, "gfs2"},
        {0x786F4256, "vboxsf"},
        {0xBACBACBC, "vmhgfs"},
        {0x7C7C6673, "prl_fs"},
        {0x73757245, "coda"},
        {0x564C, "ncp"},
        {0x19830326, "beegfs"},
        {0x20030528, "orangefs"},
        {0xAAD7AAEA, "panfs"},
        {0x61636673, "acfs"},
        {0xBEEFDEAD, "snfs"},
    }};
    for (const auto& [type, name] : shared) {
        if (type == f_type) {
            return name;
        }
    }
    return std::nullopt;
}

std::string user_name() {
    std::vector<char> buffer(16384);
    struct ::passwd entry {};
    struct ::passwd* found = nullptr;
    if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
        found != nullptr) {
        return found->pw_name;
    }
    return std::to_string(::geteuid());
}

}  // namespace holdfast::engines::local
