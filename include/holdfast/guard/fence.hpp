#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <holdfast/export.hpp>
#include <holdfast/guard/database.hpp>
#include <holdfast/token.hpp>

namespace holdfast::guard {
inline namespace v0 {

enum class admission : std::uint8_t {
    admitted,
    /// Somebody with a larger token was here: whoever asks holds the lock no longer. Roll back, stop.
    stale,
};

[[nodiscard]] HOLDFAST_EXPORT std::string_view to_string(admission verdict) noexcept;

/// Remembers the largest fencing token that was seen for each resource, and refuses smaller ones.
///
///     token      │ below the largest    │ the largest        │ above it
///     admit      │ stale                │ admitted           │ admitted, remembered
///     announce   │ stale                │ admitted           │ admitted, remembered
///
/// One holder may write as often as it likes with its one token.
///
/// `admit` belongs into the transaction that writes: what it remembers and what is written become
/// visible together, and until then other holders of the resource wait. Where the new value depends on
/// one that was read, the read must come after the token is known here: call `admit` first of all in
/// the transaction, or `announce` before it begins. See docs/guards/fenced-write.md for the schedule
/// that goes wrong otherwise.
///
/// `stale` is an answer. Misuse (no transaction, a name that is empty or longer than 255 bytes, a token
/// above 2^63 - 1) and what the database refuses is `std::system_error`; see `database`.
class HOLDFAST_EXPORT fence {
public:
    /// `table` may be qualified with a schema. Throws `invalid_argument` when it is not an identifier.
    explicit fence(database& connection, std::string_view table = "holdfast_fence");

    /// Unless it is there. MySQL ends an open transaction for this, so it is refused in one there.
    void create_table();

    /// Inside a transaction of the caller's.
    [[nodiscard]] admission admit(std::string_view resource, fencing_token token);
    /// Outside of any transaction: in effect, for everybody, when this returns. Waits for transactions
    /// that have been admitted and not ended.
    [[nodiscard]] admission announce(std::string_view resource, fencing_token token);

    /// The largest one seen; zero when there was none.
    [[nodiscard]] fencing_token newest(std::string_view resource);

private:
    admission raise(std::string_view resource, fencing_token token);

    database& database_;
    std::string table_;
    std::string raise_;
    std::string read_;
};

}  // namespace v0
}  // namespace holdfast::guard
