#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hook.hpp"

namespace naive {

/// Redlock, as it is described: SET NX PX on several servers that know nothing of each other; more than
/// half of them, in less time than the lock lives, is a lock. The flaws: a server that has forgotten
/// its vote votes again, and a holder that stood still does not notice.
class redlock {
public:
    redlock(std::vector<std::uint16_t> ports, std::string name, std::string owner)
        : ports_{std::move(ports)}, name_{std::move(name)}, owner_{std::move(owner)} {}
    /// How long the lock is valid; nothing when too few servers gave their vote.
    std::optional<std::chrono::milliseconds> try_lock(std::chrono::milliseconds ttl);
    void unlock();
    /// Who voted for us, by place in the list, from 1.
    [[nodiscard]] const std::string& votes() const { return votes_; }

private:
    std::vector<std::uint16_t> ports_;
    std::string name_;
    std::string owner_;
    std::string votes_;
};

}  // namespace naive
