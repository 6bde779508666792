#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/owner.hpp>
#include <holdfast/token.hpp>

namespace holdfast {

enum class claim_mode : std::uint8_t { exclusive, shared, permit };

/// Which of the public classes a name belongs to. Stores that other libraries use too keep each kind
/// in a layout of its own; a name must be used for one kind only.
enum class lock_kind : std::uint8_t { mutex, fair_mutex, shared_mutex, semaphore, latch };

/// What a client tells about itself, so that somebody on call knows whom to ask.
struct holder_card {
    std::string host;
    std::int64_t pid{};
    std::string program;
    std::string label;
};

/// Whether the process behind a hold is there. Only stores on this host can tell.
enum class liveness : std::uint8_t { unknown, alive, dead };

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

/// One name in the store. No holders means free.
struct lock_info {
    std::string name;
    std::vector<holder_info> holders;
    /// The permit limit of a semaphore, 0 for a lock.
    std::uint32_t limit{};
    /// How many waiters the store knows of, if it counts them.
    std::optional<std::uint32_t> waiters;
    std::optional<revocation_info> last_revocation;
};

/// Something about a store that those who rely on it should know.
struct finding {
    enum class severity : std::uint8_t { fact, warning } level{severity::fact};
    /// Which of the store's servers it is about; empty when there is only one.
    std::string server;
    std::string text;
};

}  // namespace holdfast
