#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/export.hpp>
#include <holdfast/owner.hpp>
#include <holdfast/token.hpp>

namespace holdfast {
inline namespace v0 {

enum class claim_mode : std::uint8_t { exclusive, shared, permit };

[[nodiscard]] HOLDFAST_EXPORT std::string_view to_string(claim_mode mode) noexcept;

/// Which of the public classes a name belongs to. Stores that other libraries use too keep each kind
/// in a layout of its own; a name must be used for one kind only. `mixed_mutex` is a `shared_mutex`
/// that waits while the name is in use as a `mutex`: see `other_kinds`.
enum class lock_kind : std::uint8_t { mutex, fair_mutex, shared_mutex, semaphore, latch, mixed_mutex };

/// What a `shared_mutex` does while its name is in use as a `mutex`, in a store that keeps the two
/// apart (Redis).
enum class other_kinds : std::uint8_t {
    refuse,  ///< fails with `errc::wrong_kind`
    wait,    ///< waits until it is free, as for any other holder
};

/// What a client tells about itself, so that somebody on call knows whom to ask.
struct holder_card {
    std::string host;
    std::int64_t pid{};
    std::string program;
    std::string label;
};

/// Whether the process behind a hold is there. Known only of processes of this host.
enum class liveness : std::uint8_t { unknown, alive, dead };

[[nodiscard]] HOLDFAST_EXPORT std::string_view to_string(liveness process) noexcept;

struct holder_info {
    owner_id owner;
    claim_mode mode{};
    std::uint32_t permits{1};
    /// The first token of this tenure; a process that hands the lock over between its threads
    /// uses `token` … `token + token_count − 1`. 0 when it has none (a foreign client).
    fencing_token token;
    std::uint32_t token_count{1};
    /// The epoch when it is not known (a foreign client).
    std::chrono::system_clock::time_point since;
    std::chrono::milliseconds remaining{};  ///< `max()`: a foreign hold without an end
    /// Empty when the holder left no card (a foreign client).
    std::optional<holder_card> card;
    liveness process{liveness::unknown};
    /// Kept on purpose after its owner let go (`lease::release_after`).
    bool lingering{};
};

struct revocation_info {
    owner_id owner;
    fencing_token token;
    std::string actor;
    std::string reason;
    std::chrono::system_clock::time_point at;
};

/// What a name is in use as, also while nobody holds it: a store that keeps the counter of a semaphore
/// or a latch (Redis) refuses every other kind under that name (`errc::wrong_kind`).
enum class name_kind : std::uint8_t {
    lock,  ///< a lock, or nothing so far
    semaphore,
    latch,
    counter,  ///< a semaphore or a latch of another library, nobody can tell which
};

/// One name in the store. A `name_kind::lock` without holders is free.
struct lock_info {
    std::string name;
    std::vector<holder_info> holders;
    name_kind kind{name_kind::lock};
    /// The permits of a semaphore that are free, or what a latch counts, where the store keeps that.
    std::optional<std::int64_t> count;
    /// The permit limit of a semaphore, 0 for a lock, or if it is not known.
    std::uint32_t limit{};
    /// How many waiters the store knows of, if it counts them.
    std::optional<std::uint32_t> waiters;
    std::optional<revocation_info> last_revocation;
};

/// Something about a store that those who rely on it should know.
struct finding {
    enum class severity : std::uint8_t {
        fact,
        advice,  ///< could be better; locks are as safe as the documentation says
        warning,
        unchecked,  ///< could not be looked at; the text says why
    } level{severity::fact};
    /// Which of the store's servers it is about; empty when there is only one.
    std::string server;
    std::string text;
    /// The server may come back without locks that are held. What that means for a quorum depends on
    /// its `restart_grace`.
    bool may_forget{};
};

[[nodiscard]] HOLDFAST_EXPORT std::string_view to_string(finding::severity level) noexcept;

}  // namespace v0
}  // namespace holdfast
