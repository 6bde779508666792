#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <holdfast/export.hpp>
#include <holdfast/guard/database.hpp>

namespace holdfast::guard {
inline namespace v0 {

/// How often what is stored was changed under a lock: the storage's own number, not the lock's.
struct lease_sequence {
    std::int64_t value{};

    friend auto operator<=>(const lease_sequence&, const lease_sequence&) = default;
};

enum class contest : std::uint8_t {
    /// Nobody changed it since the sequence was read, and nobody will before the commit.
    won,
    /// Somebody did: what was read is out of date. Roll back.
    lost,
};

[[nodiscard]] HOLDFAST_EXPORT std::string_view to_string(contest result) noexcept;

/// The user's own table with its `lease_seq` column.
struct lease_columns {
    std::string_view table;
    std::string_view key;
    std::string_view sequence{"lease_seq"};
};

/// A compare-and-set on a sequence that the storage keeps. Of those who read the same sequence one
/// wins, whatever the lock service gave to whom: tokens do not matter here, so a fail-over that loses
/// them does not either.
///
///     auto seen = lease.read("101");        // under the lock, before anything else is read
///     …                                     // read, compute
///     if (lease.advance("101", *seen) == contest::won) { write, commit } else { rollback }
///
/// Read the sequence before what it stands for: the other way round, a change in between goes
/// unnoticed.
///
/// `lost` is an answer; misuse and what the database refuses is `std::system_error`, see `database`.
class HOLDFAST_EXPORT storage_lease {
public:
    /// In a table of its own, for resources that are not one row of one table.
    explicit storage_lease(database& connection);
    /// In the user's table. Throws `invalid_argument` for what are not identifiers.
    storage_lease(database& connection, const lease_columns& columns);

    /// Makes the table of its own, unless it is there. MySQL ends an open transaction for this, so it
    /// is refused in one there; and for a table of the user's it is refused everywhere.
    void create_table();

    /// Any 1 to 255 bytes are a key. In the user's table it is compared as the column does, in MySQL in
    /// the column's own notation ("1", not "01"). Empty when the user's table has no such row. In a
    /// table of its own, everything starts at zero.
    [[nodiscard]] std::optional<lease_sequence> read(std::string_view key);
    /// Inside the transaction that writes. `store_error` when the sequence has reached 2^63 - 1.
    [[nodiscard]] contest advance(std::string_view key, lease_sequence seen);

private:
    enum class ownership : std::uint8_t { ours, users };
    storage_lease(database& connection, const lease_columns& columns, ownership whose);
    [[nodiscard]] parameter named(std::string_view key) const;
    answer run(std::string_view statement, std::span<const parameter> parameters);
    [[nodiscard]] std::string advice_on_table() const;
    [[nodiscard]] std::string advice_on_columns(std::string_view said) const;

    database& database_;
    ownership whose_;
    std::string table_;
    std::string key_;
    std::string sequence_;
    std::string read_;
    std::string advance_;
    std::string begin_;
};

}  // namespace v0
}  // namespace holdfast::guard
