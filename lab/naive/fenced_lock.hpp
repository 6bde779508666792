#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "hook.hpp"

namespace naive {

/// A lock, and then a number from a counter: the token.
/// The flaw: see `strictly_rising_stock`. The lock itself is version 5.
class fenced_lock {
public:
    fenced_lock(redis_client& store, redis_client& counter, std::string name, std::string owner)
        : store_{store}, counter_{counter}, name_{std::move(name)}, owner_{std::move(owner)} {}
    /// The token, or nothing.
    std::optional<std::uint64_t> try_lock(std::chrono::milliseconds ttl);

private:
    redis_client& store_;
    redis_client& counter_;
    std::string name_;
    std::string owner_;
};

/// Writes whatever comes with a larger token than the last write's.
/// The flaw: it hears of a token only when something is written. Two holders that have both read, and
/// then write in the order of their tokens, are both let through.
class strictly_rising_stock {
public:
    explicit strictly_rising_stock(redis_client& database) : database_{database} {}
    int read();
    bool write(std::uint64_t token, int amount);

private:
    redis_client& database_;
};

}  // namespace naive
