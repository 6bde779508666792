#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::engines::local {

/// The files of a store, and whether they are still those that we opened.
///
/// SQLite goes on in files that were deleted or replaced, while others open new ones: two programs
/// would get one lock. SQLite itself never deletes them (`database` asks it not to), so all files of a
/// store stay the same for as long as anybody has it open.
///
/// Thread safety: `remember` excludes all others; the rest may be called from any thread.
class store_files {
public:
    explicit store_files(const std::string& directory);

    [[nodiscard]] const std::string& database() const noexcept { return parts_.front().path; }
    /// From now on these are the right ones. Throws `database_error` if one is missing.
    void remember();
    /// A number that stands for the files that are remembered; never 0.
    [[nodiscard]] std::uint64_t mark() const noexcept { return mark_; }
    /// The number for the files that are there now; 0 if one is missing, or shorter than it is in use.
    [[nodiscard]] std::uint64_t present_mark() const noexcept;

    /// Throws `database_error` if a file is not the one that is remembered, or was cut.
    void check() const;
    /// As `check`.
    [[nodiscard]] bool intact() const noexcept;
    /// Throws `database_error`: others have the store open with other files.
    [[noreturn]] void fail_others_differ() const;

private:
    struct file_id {
        std::uint64_t device{};
        std::uint64_t inode{};
        friend bool operator==(const file_id&, const file_id&) = default;
    };
    struct part {
        std::string path;
        /// Never shorter while anybody has the store open.
        std::int64_t smallest{};
        file_id id;
    };
    using parts = std::array<part, 4>;
    /// Nothing if it is missing or shorter than `smallest`.
    [[nodiscard]] static std::optional<file_id> look_at(const part& file) noexcept;
    [[nodiscard]] const part* find_wrong() const noexcept;
    [[noreturn]] static void fail_moved(const part& wrong);
    [[nodiscard]] static std::uint64_t mixed(std::uint64_t mark, const file_id& id) noexcept;

    parts parts_;
    std::uint64_t mark_{};
};

}  // namespace holdfast::engines::local
