#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <holdfast/export.hpp>
#include <holdfast/guard/database.hpp>

namespace holdfast::guard {
inline namespace v0 {

struct once_terms {
    /// For how long a claim keeps others away if its claimer is not heard of again. Longer than the
    /// operation takes, or `extend` it. 1 ms to 366 days.
    std::chrono::milliseconds claim{30'000};
    /// For how long an outcome is remembered, from the moment at which `complete` has written it.
    /// Longer than anybody repeats a request. 1 s to 36525 days (100 years).
    std::chrono::milliseconds keep{std::chrono::hours{24}};
};

/// The right to perform an operation and to record its outcome.
struct once_ticket {
    std::string operation;
    /// A random text that no other claim has.
    std::string claimant;
    /// 1, or more when earlier claimers abandoned it or were not heard of again: they may have done a
    /// part of it.
    std::uint64_t attempt{};
};

struct once_reply {
    enum class verdict : std::uint8_t {
        /// Do it now, and `complete` it.
        claimed,
        /// Somebody is at it; `retry_after` says when the claim ends at the latest.
        running,
        /// It was done; `outcome` says what came of it.
        done,
    } result{verdict::running};
    once_ticket ticket{};
    std::string outcome{};
    std::chrono::milliseconds retry_after{};
};

enum class completion : std::uint8_t {
    recorded,
    /// The claim had ended and somebody else has taken over, or the operation was completed with
    /// another outcome: what was done in the same transaction must be rolled back.
    superseded,
};

[[nodiscard]] HOLDFAST_EXPORT std::string_view to_string(once_reply::verdict result) noexcept;
[[nodiscard]] HOLDFAST_EXPORT std::string_view to_string(completion result) noexcept;

/// Lets an operation that may be asked for several times happen once, and gives every retry the
/// outcome.
///
///                │ not there │ claimed          │ claim ended      │ done         │ forgotten
///     claim      │ claimed   │ running          │ claimed, attempt+1 │ done       │ claimed
///     complete   │ superseded│ recorded if ours │ recorded if ours │ see below    │ superseded
///
/// A recorded outcome is never replaced. Completing again with the same ticket and the same outcome is
/// `recorded` and changes nothing; with another outcome it is `superseded`.
///
/// Works in both ways: everything in one transaction (claim, do, complete, commit: a crash leaves
/// nothing, and others wait), or the claim by itself, for what happens elsewhere and takes long.
/// A claim ends by the database's clock, its full time after `claim` returns at the earliest, however
/// long `claim` waited for others' transactions (to within a tenth).
///
/// `running`, `superseded` are answers; misuse and what the database refuses is `std::system_error`,
/// see `database`.
class HOLDFAST_EXPORT once {
public:
    /// Throws `invalid_argument` for terms out of range and a table that is not an identifier.
    explicit once(database& connection, once_terms terms = {},
                  std::string_view table = "holdfast_once");

    /// Unless it is there. MySQL ends an open transaction for this, so it is refused in one there.
    void create_table();

    /// Any 1 to 255 bytes name an operation.
    [[nodiscard]] once_reply claim(std::string_view operation);
    /// Records the outcome. Again with the same ticket: `recorded` if the outcome is the same, else
    /// `superseded`.
    [[nodiscard]] completion complete(const once_ticket& ticket, std::string_view outcome);
    /// The claim lasts for its full time again, from now. `superseded`: it is somebody else's, or done.
    [[nodiscard]] completion extend(const once_ticket& ticket);
    /// It did not work out: the claim ends now, and the next `claim` is `claimed` with a larger
    /// attempt. Until then this ticket is that of any claim that ended: it may be completed.
    completion abandon(const once_ticket& ticket);

    /// Removes outcomes whose time is over, and claims that ended that long ago; at most `limit`.
    /// Returns how many.
    std::size_t forget(std::size_t limit = 1000);

private:
    enum class stage : std::uint8_t { claimed, finished };
    [[nodiscard]] std::optional<once_reply> try_claim(std::string_view operation);
    [[nodiscard]] completion settle(const std::string& statement, std::span<const parameter> parameters,
                                    stage expected);

    database& database_;
    once_terms terms_;
    std::string table_;
    std::string claim_;
    std::string read_;
    std::string complete_;
    std::string extend_;
    std::string abandon_;
    std::string forget_;
};

}  // namespace v0
}  // namespace holdfast::guard
