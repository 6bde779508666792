#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Where a local store lives, and whether that is a place for it.
namespace holdfast::engines::local {

/// The directory that `local:<rest>` means: the XDG state directory, or `rest` made absolute. Throws
/// `std::system_error` with `bad_configuration` if the environment does not tell.
[[nodiscard]] std::string directory_of(std::string_view rest);

/// Creates the directory (0700) if it is missing, and returns its real path. Throws
/// `std::system_error` when other users could meddle with it (`bad_configuration`), when we may not
/// write there (`unauthorised`), or when other hosts may see it (`guarantee_not_met`).
[[nodiscard]] std::string prepare_directory(const std::string& path);

/// Creates the store's file if it is missing, and takes from other users every right to it and to those
/// that SQLite and we keep beside it: in a directory that they may look into they could read who holds
/// what, and stop all writers by a lock. Throws `std::system_error` with an `errc`, also when a file
/// has another name (a hard link): in another directory it would be half of another store.
void keep_private(const std::string& directory);

/// The name of the filesystem with `statfs` type `f_type` if other hosts, or programs that forward
/// to them, may share it: there a lock would not exclude everyone who sees the file.
[[nodiscard]] std::optional<std::string_view> shared_filesystem(std::uint64_t f_type) noexcept;

/// The user this process acts as, for people.
[[nodiscard]] std::string user_name();

}  // namespace holdfast::engines::local
