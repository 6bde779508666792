#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/export.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/options.hpp>

namespace holdfast {
inline namespace v0 {

class client;

/// 64-bit FNV-1a: the same on every host, in every build and every language. For spreading keys, not
/// against people who choose them.
[[nodiscard]] HOLDFAST_EXPORT std::uint64_t stable_hash(std::string_view text) noexcept;

/// A fixed number of locks for any number of keys: key → stripe `stable_hash(key) % stripes`, a `mutex`
/// with the name `<name>:<stripe>`. Two keys may share a stripe, and then exclude each other although
/// they need not; in return there are never more than that many names in the store.
///
/// Errors: as with `mutex`.
/// Lifetime: the client must outlive it. A stripe that is locked when this object is destroyed is lost
/// and given back, as with `mutex`.
/// Thread safety: all functions may be called from any thread.
///
/// Misuse:
///     users of one name have different numbers of stripes   keys do not exclude each other
///     a thread that has locked one key locks another        may wait for itself, or in a circle:
///                                                           take several at once with `of_keys`
class HOLDFAST_EXPORT striped_mutex {
public:
    /// No I/O. Every stripe is a `mutex` in memory, some hundred bytes with its name. Throws
    /// `std::system_error` when the name or the options make no sense, and `invalid_argument` for no
    /// stripes or more than 1 048 576.
    striped_mutex(client& owner, std::string name, std::size_t stripes,
                  const lease_options& options = {});
    striped_mutex(const striped_mutex&) = delete;
    striped_mutex& operator=(const striped_mutex&) = delete;
    ~striped_mutex();

    /// The lock of this key. Lives as long as this object.
    [[nodiscard]] mutex& of(std::string_view key) const noexcept;
    /// The locks of several keys, each stripe once, sorted: held all together or not at all.
    [[nodiscard]] multi_lock of_keys(const std::vector<std::string>& keys) const;
    /// All stripes: nobody holds any key then.
    [[nodiscard]] multi_lock all() const;

    [[nodiscard]] std::size_t stripes() const noexcept { return stripes_.size(); }
    [[nodiscard]] std::size_t stripe_of(std::string_view key) const noexcept;
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

private:
    client& owner_;
    std::string name_;
    lease_options options_;
    std::vector<std::unique_ptr<mutex>> stripes_;
};

}  // namespace v0
}  // namespace holdfast
