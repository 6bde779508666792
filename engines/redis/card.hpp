#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include <holdfast/engine.hpp>
#include <redis/topology/router.hpp>

namespace holdfast::engines::redis {

/// The card of a client: tells operators which process has its locks. It outlives the leases.
///
/// Thread safety: all functions may be called from any thread, but `take_away` only once.
class client_card {
public:
    /// `slot`: the one of the card's key.
    client_card(const client_identity& identity, router& servers, std::uint16_t slot);

    /// Writes the card if that is due. `ttl` is how long a lock lasts that is asked for.
    void write(std::chrono::milliseconds ttl);
    /// A lock may be there when the client has ended, and so must be the card.
    void keep() noexcept { kept_ = true; }
    /// Takes the card away unless it is kept. Returns when the server has answered everything that was
    /// sent to it before, or at the deadline.
    void take_away(clock::time_point deadline);

private:
    const client_identity& identity_;
    router& servers_;
    const std::string key_;
    const std::uint16_t slot_;
    std::atomic<bool> kept_{false};
    /// When the card has to be written again, on our clock.
    std::atomic<clock::time_point> due_{};
    /// Of all locks that were asked for.
    std::atomic<std::chrono::milliseconds> longest_ttl_{};
};

}  // namespace holdfast::engines::redis
